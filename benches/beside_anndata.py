#!/usr/bin/env python3
"""Conversion and reading beside anndata, on the same h5ad files, in one run.

    cargo build --release
    cargo build --release --manifest-path benches/peers/Cargo.toml
    python3 benches/beside_anndata.py [--cells 10000] [--read-cells 100000] [--rounds 3] [--json]

Simulates cells, writes them as h5ad with anndata (CSR, float32, int32; uncompressed and gzip), converts those in every
profile on one thread and on two, and reads random batches of 512 cells from the dataset and from the h5ad file. Each
figure is the best of some rounds, and the rounds of all take turns. Wall time, since anndata is a whole process' work;
CPU time of the process beside it. `--small` converts in that profile too, once, which takes minutes. Needs anndata, scipy.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import anndata
import numpy as np
import scipy
import scipy.sparse as sp

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
PROFILES = ["small", "balanced", "fast", "quick", "plain:3"]
BATCH = 512


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cells", type=int, default=10_000, help="cells to convert")
    parser.add_argument("--read-cells", type=int, default=100_000, help="cells to read from")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="convert in the profile `small` too")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--tilekern", default=os.path.join(ROOT, "target/release/tilekern"))
    parser.add_argument("--peers", default=os.path.join(ROOT, "benches/peers/target/release/tilekern-peers"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = {"convert": conversions(options, folder), "read": reads(options, folder)}
    versions = {module.__name__: module.__version__ for module in (anndata, np, scipy)}
    if options.json:
        print(json.dumps({"versions": versions, **results}))
    else:
        show(results, versions)


def process(*arguments):
    """Runs a program; wall seconds and CPU seconds of it."""
    start = time.perf_counter()
    child = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(arguments)} failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def simulate(options, folder, cells, tile_size):
    """A dataset and h5ad files of the same counts."""
    dataset = os.path.join(folder, f"sim{cells}")
    size = ["--cells", str(cells), "--tile-size", str(tile_size)]
    process(options.tilekern, "sample", dataset, *size, "--profile", "quick", "-q")
    npz = dataset + ".npz"
    process(options.tilekern, "decode", dataset, "-o", npz, "-q")
    matrix = sp.load_npz(npz).astype(np.float32)
    os.remove(npz)
    files = {"uncompressed": dataset + ".h5ad", "gzip": dataset + ".gz.h5ad"}
    anndata.AnnData(matrix).write_h5ad(files["uncompressed"])
    anndata.AnnData(matrix).write_h5ad(files["gzip"], compression="gzip")
    return dataset, files, matrix.shape, matrix.nnz


def conversions(options, folder):
    _, files, (cells, genes), nonzeros = simulate(options, folder, options.cells, options.cells)
    reader = "import sys, anndata; anndata.read_h5ad(sys.argv[1])"
    idle = "import sys, anndata"
    runs = {("anndata.read_h5ad", compression, 1): [] for compression in files}
    profiles = [profile for profile in PROFILES if profile != "small" or options.small]
    runs |= {(profile, compression, threads): [] for profile in profiles for compression in files for threads in (1, 2)}
    starts = []
    out = os.path.join(folder, "out")
    for turn in range(options.rounds):
        starts.append(process(sys.executable, "-c", idle))
        for (what, compression, threads), times in runs.items():
            if what == "small" and (turn > 0 or compression == "gzip"):
                continue
            if what == "anndata.read_h5ad":
                times.append(process(sys.executable, "-c", reader, files[compression]))
            else:
                shutil.rmtree(out, ignore_errors=True)
                times.append(process(options.tilekern, "convert", files[compression], out, "--profile", what,
                                     "--threads", str(threads), "-q"))
    # Python's start is not anndata's work.
    start = [min(times) for times in zip(*starts)]
    rows = []
    for (what, compression, threads), times in runs.items():
        if not times:
            continue
        wall, cpu = (min(values) for values in zip(*times))
        if what == "anndata.read_h5ad":
            wall, cpu = wall - start[0], cpu - start[1]
        rows.append({"what": what, "h5ad": compression, "threads": threads, "wall_s": wall, "cpu_s": cpu,
                     "cells_per_s": cells / wall, "m_nonzeros_per_s": nonzeros / wall / 1e6})
    return {"cells": cells, "genes": genes, "nonzeros": int(nonzeros), "rows": rows}


def reads(options, folder):
    """anndata, then tilekern, then anndata again; the better of both."""
    dataset, files, (cells, genes), nonzeros = simulate(options, folder, options.read_cells, 10_000)
    rng = np.random.default_rng(1)
    batches = [rng.integers(0, cells, BATCH) for _ in range(20)]
    whole = anndata.read_h5ad(files["uncompressed"])
    backed = {name: anndata.read_h5ad(path, backed="r") for name, path in files.items()}
    # A backed file takes increasing rows without repeats only.
    ways = {"in memory": (batches, lambda cells: whole.X[cells])}
    for name, file in backed.items():
        ways[f"backed, {name}"] = (batches[:3], lambda cells, file=file: file[np.unique(cells)].to_memory())
    best = dict.fromkeys(ways, float("inf"))

    def anndatas():
        for name, (batches, read) in ways.items():
            start = time.perf_counter()
            for batch in batches:
                read(batch)
            best[name] = min(best[name], (time.perf_counter() - start) / len(batches))

    anndatas()
    done = subprocess.run([options.peers, "read", "--dataset", dataset, "--json"], check=True, capture_output=True)
    anndatas()
    theirs = [{"case": f"random rows, {BATCH}, {name}", "reader": f"anndata {anndata.__version__}",
               "cells_per_s": BATCH / seconds} for name, seconds in best.items()]
    rows = json.loads(done.stdout)["results"] + theirs
    return {"cells": cells, "genes": genes, "nonzeros": int(nonzeros), "rows": rows}


def text(value):
    if value is None:
        return ""
    if isinstance(value, (int, float)):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return value


def show(results, versions):
    for name, result in results.items():
        print(f"{name}: {result['cells']} cells x {result['genes']} genes, {result['nonzeros']} nonzeros")
        keys = list(dict.fromkeys(key for row in result["rows"] for key in row))
        print("| " + " | ".join(keys) + " |")
        print("|---" * len(keys) + "|")
        for row in result["rows"]:
            print("| " + " | ".join(text(row.get(key)) for key in keys) + " |")
        print()
    print(", ".join(f"{name} {version}" for name, version in versions.items()))


main()
