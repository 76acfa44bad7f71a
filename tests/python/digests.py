"""Prints, for each dataset named on the command line, its shape and digests in both orders of columns."""
import json
import sys

from dataset import Dataset, digests

for root in sys.argv[1:]:
    found = Dataset(root)
    stored, source = (found.indptr, found.indices, found.counts), found.in_source_columns()
    shape = {"n_cells": found.n_cells, "n_genes": found.n_genes, "nnz": len(found.indices)}
    shape["sum"] = int(found.counts.sum())
    print(json.dumps({**shape, "output": digests(*stored), "source": digests(*source)}))
