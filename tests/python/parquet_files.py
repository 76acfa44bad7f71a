"""Parquet files that pyarrow writes, read by `tilekern decode --json`: every encoding, type, page version and codec.

Usage: parquet_files.py TILEKERN FOLDER

Prints `ok` and how many columns were compared. Values are compared exactly, by their bits.
"""

import json
import random
import struct
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

TILEKERN, FOLDER = sys.argv[1:]

# A type, how a random value of it is made, and its exact JSON form.
DRAWN = random.Random(7)


def number(bits):
    """Often small, sometimes near a limit."""
    high = 1 << (bits - 1)
    return DRAWN.choice([DRAWN.randrange(-50, 50), DRAWN.randrange(-high, high), high - 1, -high, 0])


def text(most):
    stem = DRAWN.choice([b"", b"https://example.org/", b"abc", b"\xff\x00"])
    return (stem + bytes(DRAWN.randrange(97, 123) for _ in range(DRAWN.randrange(9))))[:most]


def real():
    return DRAWN.choice([0.0, -0.0, DRAWN.random(), DRAWN.gauss(0, 1e9), float("inf"), 1e-40])


def single():
    return struct.unpack("<f", struct.pack("<f", real()))[0]


TYPES = {
    "bool": (pa.bool_(), lambda: DRAWN.random() < 0.5, bool),
    "int32": (pa.int32(), lambda: number(32), int),
    "int64": (pa.int64(), lambda: number(64), str),
    "float": (pa.float32(), single, lambda v: f"0x{struct.unpack('<I', struct.pack('<f', v))[0]:08x}"),
    "double": (pa.float64(), real, lambda v: f"0x{struct.unpack('<Q', struct.pack('<d', v))[0]:016x}"),
    "binary": (pa.binary(), lambda: text(99), bytes.hex),
    "string": (pa.string(), lambda: text(3).decode("latin-1"), lambda v: v.encode().hex()),
    "fixed": (pa.binary(5), lambda: text(5).ljust(5, b"."), bytes.hex),
}
ENCODINGS = {
    "bool": ["PLAIN", "RLE"],
    "int32": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "int64": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "float": ["PLAIN", "BYTE_STREAM_SPLIT"],
    "double": ["PLAIN", "BYTE_STREAM_SPLIT"],
    "binary": ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    "string": ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    "fixed": ["PLAIN", "DELTA_BYTE_ARRAY", "BYTE_STREAM_SPLIT"],
}
CODECS = ["none", "snappy", "gzip", "zstd", "lz4", "brotli"]
SHAPES = ["required", "optional", "list"]


def column(kind, shape, rows):
    """Values as pyarrow takes them, and in the exact form."""
    _, draw, exact = TYPES[kind]
    few = [draw() for _ in range(4)]

    def value():
        return DRAWN.choice(few) if DRAWN.random() < 0.5 else draw()

    def row():
        if shape == "optional":
            return None if DRAWN.random() < 0.2 else value()
        if shape == "list":
            if DRAWN.random() < 0.1:
                return None
            return [None if DRAWN.random() < 0.1 else value() for _ in range(DRAWN.randrange(4))]
        return value()

    def form(found):
        if isinstance(found, list):
            return [form(one) for one in found]
        return None if found is None else exact(found)

    values = [row() for _ in range(rows)]
    return values, [form(found) for found in values]


def main():
    compared = 0
    for version in ["1.0", "2.0"]:
        for codec in CODECS:
            for dictionary in [False, True]:
                for rows in [0, 1, 700]:
                    compared += one_file(version, codec, dictionary, rows)
    print(f"ok {compared}")


def one_file(version, codec, dictionary, rows):
    arrays, fields, encodings, expected = [], [], {}, {}
    for kind, (arrow, _, _) in TYPES.items():
        for encoding in ["dictionary"] if dictionary else ENCODINGS[kind]:
            for shape in SHAPES:
                name = f"{kind}-{encoding}-{shape}"
                values, expected[name] = column(kind, shape, rows)
                whole = pa.list_(arrow) if shape == "list" else arrow
                arrays.append(pa.array(values, whole))
                fields.append(pa.field(name, whole, nullable=shape != "required"))
                encodings[name + (".list.element" if shape == "list" else "")] = encoding
    path = f"{FOLDER}/{version}-{codec}-{dictionary}-{rows}.parquet"
    chosen = {"use_dictionary": True} if dictionary else {"use_dictionary": False, "column_encoding": encodings}
    pq.write_table(
        pa.table(arrays, schema=pa.schema(fields)), path, data_page_version=version, compression=codec,
        row_group_size=300, data_page_size=400, write_batch_size=64, write_page_checksum=rows == 700, **chosen,
    )
    run = subprocess.run([TILEKERN, "decode", path, "--json"], capture_output=True, text=True)
    assert run.returncode == 0, (path, run)
    found = {column["name"]: column["values"] for column in json.loads(run.stdout)["columns"]}
    assert found.keys() == expected.keys(), (path, found.keys())
    for name, values in expected.items():
        assert found[name] == values, (path, name, found[name], values)
    run = subprocess.run([TILEKERN, "verify", path], capture_output=True, text=True)
    assert run.returncode == 0, (path, run)
    return len(expected)


main()
