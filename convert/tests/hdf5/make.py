"""Makes HDF5 files with h5py and anndata in the folder argv[1], and prints what is in them.

Each entry: file, slot, what a matrix must come to, its tables, what a refusal must say, or what notes must say.
"""
import json, os, struct, sys
import anndata, h5py, numpy as np, pandas as pd, scipy.sparse as sp
from tables import summary, table

folder = sys.argv[1]
entries = []
rng = np.random.default_rng(7)


def counts(cells=60, genes=40, density=0.2, top=9):
    m = sp.random(cells, genes, density, "csr", random_state=rng, data_rvs=lambda n: rng.integers(1, top + 1, n))
    m = m.tolil()
    m[0], m[cells // 2] = 0, 0  # cells without counts
    return m.tocsr().astype(np.int64)


def frame(n, prefix):
    return pd.DataFrame({"n": np.arange(n)}, index=[f"{prefix}{i}" for i in range(n)])


def entry(file, slot, matrix=None, **more):
    e = {"file": file, "slot": slot, **more}
    if matrix is not None:
        e["matrix"] = summary(sp.csr_matrix(matrix))
    entries.append(e)


def raw(file, matrix, data="<f4", indices="<i4", indptr="<i4", format="csr", libver=None, dense=False, store=None, **kw):
    """A minimal h5ad, its matrix written with h5py alone."""
    store = store or (lambda group, name, values: group.create_dataset(name, data=values, **kw))
    with h5py.File(os.path.join(folder, file), "w", libver=libver) as f:
        f.attrs["encoding-type"] = "anndata"
        if dense:
            store(f, "X", matrix.toarray().astype(data))
        else:
            m = matrix.asformat(format)
            g = f.create_group("X")
            g.attrs["encoding-type"] = f"{format}_matrix"
            g.attrs["shape"] = m.shape
            store(g, "data", m.data.astype(data))
            store(g, "indices", m.indices.astype(indices))
            store(g, "indptr", m.indptr.astype(indptr))
        for name, n in zip(("obs", "var"), matrix.shape):
            g = f.create_group(name)
            g.attrs["_index"] = "_index"
            g.attrs["column-order"] = np.array([], dtype="S1")
            g.create_dataset("_index", data=[f"{name}{i}" for i in range(n)])
    entry(file, "X", matrix)


def zstd_frame(data):
    """A frame of raw blocks, which needs no compressor."""
    out = b"\x28\xb5\x2f\xfd\xa0" + len(data).to_bytes(4, "little")
    parts = [data[i : i + 100000] for i in range(0, len(data), 100000)]
    for i, part in enumerate(parts):
        out += (len(part) << 3 | (i + 1 == len(parts))).to_bytes(3, "little") + part
    return out


def filtered(id, pack):
    """Chunks that are packed here, with a filter that h5py need not have."""

    def store(group, name, values):
        values = np.ascontiguousarray(values)
        chunk = tuple(max(1, (n + 1) // 2) for n in values.shape)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(chunk)
        plist.set_filter(id, h5py.h5z.FLAG_OPTIONAL, ())
        space = h5py.h5s.create_simple(values.shape)
        d = h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(values.dtype), space, plist)
        for start in np.ndindex(*[-(-n // c) for n, c in zip(values.shape, chunk)]):
            at = tuple(s * c for s, c in zip(start, chunk))
            part = np.zeros(chunk, values.dtype)
            some = values[tuple(slice(a, a + c) for a, c in zip(at, chunk))]
            part[tuple(slice(0, n) for n in some.shape)] = some
            d.write_direct_chunk(at, pack(part.tobytes()))

    return store


# Every type of numbers, both byte orders.
for kind in "i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8".split():
    for order in "<>":
        m = counts()
        index = {"<": ("<i4", "<i8"), ">": (">u2", ">u4")}[order]
        name = f"{'big' if order == '>' else 'little'}_{kind}"
        raw(f"csr_{name}.h5ad", m, order + kind, *index)
        raw(f"dense_{name}.h5ad", m, order + kind, dense=True)
raw("csr_bool.h5ad", counts(top=1), "?")
raw("csr_index_i1.h5ad", counts(), indices="i1", indptr=">i2")

# Layouts, indexes of chunks, filters.
big = counts(700, 90, 0.3)
for libver in ("earliest", "latest"):
    for name, kw in {
        "contiguous": {},
        "chunked": dict(chunks=True),
        "gzip": dict(compression="gzip", shuffle=True, fletcher32=True),
        "lzf": dict(compression="lzf"),
        "lzf_shuffle": dict(compression="lzf", shuffle=True, fletcher32=True),
        "scaled": dict(scaleoffset=0, chunks=True),
    }.items():
        kind = "<i4" if name == "scaled" else "<f4"
        raw(f"{libver}_{name}_csr.h5ad", big, kind, libver=libver, **kw)
        raw(f"{libver}_{name}_csc.h5ad", big, kind, format="csc", libver=libver, **kw)
        raw(f"{libver}_{name}_dense.h5ad", big, kind, dense=True, libver=libver, **kw)
    for name, grow in {"one": (None,), "none": None}.items():
        kw = dict(chunks=(64,), compression="gzip", maxshape=grow)
        raw(f"{libver}_grow_{name}.h5ad", big, libver=libver, **kw)
    raw(f"{libver}_grow_dense.h5ad", big, dense=True, libver=libver, chunks=(30, 17), maxshape=(None, None))
    raw(f"{libver}_grow_rows.h5ad", big, dense=True, libver=libver, chunks=(30, 17), maxshape=(None, 90))
    raw(f"{libver}_one_chunk.h5ad", big, dense=True, libver=libver, chunks=(700, 90), compression="gzip")
raw("zstd.h5ad", big, store=filtered(32015, zstd_frame))
raw("zstd_dense.h5ad", big, dense=True, store=filtered(32015, zstd_frame))
raw("blosc.h5ad", big, store=filtered(32001, lambda b: b))
entries[-1] = {"file": "blosc.h5ad", "slot": "X", "refused": ["blosc", "h5repack", "X/ind"]}
raw("filter_513.h5ad", big, store=filtered(513, lambda b: b))
entries[-1] = {"file": "filter_513.h5ad", "slot": "X", "refused": ["513", "h5repack", "X/ind"]}


def compact(group, name, values):
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_layout(h5py.h5d.COMPACT)
    space = h5py.h5s.create_simple(values.shape)
    d = h5py.h5d.create(group.id, name.encode(), h5py.h5t.py_create(values.dtype), space, plist)
    d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values))


raw("compact.h5ad", counts(), store=compact)
raw("compact_dense.h5ad", counts(20, 10), dense=True, store=compact)

# Values that are left unwritten are 0.
with h5py.File(os.path.join(folder, "unwritten.h5ad"), "w") as f:
    f.create_dataset("X", (5, 7), "f4", chunks=(2, 3))[3, 4] = 2
    for name, n in (("obs", 5), ("var", 7)):
        f.create_dataset(f"{name}/_index", data=[f"{name}{i}" for i in range(n)])
m = np.zeros((5, 7))
m[3, 4] = 2
entry("unwritten.h5ad", "X", m)

# Types of numbers that exist, but not here.
with h5py.File(os.path.join(folder, "odd_number.h5ad"), "w") as f:
    odd = h5py.h5t.IEEE_F32LE.copy()
    odd.set_fields(31, 22, 9, 0, 22)
    odd.set_ebias(255)
    h5py.h5d.create(f.id, b"X", odd, h5py.h5s.create_simple((5, 7)))
    for name, n in (("obs", 5), ("var", 7)):
        f.create_dataset(f"{name}/_index", data=[f"{name}{i}" for i in range(n)])
entry("odd_number.h5ad", "X", refused=["X", "float32", "not supported"])

# Faults of sparse matrices where none is at the ends.
for name, change, words in (
    ("wrapped", lambda p: p.__setitem__(30, -5), ["X/indptr", "cell 29", "-5"]),
    ("decreasing", lambda p: p.__setitem__(30, p[28]), ["X/indptr", "cell 29", "before its start"]),
    ("beyond", lambda p: p.__setitem__(30, 10**6), ["X/indptr", "cell 29", "1000000"]),
    ("not_from_0", lambda p: p.__setitem__(0, 1), ["X/indptr", "starts at 1"]),
    ("ends_early", lambda p: p.__setitem__(-1, p[-1] - 1), ["X/indptr", "cell 59", "data has"]),
):
    raw(f"indptr_{name}.h5ad", counts())
    with h5py.File(os.path.join(folder, f"indptr_{name}.h5ad"), "a") as f:
        p = f["X/indptr"][:]
        if name == "decreasing":
            p[29] = p[31]
        change(p)
        f["X/indptr"][:] = p
    entries[-1] = {"file": f"indptr_{name}.h5ad", "slot": "X", "refused": words}
raw("no_shape.h5ad", counts())
with h5py.File(os.path.join(folder, "no_shape.h5ad"), "a") as f:
    del f["X"].attrs["shape"]
entries[-1] = {"file": "no_shape.h5ad", "slot": "X", "refused": ["X", "shape"]}
raw("obs_short.h5ad", counts())
with h5py.File(os.path.join(folder, "obs_short.h5ad"), "a") as f:
    del f["obs/_index"]
    f["obs/_index"] = ["a", "b"]
entries[-1] = {"file": "obs_short.h5ad", "slot": "X", "refused": ["60 cells", "2 rows"]}

# Tables by anndata: many columns, all kinds, odd names.
n = 50
obs = frame(n, "cell")
obs["ä b"] = np.linspace(0, 1, n, dtype=np.float32)
obs["half"] = np.linspace(0, 1, n).astype(np.float16)
for kind in "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 bool".split():
    obs[kind] = np.arange(n).astype(kind)
for kind in "Int8 Int64 UInt16 boolean".split():
    obs["nullable " + kind] = pd.array([None if i % 3 == 0 else i % 2 for i in range(n)], dtype=kind)
obs["text"] = [f"text {i % 4} ü" for i in range(n)]
obs["empty text"] = ["" for i in range(n)]
obs["cat"] = pd.Categorical([None if i % 5 == 0 else "abc"[i % 3] for i in range(n)], categories=list("cabd"))
obs["ordered"] = pd.Categorical(["lo", "hi"] * (n // 2), categories=["lo", "hi"], ordered=True)
obs["number cat"] = pd.Categorical([1.5, 2.5] * (n // 2))
obs["bool cat"] = pd.Categorical([True, False] * (n // 2))
obs["wide cat"] = pd.Categorical([f"c{i % 300}" for i in range(n)], categories=[f"c{i}" for i in range(300)])
for i in range(300):
    obs[f"more {i}"] = np.int8(i % 100)
var = frame(30, "gene")
var.index.name = "symbol"
var.index = var.index[:29].append(pd.Index(["gene0"])).rename("symbol")
anndata.settings.allow_write_nullable_strings = True
import warnings

warnings.simplefilter("ignore")
m = counts(n, 30)
for name, kw in (("plain", {}), ("gzip", dict(compression="gzip")), ("lzf", dict(compression="lzf"))):
    a = anndata.AnnData(m.astype(np.float32), obs=obs, var=var)
    a.write_h5ad(os.path.join(folder, f"tables_{name}.h5ad"), **kw)
    back = anndata.read_h5ad(os.path.join(folder, f"tables_{name}.h5ad"))
    entry(f"tables_{name}.h5ad", "X", m, obs=table(back.obs), var=table(back.var))
a = anndata.AnnData(m.astype(np.float32), obs=obs[["n", "cat"]].copy(), var=var)
a.obs["nullable text"] = pd.array([None if i % 4 == 0 else f"t{i}" for i in range(n)], dtype="string")
a.obs.index = pd.Index(a.obs.index.to_numpy(), dtype="string")
a.write_h5ad(os.path.join(folder, "tables_nullable_text.h5ad"))
back = anndata.read_h5ad(os.path.join(folder, "tables_nullable_text.h5ad"))
entry("tables_nullable_text.h5ad", "X", m, obs=table(back.obs), var=table(back.var))
a.write_h5ad(os.path.join(folder, "tables_code.h5ad"))
with h5py.File(os.path.join(folder, "tables_code.h5ad"), "a") as f:
    f["obs/cat/codes"][7] = 4
entry("tables_code.h5ad", "X", table_refused=["obs/cat/codes", "entry 7", "category 4, of 4"])
a.write_h5ad(os.path.join(folder, "tables_length.h5ad"))
with h5py.File(os.path.join(folder, "tables_length.h5ad"), "a") as f:
    del f["obs/n"]
    f["obs/n"] = np.arange(n - 1)
entry("tables_length.h5ad", "X", table_refused=["obs", "n", "49", "50"])
a.write_h5ad(os.path.join(folder, "tables_wide.h5ad"))
with h5py.File(os.path.join(folder, "tables_wide.h5ad"), "a") as f:
    del f["obs/n"]
    f["obs/n"] = np.zeros((n, 2))
entry("tables_wide.h5ad", "X", m, notes=["obs column \"n\" is left out"])
a.write_h5ad(os.path.join(folder, "tables_latin.h5ad"))
with h5py.File(os.path.join(folder, "tables_latin.h5ad"), "a") as f:
    del f["obs/n"]
    f["obs/n"] = np.array([b"\xe4"] * n, dtype="S2")
entry("tables_latin.h5ad", "X", table_refused=["obs/n", "UTF-8"])

# A column with the name and the values of the index.
a = anndata.AnnData(m.astype(np.float32), obs=frame(n, "cell"), var=frame(30, "gene"))
a.obs["barcode"] = pd.Categorical(a.obs_names, ordered=True)
a.var["gene_ids"] = a.var_names
a.obs, a.var = a.obs.set_index("barcode", drop=False), a.var.set_index("gene_ids", drop=False)
a.write_h5ad(os.path.join(folder, "tables_twice.h5ad"))
notes = ['obs column "barcode" is left out', 'var column "gene_ids" is left out']
entry("tables_twice.h5ad", "X", m, obs=table(a.obs[["n"]]), var=table(a.var[["n"]]), notes=notes)

# Names with slashes.
a = anndata.AnnData(sp.csr_matrix(m / 3.0), obs=frame(n, "cell"), var=frame(30, "gene"))
a.obs["a/b"] = np.arange(n) * 2
a.obs["a/kind/x"] = pd.Categorical(["u", "v"] * (n // 2))
a.layers["some/sparse"], a.layers["some/more/dense"] = m, m.toarray()
a.write_h5ad(os.path.join(folder, "slashes.h5ad"))
for slot in ("layers/some/sparse", "layers/some/more/dense"):
    entry("slashes.h5ad", slot, m, obs=table(a.obs), var=table(a.var))
entry("slashes.h5ad", "X", refused=["not a count", "layers/some/sparse", "layers/some/more/dense"])

# Layers and raw; which of them is meant.
a = anndata.AnnData(sp.csr_matrix(m / 3.0), obs=obs[["n"]], var=var)
a.layers["counts"] = m
a.layers["dense"] = m.toarray().astype(np.uint16)
wide = counts(n, 45)
a.raw = anndata.AnnData(wide, obs=obs[["n"]], var=frame(45, "raw"))
a.write_h5ad(os.path.join(folder, "layers.h5ad"))
entry("layers.h5ad", "layers/counts", m, obs=table(a.obs), var=table(a.var))
entry("layers.h5ad", "layers/dense", m, obs=table(a.obs), var=table(a.var))
entry("layers.h5ad", "raw/X", wide, obs=table(a.obs), var=table(a.raw.var))
entry("layers.h5ad", "X", refused=["not a count", "raw/X", "layers/counts", "layers/dense"])

# The layouts of 10x.
def text(values, size=None):
    return np.array([v.encode() for v in values], dtype=f"S{size or 32}")


def tenx(group, matrix, new=True):
    m = matrix.tocsr()
    group["barcodes"] = text(f"AAAC-{i}" for i in range(m.shape[0]))
    group.create_dataset("data", data=m.data.astype("i4"), chunks=(50,), compression="gzip", shuffle=True)
    group.create_dataset("indices", data=m.indices.astype("i8"), chunks=(50,), compression="gzip", shuffle=True)
    group["indptr"] = m.indptr.astype("i8")
    group["shape"] = np.array(m.shape[::-1], "i4")


ids, names = [f"ENSG{i}" for i in range(30)], [f"name{i // 2}" for i in range(30)]
types = ["Gene Expression"] * 25 + ["Antibody Capture"] * 5
with h5py.File(os.path.join(folder, "ranger9.h5"), "w") as f:
    tenx(f.create_group("matrix"), m)
    g = f.create_group("matrix/features")
    g["id"], g["name"], g["feature_type"], g["genome"] = text(ids), text(names), text(types), text(["GRCh38"] * 30)
    g["_all_tag_keys"] = text(["genome"])
    g.create_group("target_sets")["Some panel"] = np.arange(3)
    for k, v in {"filetype": "matrix", "software_version": "cellranger-9.0.0", "version": 2}.items():
        f.attrs[k] = v


def plain(names, **columns):
    columns = [{"name": k, "values": v, "categories": None} for k, v in columns.items()]
    return {"index": names, "index_name": None, "columns": columns}


cells = plain([f"AAAC-{i}" for i in range(n)])
genes = plain(names, gene_ids=ids, feature_types=types, genome=["GRCh38"] * 30)
cells["index_name"] = "barcode"
entry("ranger9.h5", "matrix", m, obs=cells, var=genes, notes=["25 of type", "5 of type"])
some = plain(names[25:], gene_ids=ids[25:], feature_types=types[25:], genome=["GRCh38"] * 5)
entry("ranger9.h5", "matrix[feature_type=Antibody Capture]", m[:, 25:], obs=cells, var=some, notes=["25 features"])
with h5py.File(os.path.join(folder, "ranger9.h5")) as f, h5py.File(os.path.join(folder, "twice.h5"), "w") as to:
    f.copy("matrix", to)
    to["matrix/features/gene_ids"] = text(names)
twice = plain(names, gene_ids=ids, feature_types=types, gene_ids_=names, genome=["GRCh38"] * 30)
entry("twice.h5", "matrix", m, obs=cells, var=twice, notes=['feature column "gene_ids" is called "gene_ids_"'])
with h5py.File(os.path.join(folder, "ranger2.h5"), "w") as f:
    for genome in ("GRCh38", "mm10"):
        g = f.create_group(genome)
        tenx(g, m if genome == "mm10" else m * 2)
        g["genes"], g["gene_names"] = text(ids), text(names)
entry("ranger2.h5", "mm10", m, obs=cells, var=plain(names, gene_ids=ids))
entry("ranger2.h5", "GRCh38", m * 2, obs=cells, var=plain(names, gene_ids=ids))
entry("ranger2.h5", "hg19", refused=["hg19", "GRCh38, mm10"])
for name, change, words in (
    ("barcodes", lambda g: (g.__delitem__("barcodes"), g.__setitem__("barcodes", text("abc"))), ["3", "50 barcodes"]),
    ("shape", lambda g: g["shape"].__setitem__(1, 49), ["indptr", "51"]),
    ("features", lambda g: (g.__delitem__("features/id"), g.__setitem__("features/id", text("abc"))), ["features/id", "30"]),
    ("index", lambda g: g["indices"].__setitem__(9, 30), ["indices", "entry 9", "30 is an index of 30"]),
    ("swapped", lambda g: g["shape"].__setitem__(slice(None), [n, 30]), ["indptr", "51"]),
):
    file = f"ranger9_{name}.h5"
    with open(os.path.join(folder, "ranger9.h5"), "rb") as f, open(os.path.join(folder, file), "wb") as to:
        to.write(f.read())
    with h5py.File(os.path.join(folder, file), "a") as f:
        change(f["matrix"])
    entry(file, "matrix", refused=words)

# loom, of version 3 and of version 2, where texts are escaped ASCII of fixed size.
for version in (2, 3):
    file = f"v{version}.loom"
    with h5py.File(os.path.join(folder, file), "w") as f:
        kw = dict(chunks=(16, 16), compression="gzip", shuffle=True)
        f.create_dataset("matrix", data=m.toarray().T.astype("f4"), **kw)
        f.create_dataset("layers/spliced", data=m.toarray().T.astype("u2") * 2, **kw)
        put = (lambda v: text(v)) if version == 2 else (lambda v: list(v))
        f["col_attrs/CellID"] = put(f"cell{i}" for i in range(n))
        f["col_attrs/Cluster"] = put(["a &lt; b &#228;" if version == 2 else "a < b ä"] * n)
        f["col_attrs/Age"] = np.arange(n)
        f["col_attrs/PCA"] = np.zeros((n, 2))
        f["row_attrs/Gene"] = put(names)
        f["row_attrs/Accession"] = put(ids)
        for group in ("row_graphs", "col_graphs"):
            f.create_group(group)
    cells = plain([f"cell{i}" for i in range(n)], Age=list(range(n)), Cluster=["a < b ä"] * n)
    genes = plain(names, gene_ids=ids)
    cells["index_name"], genes["index_name"] = "CellID", "Gene"
    entry(file, "matrix", m, obs=cells, var=genes, notes=['col_attrs column "PCA" is left out'])
    entry(file, "layers/spliced", m * 2, obs=cells, var=genes)
for file, values, more in (("same.loom", ids, {}), ("other.loom", names, {"gene_ids_": names})):
    with h5py.File(os.path.join(folder, "v3.loom")) as f, h5py.File(os.path.join(folder, file), "w") as to:
        for key in f:
            f.copy(key, to)
        to["row_attrs/gene_ids"] = values
    genes = plain(names, gene_ids=ids, **more)
    genes["index_name"] = "Gene"
    entry(file, "matrix", m, obs=cells, var=genes, notes=['row_attrs column "gene_ids" is'])
with h5py.File(os.path.join(folder, "bare.loom"), "w") as f:
    f["matrix"] = m.toarray().T.astype("i8")
    f.create_group("row_attrs"), f.create_group("col_attrs")
numbered = lambda n: plain([str(i) for i in range(n)])
entry("bare.loom", "matrix", m, obs=numbered(n), var=numbered(30), notes=["CellID", "Gene"])

# Old tables: compound datasets, categories in uns, one category that was unwrapped.
with h5py.File(os.path.join(folder, "old.h5ad"), "w") as f:
    f["X"] = m.toarray().astype("f4")
    t = np.zeros(n, [("index", "S8"), ("kind", "i1"), ("one", "i4"), ("x", ">f8"), ("good", "?"), ("vlen", h5py.string_dtype())])
    t["index"] = [f"c{i}".encode() for i in range(n)]
    t["kind"] = [i % 3 - 1 for i in range(n)]
    t["x"] = np.arange(n) / 4
    t["good"] = np.arange(n) % 2 == 0
    t["vlen"] = [f"v{i}" for i in range(n)]
    f["obs"] = t
    f["var"] = np.array([(f"g{i}".encode(),) for i in range(30)], [("index", "S8")])
    f["uns/kind_categories"] = text(["a", "b"])
    f["uns/one_categories"] = np.bytes_("only")
good = lambda name, values, categories=None: {"name": name, "values": values, "categories": categories}
cells = {
    "index": [f"c{i}" for i in range(n)],
    "index_name": "index",
    "columns": [
        good("kind", [[None, "a", "b"][i % 3] for i in range(n)], ["a", "b"]),
        good("one", ["only"] * n, ["only"]),
        good("x", [struct.pack(">d", i / 4).hex() for i in range(n)]),
        good("good", [i % 2 == 0 for i in range(n)]),
        good("vlen", [f"v{i}" for i in range(n)]),
    ],
}
entry("old.h5ad", "X", m, obs=cells, var={"index": [f"g{i}" for i in range(30)], "index_name": "index", "columns": []})

# Files of other kinds.
for file, make, words in (
    ("mudata.h5mu", lambda f: f.attrs.__setitem__("encoding-type", "MuData"), ["MuData", "h5ad"]),
    ("seurat.h5seurat", lambda f: (f.create_group("assays"), f.__setitem__("cell.names", [1])), ["h5Seurat"]),
    ("other.h5", lambda f: f.__setitem__("something", [1]), ["neither h5ad nor", "something"]),
    ("empty.h5", lambda f: None, ["no objects"]),
    ("molecules.h5", lambda f: [f.__setitem__(k, [1]) for k in ("barcode_idx", "count", "umi", "feature_idx")], ["molecule_info"]),
    ("no_matrix.h5ad", lambda f: (f.create_group("obs"), f.create_group("var")), ["neither X nor raw/X nor layers"]),
):
    with h5py.File(os.path.join(folder, file), "w") as f:
        make(f)
    entry(file, "", refused=words)

json.dump(entries, sys.stdout)
