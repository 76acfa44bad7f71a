"""What Python reads: matrices as digests, tables as lists. Run with argv FILE SLOT..., prints the tables of each pair."""
import hashlib, json, math, struct, sys, warnings

warnings.simplefilter("ignore")
import anndata, numpy as np, pandas as pd


def summary(m):
    m = m.tocsr().copy()
    m.sum_duplicates()
    m.eliminate_zeros()
    m.sort_indices()
    digest = lambda values, dtype: hashlib.sha256(values.astype(dtype).tobytes()).hexdigest()
    return {
        "n_cells": m.shape[0], "n_genes": m.shape[1], "nnz": int(m.nnz), "sum": int(m.data.sum()),
        "sha256": {"indptr": digest(m.indptr, "<i8"), "indices": digest(m.indices, "<i4"), "data": digest(m.data, "<i4")},
    }


def plain(values):
    def one(v):
        if v is None or v is pd.NA:
            return None
        if isinstance(v, (bool, np.bool_)):
            return bool(v)
        if isinstance(v, (int, np.integer)):
            return int(v)
        if isinstance(v, (float, np.floating)):
            # All bits of the value: parsers of JSON round.
            return struct.pack(">d", v).hex() if math.isfinite(v) else None
        return str(v)

    return [one(v) for v in values]


def table(df):
    columns = []
    for position, name in enumerate(df.columns):
        column = df.iloc[:, position]
        categories = plain(column.cat.categories) if isinstance(column.dtype, pd.CategoricalDtype) else None
        columns.append({"name": str(name), "values": plain(column), "categories": categories})
    return {"index": plain(df.index), "index_name": df.index.name, "columns": columns}


if __name__ == "__main__":
    found = []
    for path, slot in zip(sys.argv[1::2], sys.argv[2::2]):
        a = anndata.read_h5ad(path)
        raw = slot in ("raw/X", "raw.X")
        found.append({"obs": table(a.obs), "var": table(a.raw.var if raw else a.var)})
    json.dump(found, sys.stdout)
