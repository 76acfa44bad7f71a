"""Makes the seeds of the target `h5ad` with h5py: small files of each layout. Usage: make.py FOLDER"""
import os, sys
import h5py, numpy as np

folder = sys.argv[1]
dense = np.zeros((6, 5))
dense[0, 1], dense[2, 0], dense[2, 4], dense[5, 3] = 3, 1, 2, 7
rows, columns = np.nonzero(dense)


def frame(file, name, n, **more):
    group = file.create_group(name)
    group.attrs["_index"], group.attrs["encoding-type"] = "_index", "dataframe"
    group.attrs["column-order"] = list(more) or np.array([], "S1")
    group["_index"] = [f"{name}{i}" for i in range(n)]
    for key, value in more.items():
        group[key] = value


def lists(group, order, pointer, **kw):
    group.create_dataset("data", data=dense[rows, columns][order].astype("f4"), **kw)
    group.create_dataset("indices", data=(columns if pointer is rows else rows)[order].astype("i4"), **kw)
    n = 6 if pointer is rows else 5
    group["indptr"] = np.concatenate([[0], np.cumsum(np.bincount(pointer, minlength=n))]).astype("i4")


def h5ad(name, make, libver="earliest", **obs):
    with h5py.File(os.path.join(folder, name), "w", libver=libver) as file:
        file.attrs["encoding-type"] = "anndata"
        make(file)
        frame(file, "obs", 6, **obs)
        frame(file, "var", 5)


def sparse(format, **kw):
    def make(file):
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = f"{format}_matrix", (6, 5)
        by = rows if format == "csr" else columns
        lists(group, np.argsort(by, kind="stable"), by, **kw)

    return make


def kinds(file):
    sparse("csr")(file)
    group = file.create_group("layers/counts")
    group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", (6, 5)
    lists(group, np.arange(4), rows)


h5ad("csr.h5ad", kinds, num=np.arange(6), b=np.array([True, False] * 3), s=[b"a", b"bc"] * 3)
h5ad("csr_lzf.h5ad", sparse("csr", chunks=(2,), compression="lzf"))
h5ad("csc_gzip.h5ad", sparse("csc", chunks=(2,), compression="gzip", shuffle=True, fletcher32=True))
h5ad("latest.h5ad", sparse("csr", chunks=(2,), maxshape=(None,)), "latest", num=np.arange(6))
h5ad("dense.h5ad", lambda file: file.create_dataset("X", data=dense, chunks=(2, 2), compression="gzip"))
with h5py.File(os.path.join(folder, "categories.h5ad"), "w") as file:
    file["X"] = dense.astype("u2")
    frame(file, "obs", 6)
    frame(file, "var", 5)
    for name, kind in (("cat", "categorical"), ("nullable", "nullable-integer")):
        group = file["obs"].create_group(name)
        group.attrs["encoding-type"] = kind
        names = ("codes", "categories") if name == "cat" else ("values", "mask")
        group[names[0]] = np.array([0, 1, -1, 0, 1, 0], "i1")
        group[names[1]] = ["x", "y"] if name == "cat" else np.array([True, False] * 3)
    file["obs"].attrs["column-order"] = ["cat", "nullable"]
with h5py.File(os.path.join(folder, "old.h5ad"), "w") as file:
    file["X"] = dense
    table = np.zeros(6, [("index", "S4"), ("kind", "i1"), ("x", "f4"), ("v", h5py.string_dtype())])
    table["index"], table["v"] = [f"c{i}".encode() for i in range(6)], ["a", "b"] * 3
    file["obs"], file["var"] = table, table[["index", "x"]][:5]
    file["uns/kind_categories"] = np.array([b"only"])
with h5py.File(os.path.join(folder, "tenx.h5"), "w") as file:
    group = file.create_group("matrix")
    lists(group, np.arange(4), rows)
    group["shape"], group["barcodes"] = np.array([5, 6]), np.array([b"AC-1"] * 6)
    for name in ("id", "name", "feature_type"):
        group[f"features/{name}"] = np.array([b"some"] * 5)
with h5py.File(os.path.join(folder, "small.loom"), "w") as file:
    file.create_dataset("matrix", data=dense.T, chunks=(2, 2))
    file["row_attrs/Gene"] = [f"g{i}" for i in range(5)]
    file["col_attrs/CellID"] = np.array([b"a &lt;"] * 6)
