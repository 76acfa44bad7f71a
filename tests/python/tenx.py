"""tenx.py FILE: a file as Cell Ranger writes it, of 300 cells of two kinds; made up."""
import sys

import h5py
import numpy as np
import scipy.sparse as sp

rng = np.random.default_rng(3)
known = ["CD3D", "CD3E", "IL32", "MS4A1", "CD79A", "NKG7", "LYZ", "CST3", "S100A8", "FCN1"]
names = known + [f"GENE{i}" for i in range(490)]
cells = 300
means = rng.lognormal(-1, 1.5, len(names))
means[:10] = 4
myeloid = rng.random(cells) < 0.4
rates = np.outer(rng.lognormal(0, 0.3, cells), means)
rates[np.ix_(myeloid, range(0, 6))] /= 40
rates[np.ix_(~myeloid, range(6, 10))] /= 40
matrix = sp.csc_matrix(rng.poisson(rates).T)  # genes x cells

with h5py.File(sys.argv[1], "w") as file:
    group = file.create_group("matrix")
    group["barcodes"] = np.array([f"AAAC{i:012d}-1" for i in range(cells)], dtype="S")
    group.create_dataset("data", data=matrix.data.astype("<i4"), compression="gzip", shuffle=True, chunks=True)
    group.create_dataset("indices", data=matrix.indices.astype("<i8"), compression="gzip", shuffle=True, chunks=True)
    group["indptr"] = matrix.indptr.astype("<i8")
    group["shape"] = np.array(matrix.shape, dtype="<i4")
    features = group.create_group("features")
    features["id"] = np.array([f"ENSG{i:011d}" for i in range(len(names))], dtype="S")
    features["name"] = np.array(names, dtype="S")
    features["feature_type"] = np.array(["Gene Expression"] * len(names), dtype="S")
    features["genome"] = np.array(["GRCh38"] * len(names), dtype="S")
    features["_all_tag_keys"] = np.array(["genome"], dtype="S")
