"""Reads DELTACEL datasets with numpy, zstandard and pyarrow alone, as the format's text says, checks included.

Slow and plain on purpose: it shares nothing with the engine, so that both agree only if both are right.
"""
import hashlib
import json
import os
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard


def read_frame(data, at, length, size):
    """The content of one zstd frame that has `size` bytes."""
    frame = data[at : at + length]
    assert at % 8 == 0 and len(frame) == length
    assert zstandard.frame_content_size(frame) == size
    content = zstandard.ZstdDecompressor().decompress(frame, max_output_size=size)
    assert len(content) == size
    return content


def merge_planes(content):
    """Byte planes to numbers."""
    low, high = np.frombuffer(content, np.uint8).reshape(2, -1).astype(np.int64)
    return low | high << 8


def read_exceptions(data, at, length, n):
    """Positions within the chunk, and payloads."""
    if length == 0:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    size = zstandard.frame_content_size(data[at : at + length])
    assert size % 8 == 0
    positions, payloads = np.frombuffer(read_frame(data, at, length, size), "<u4").reshape(2, -1).astype(np.int64)
    assert np.all(np.diff(positions) > 0) and (len(positions) == 0 or positions[-1] < n)
    return positions, payloads


def read_tile(data):
    """(n_genes, indptr, indices, counts) of one tile."""
    assert data[:8] == b"DELTACEL"
    version, flags, *_ = np.frombuffer(data, "<u4", 2, 8)
    n_cells, nnz = (int(x) for x in np.frombuffer(data, "<u8", 2, 16))
    n_genes, n_chunks = (int(x) for x in np.frombuffer(data, "<u4", 2, 32))
    indptr_off, total_size = (int(x) for x in np.frombuffer(data, "<u8", 2, 40))
    crc, reserved = (int(x) for x in np.frombuffer(data, "<u4", 2, 56))
    assert (version, flags, reserved, total_size) == (2, 0, 0, len(data))
    assert crc == zlib.crc32(data[64:])
    table = np.frombuffer(data, "<u8", 12 * n_chunks, 64).reshape(-1, 12).astype(np.int64)
    assert indptr_off % 8 == 0 and indptr_off >= 64 + 96 * n_chunks
    indptr = np.frombuffer(data, "<i8", n_cells + 1, indptr_off)
    assert indptr[0] == 0 and indptr[-1] == nnz and np.all(np.diff(indptr) >= 0)
    indices, counts = np.empty(nnz, np.int64), np.empty(nnz, np.int64)
    cell = entry = 0
    for lo, hi, start, end, g_at, g_len, v_at, v_len, vexc_at, vexc_len, gexc_at, gexc_len in table.tolist():
        assert (lo, start) == (cell, entry) and (indptr[lo], indptr[hi]) == (start, end)
        cell, entry, n = hi, end, end - start
        gaps = merge_planes(read_frame(data, g_at, g_len, 2 * n))
        values = merge_planes(read_frame(data, v_at, v_len, 2 * n))
        positions, payloads = read_exceptions(data, vexc_at, vexc_len, n)
        assert np.all(values[positions] == 65535) and np.all((payloads > 65535) & (payloads < 1 << 31))
        values[positions] = payloads
        positions, payloads = read_exceptions(data, gexc_at, gexc_len, n)
        assert np.all(gaps[positions] == 65535) and np.all((payloads >= 1) & (payloads < n_genes))
        gaps[positions] += payloads
        for row in range(lo, hi):
            a, b = int(indptr[row]) - start, int(indptr[row + 1]) - start
            genes = np.cumsum(gaps[a:b])
            assert np.all(np.diff(genes) > 0) and (a == b or genes[-1] < n_genes)
            indices[start + a : start + b] = genes
        assert np.all(values > 0)
        counts[start:end] = values
    assert (cell, entry) == (n_cells, nnz)
    return n_genes, indptr, indices, counts


class Dataset:
    """Everything that the directory at `root` holds."""

    def __init__(self, root):
        def read(name):
            with open(os.path.join(root, name), "rb") as file:
                return file.read()

        manifest = self.manifest = json.loads(read("manifest.json"))
        assert (manifest["format"], manifest["version"]) == ("deltacells-dataset", 2)
        cells, size = manifest["tile_cells"], manifest["tile_size"]
        assert sum(cells) == manifest["n_cells"] and all(n == size for n in cells[:-1])
        assert all(1 <= n <= size for n in cells[-1:])
        self.n_cells, self.n_genes = manifest["n_cells"], manifest["n_genes"]
        indptr, indices, counts = [np.zeros(1, np.int64)], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for tile, n in enumerate(cells):
            data = read(f"tiles/tile_{tile:06d}.dct")
            n_genes, rows, genes, values = read_tile(data)
            stated = (n, manifest["tile_nnz"][tile], manifest["tile_bytes"][tile], self.n_genes)
            assert (len(rows) - 1, len(genes), len(data), n_genes) == stated
            indptr.append(rows[1:] + indptr[-1][-1])
            indices.append(genes)
            counts.append(values)
        self.indptr, self.indices, self.counts = map(np.concatenate, (indptr, indices, counts))

        self.gene_order = None
        if manifest["has_gene_order"]:
            self.gene_order = np.load(os.path.join(root, "gene_order.npy"), allow_pickle=False)
            assert self.gene_order.dtype == np.dtype("<i4") and self.gene_order.shape == (self.n_genes,)
        self.var_names = None
        if manifest["has_var_names"]:
            self.var_names = read("var_names.txt").decode("utf-8").removesuffix("\n").split("\n")
            assert len(self.var_names) == self.n_genes
        self.var = None
        if manifest["has_var_table"]:
            table = pq.read_table(os.path.join(root, "var.parquet"), use_threads=False, pre_buffer=False)
            assert table.num_rows == self.n_genes
            (index,) = json.loads(table.schema.metadata[b"pandas"])["index_columns"]
            names = {c["field_name"]: c["name"] for c in json.loads(table.schema.metadata[b"pandas"])["columns"]}
            self.var = {name: table[name].to_pylist() for name in table.column_names if name != index}
            self.var_index, self.var_index_name = table[index].to_pylist(), names[index]
            assert self.var_names is None or self.var_index == self.var_names
        self.obs = self._obs(root, read) if manifest["has_obs"] else None

    def _obs(self, root, read):
        manifest, cells = self.manifest, self.manifest["tile_cells"]
        text = read("obs/schema.json").decode("utf-8")
        schema = self.obs_schema = json.loads(text)
        assert (schema["format"], schema["version"]) == ("deltacells-obs", 1)
        per_file, digests, parts = manifest["obs_tiles_per_file"], [], []
        for shard in range(-(-len(cells) // per_file)):
            name = f"obs/obs_{shard:04d}.parquet"
            data = read(name)
            assert len(data) == manifest["obs_shard_bytes"][shard]
            digests.append(hashlib.sha256(data).hexdigest())
            file = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False)
            rows = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
            assert rows == cells[shard * per_file : (shard + 1) * per_file]
            found = [(field.name, str(field.type)) for field in file.schema_arrow]
            assert found == [(column["name"], column["arrow_type"]) for column in schema["columns"]], found
            parts.append(file.read(use_threads=False))
        assert digests == manifest["obs_shard_sha256"]
        canonical = json.dumps({"schema": text, "tile_cells": cells, "shards": digests}, sort_keys=True)
        assert manifest["obs_fingerprint"] == hashlib.sha256(canonical.encode()).hexdigest()[:24]
        table = pa.concat_tables(parts) if parts else None
        obs = {}
        for column in schema["columns"]:
            values = table[column["name"]].to_pylist() if table else []
            if column["kind"] == "category":
                words = column["categories"]
                assert all(-1 <= code < len(words) for code in values)
                values = [None if code == -1 else words[code] for code in values]
            obs[column["name"]] = values
        return obs

    def in_source_columns(self):
        """(indptr, indices, counts) with the columns of the source: gene_order undone, each row sorted again."""
        if self.gene_order is None:
            return self.indptr, self.indices, self.counts
        genes = self.gene_order.astype(np.int64)[self.indices]
        rows = np.repeat(np.arange(self.n_cells), np.diff(self.indptr))
        order = np.lexsort((genes, rows))
        return self.indptr, genes[order], self.counts[order]


def digests(indptr, indices, counts):
    """SHA-256 of the arrays as int64, int32, int32."""
    arrays = {"indptr": (indptr, "<i8"), "indices": (indices, "<i4"), "data": (counts, "<i4")}
    return {name: hashlib.sha256(array.astype(dtype).tobytes()).hexdigest() for name, (array, dtype) in arrays.items()}
