"""through_anndata.py TILEKERN FOLDER: an h5ad file that anndata wrote goes into a dataset, and comes out equal.

What the format has no place for: that categories of cells are ordered (their order itself is kept), and which categories
of genes are no text (their values are kept). Both are told.
"""
import json
import os
import subprocess
import sys

import anndata
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import scipy.sparse as sp

from dataset import Dataset

program, folder = sys.argv[1:]
rng = np.random.default_rng(11)
N, G = 230, 90


def run(*arguments):
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stderr)
    return done.stderr


def counts():
    matrix = sp.random(N, G, 0.2, "csr", random_state=rng, data_rvs=lambda n: rng.integers(1, 200, n)).tolil()
    matrix[0], matrix[117], matrix[N - 1] = 0, 0, 0
    matrix[5, 3], matrix[6, 4] = 70_000, 2**31 - 1
    return matrix.tocsr().astype(np.float64)


def missing(values, every):
    return [None if i % every == 0 else value for i, value in enumerate(values)]


def tables():
    numbers = np.arange(N)
    words = np.array(["T cell", "B c\u00e9ll", "\U0001f9ec", 'quo"te'])
    obs = pd.DataFrame(index=pd.Index([f"AAAC{i:05d}-1" for i in range(N)], name="barcode"))
    obs["cell_type"] = pd.Categorical(missing(words[numbers % 4], 9), categories=[*words, "unused"])
    obs["grade"] = pd.Categorical(np.array(["low", "mid", "high"])[numbers % 3], ["low", "mid", "high"], ordered=True)
    obs["batch"] = pd.Categorical(numbers % 2 + 7)
    obs["many"] = pd.Categorical([f"c{i % 200}" for i in numbers])
    obs["n"] = numbers.astype(np.int64) * 10**15
    obs["small"] = (numbers % 100).astype(np.int8)
    obs["unsigned"] = numbers.astype(np.uint32)
    obs["score"] = np.where(numbers % 7 == 0, np.nan, numbers / 8)
    obs["single"] = (numbers / 4).astype(np.float32)
    obs["flag"] = numbers % 2 == 0
    obs["note"] = [f"free text {i}" for i in range(N)]
    obs["maybe"] = pd.array(missing(numbers.tolist(), 5), dtype="Int32")
    obs["known"] = pd.array(missing((numbers % 3 == 0).tolist(), 6), dtype="boolean")
    var = pd.DataFrame(index=[f"gene{i % 80}" for i in range(G)])
    var["gene_ids"] = [f"ENSG{i:05d}" for i in range(G)]
    var["mean"] = np.arange(G) / 16
    # Neither as sorted nor in the order of the genes, and more of them than genes have.
    kinds = ["unused", "other", "", "coding \u00e9", "last"]
    var["kind"] = pd.Categorical(np.array(["coding \u00e9", "other", ""])[np.arange(G) % 3], kinds)
    var["level"] = pd.Categorical(missing(np.array(["high", "low"])[np.arange(G) % 2], 4), ["low", "mid", "high"], ordered=True)
    var["all"] = pd.Categorical([f"c{i}" for i in range(G)], [f"c{i * 7 % 200}" for i in range(200)])
    var["alone"] = pd.Categorical(["x"] * G)
    var["gone"] = pd.Categorical([None] * G, ["a", "b"])
    var["number"] = pd.Categorical(np.arange(G) % 3 * 5, [10, 5, 0, 7])
    var["truth"] = pd.Categorical(np.arange(G) % 3 == 0, [True, False])
    var["half"] = pd.Categorical(missing((np.arange(G) % 3 / 2).tolist(), 5))
    return obs, var


def genes_of(out):
    """The table of genes as pandas has it, read by pyarrow: `pandas.read_parquet` without its threads."""
    table = pq.read_table(os.path.join(out, "var.parquet"), use_threads=False, pre_buffer=False)
    return table.to_pandas(use_threads=False, split_blocks=False)


def same_genes(found, expected):
    """Equal with categories, their order, unused ones, and whether they are ordered."""
    plain = {"number": np.int64, "truth": bool, "half": np.float64}
    expected = expected.assign(**{name: expected[name].astype(dtype) for name, dtype in plain.items()})
    found.index.name = expected.index.name
    pd.testing.assert_frame_equal(found, expected, check_categorical=True)
    for name in expected.select_dtypes("category"):
        assert list(found[name].cat.categories) == list(expected[name].cat.categories), name
        assert found[name].cat.ordered == expected[name].cat.ordered, name


def plain(values):
    """Values as JSON would have them: None for missing ones."""
    return [None if pd.isna(value) else value.item() if hasattr(value, "item") else value for value in values]


obs, var = tables()
matrix = counts()
source = os.path.join(folder, "source.h5ad")
anndata.AnnData(matrix, obs, var).write_h5ad(source, compression="gzip")

for order in ["total", "source"]:
    out = os.path.join(folder, f"counts_{order}")
    told = run("convert", source, out, "--tile-size", "64", "--gene-order", order)
    assert 'that categories are ordered is not kept, their order is: "grade"' in told, told
    assert 'categories of genes that are no text are kept as plain values, without their list: "number", "truth", "half"' in told, told
    found = Dataset(out)

    expected = matrix.astype(np.int64)
    expected.sort_indices()
    indptr, indices, values = found.in_source_columns()
    assert np.array_equal(indptr, expected.indptr) and np.array_equal(indices, expected.indices)
    assert np.array_equal(values, expected.data)

    columns = {obs.index.name: list(obs.index), **{name: plain(obs[name]) for name in obs}}
    assert found.obs == columns, [name for name in columns if found.obs.get(name) != columns[name]]
    schema = {column["name"]: column for column in found.obs_schema["columns"]}
    for name in ["cell_type", "grade", "batch", "many"]:  # order and unused categories are kept
        assert schema[name]["kind"] == "category"
        assert schema[name]["categories"] == plain(obs[name].cat.categories), schema[name]
    assert schema["many"]["arrow_type"] == "int16" and schema["batch"]["arrow_type"] == "int8"
    types = {"n": "int64", "small": "int8", "unsigned": "uint32", "score": "double", "single": "float", "maybe": "int32"}
    assert {name: schema[name]["arrow_type"] for name in types} == types

    genes = np.arange(G) if found.gene_order is None else found.gene_order
    assert sorted(genes) == list(range(G)) and (order == "source") == (found.gene_order is None or
                                                                       np.array_equal(genes, np.arange(G)))
    assert found.var_names == found.var_index == [var.index[gene] for gene in genes]
    assert found.var == {name: [plain(var[name])[gene] for gene in genes] for name in var}
    same_genes(genes_of(out), var.iloc[genes])
    run("verify", out)
    # So does a dataset that is made of the dataset.
    again = os.path.join(folder, f"again_{order}")
    run("convert", out, again, "--gene-order", order, "--tile-size", "100")
    assert Dataset(again).obs_schema == found.obs_schema
    same_genes(genes_of(again), var.iloc[genes])
    # And an h5ad that is made of it: all of its cells, or none.
    for name, choice, cells in [("all", [], N), ("none", ["--where", "n < 0"], 0)]:
        back = os.path.join(folder, f"{name}_{order}.h5ad")
        run("decode", out, *choice, "-o", back)
        back = anndata.read_h5ad(back)
        assert back.n_obs == cells
        same_genes(back.var, var.iloc[genes])
        for column in ["cell_type", "grade", "batch", "many"]:
            assert list(back.obs[column].cat.categories) == list(obs[column].cat.categories), column
            assert plain(back.obs[column]) == plain(obs[column].iloc[:cells]), column
    if order == "total":
        totals = np.asarray(expected.sum(axis=0)).ravel()[genes]
        assert np.all(np.diff(totals) <= 0)
# Files with other genes and other lists: those of the first come first, then what the second has beside.
other = var.set_axis([f"gene{i + 45}" for i in range(G)])
other["kind"] = pd.Categorical(np.array(["new", "other"])[np.arange(G) % 2], ["unused too", "other", "new", "unused"])
other["alone"] = pd.Categorical(["x"] * G)
paths = [os.path.join(folder, name) for name in ("first.h5ad", "second.h5ad")]
var = var.set_axis([f"gene{i}" for i in range(G)])
for path, table in zip(paths, (var, other)):
    anndata.AnnData(matrix, obs, table).write_h5ad(path)
out = os.path.join(folder, "matched")
told = run("convert", *paths, out, "--match-genes", "name", "--gene-order", "source")
expected = pd.concat([var, other.iloc[45:]])
kinds = [*var["kind"].cat.categories, "unused too", "new"]
expected["kind"] = pd.Categorical([*var["kind"], *other["kind"].iloc[45:]], kinds)
same_genes(genes_of(out), expected)
assert "ordered, but not alike" not in told, told
# A list that has an order in one file alone has none in both.
other["level"] = other["level"].cat.reorder_categories(["high", "mid", "low"])
anndata.AnnData(matrix, obs, other).write_h5ad(paths[1])
out = os.path.join(folder, "not_alike")
told = run("convert", *paths, out, "--match-genes", "name", "--gene-order", "source")
assert 'categories of genes "level" are ordered, but not alike in all inputs' in told, told
expected["level"] = expected["level"].cat.as_unordered()
same_genes(genes_of(out), expected)
# A table of genes that pandas wrote, with categories that are no text.
table = var.reset_index(names="gene").set_index("gene")
out = os.path.join(folder, "counts_source")
table.index = pd.Index(genes_of(out).index, name="gene")
table.to_parquet(os.path.join(out, "var.parquet"))
assert subprocess.run([program, "verify", out, "--quiet"], capture_output=True).returncode == 1
# Who changes the file removes its digest.
with open(os.path.join(out, "manifest.json"), "r+") as file:
    manifest = json.load(file)
    del manifest["tilekern_sha256"]["var.parquet"]
    file.seek(0)
    file.truncate()
    json.dump(manifest, file)
run("verify", out)
back = os.path.join(folder, "of_pandas.h5ad")
run("decode", out, "-o", back)
same_genes(anndata.read_h5ad(back).var.rename_axis("gene"), table)
again = os.path.join(folder, "of_pandas")
run("convert", out, again, "--gene-order", "source")
same_genes(genes_of(again), table)
print("ok", flush=True)
# Threads of Arrow that still run at the end can abort the process; what it had to say has been said.
os._exit(0)
