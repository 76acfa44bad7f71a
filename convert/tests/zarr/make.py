"""Makes one AnnData as h5ad and as zarr stores of many kinds in the folder argv[1].

Prints a list of [h5ad, store, slot, refusal, note]: they hold the same; or the refusal of the store must say that; and
a note on chunks without a file must say that, or be missing.
"""
import json, os, sys, warnings
import anndata, numcodecs, numpy as np, pandas as pd, scipy.sparse as sp, zarr

warnings.filterwarnings("ignore")
folder = sys.argv[1]
rng = np.random.default_rng(3)
cells, genes = 90, 70
entries = []


def path(name):
    return os.path.join(folder, name)


def counts(format="csr", dtype="f4"):
    m = sp.random(cells, genes, 0.2, "csr", random_state=rng, data_rvs=lambda n: rng.integers(1, 250, n)).tolil()
    m[0], m[cells // 2] = 0, 0
    return m.asformat(format).astype(dtype)


def made(x):
    obs = pd.DataFrame(
        {
            "kind": pd.Categorical(rng.choice(["T", "B", None], cells), categories=["B", "T", "unused"]),
            "level": pd.Categorical(rng.choice([10, 20], cells), ordered=True),
            "n": rng.normal(size=cells),
            "i": rng.integers(0, 9, cells),
            "flag": rng.integers(0, 2, cells).astype(bool),
            "text": [f"é{i}" * (i % 4) for i in range(cells)],
            "maybe": pd.array([None if i % 3 else i for i in range(cells)], dtype="Int64"),
            "perhaps": pd.array([None if i % 5 else bool(i % 2) for i in range(cells)], dtype="boolean"),
        },
        index=pd.Index([f"cell{i}" for i in range(cells)], name="barcode"),
    )
    var = pd.DataFrame({"gene_ids": [f"id{i}" for i in range(genes)]}, index=[f"g{i}" for i in range(genes)])
    var["rank"] = pd.Categorical(["low", "high"] * (genes // 2), categories=["low", "high"], ordered=True)
    return anndata.AnnData(x, obs=obs, var=var)


def default(name, adata, version, slot="X"):
    anndata.settings.zarr_write_format = version
    adata.write_zarr(path(f"{name}-{version}.zarr"))
    entries.append([f"{name}.h5ad", f"{name}-{version}.zarr", slot])


for name, x in {
    "csr": counts(),
    "csc": counts("csc"),
    "dense": counts().toarray().astype("u2"),
    "fortran": np.asfortranarray(counts().toarray()),
    "i8": counts(dtype="i8"),
    "u1": counts(dtype="u1"),
    "f8": counts(dtype="f8"),
}.items():
    adata = made(x)
    adata.write_h5ad(path(f"{name}.h5ad"))
    default(name, adata, 2)
    default(name, adata, 3)
layered = made(np.log1p(counts().toarray()))
layered.layers["counts"] = counts()
layered.write_h5ad(path("layered.h5ad"))
default("layered", layered, 2, "layers/counts")
default("layered", layered, 3, "layers/counts")


def recoded(source, name, version, of, chunk=None, refused=None, big_endian=False, note=None):
    """A store whose arrays are those of another one, each with the options that `of` gives for its shape and type."""
    old = zarr.open_group(path(source), mode="r")
    new = zarr.open_group(path(name), mode="w", zarr_format=version)
    new.attrs.update(dict(old.attrs))

    def copy(old, new):
        for key, node in old.members():
            if isinstance(node, zarr.Group):
                group = new.create_group(key)
                group.attrs.update(dict(node.attrs))
                copy(node, group)
            else:
                values = node[...]
                if node.shape == ():
                    continue
                chunks = tuple(min(chunk or n, n) or 1 for n in node.shape)
                text = values.dtype.kind in "OTU"
                dtype = "str" if text else values.dtype.newbyteorder(">") if big_endian else values.dtype
                array = new.create_array(key, shape=node.shape, dtype=dtype, chunks=chunks, **of(chunks, text))
                array[...] = values
                array.attrs.update(dict(node.attrs))

    copy(old, new)
    entries.append([source.split("-")[0] + ".h5ad", name, "X", refused, note])


both = [f"{kind}-3.zarr" for kind in ("csr", "dense")]
for source in both:
    kind = source.split("-")[0]
    for shuffle in (0, 1, 2):
        for codec in ("lz4", "lz4hc", "zlib", "zstd"):
            blosc = numcodecs.Blosc(cname=codec, clevel=5, shuffle=shuffle)
            recoded(source, f"{kind}-blosc-{codec}-{shuffle}.zarr", 2, lambda *_: {"compressors": blosc})
        three = zarr.codecs.BloscCodec(cname="lz4", shuffle=("noshuffle", "shuffle", "bitshuffle")[shuffle])
        recoded(source, f"{kind}-blosc3-{shuffle}.zarr", 3, lambda *_: {"compressors": three}, chunk=37)
    for codec in (numcodecs.Zlib(3), numcodecs.GZip(3), numcodecs.Zstd(3), numcodecs.LZ4(), None):
        name = codec.codec_id if codec else "plain"
        recoded(source, f"{kind}-{name}.zarr", 2, lambda *_: {"compressors": codec}, chunk=16)
    chain = [zarr.codecs.GzipCodec(level=2), zarr.codecs.Crc32cCodec()]
    recoded(source, f"{kind}-crc.zarr", 3, lambda *_: {"compressors": chain}, chunk=23)
    recoded(source, f"{kind}-big.zarr", 2, lambda *_: {}, chunk=30, big_endian=True)
    shards = lambda chunks, text: {"shards": tuple(3 * n for n in chunks)}
    recoded(source, f"{kind}-shards.zarr", 3, shards, chunk=20)
    recoded(source, f"{kind}-order.zarr", 2, lambda *_: {"order": "F"}, chunk=31)
    turned = lambda chunks, text: {"filters": [zarr.codecs.TransposeCodec(order=(1, 0))]} if len(chunks) == 2 else {}
    recoded(source, f"{kind}-turned.zarr", 3, turned, chunk=29)
rewrite = "is not supported; write the store again with AnnData.write_zarr"
refusals = {
    "blosclz, Blosc's own,": (2, numcodecs.Blosc(cname="blosclz", clevel=9)),
    "blosclz, Blosc's own, ": (3, zarr.codecs.BloscCodec(cname="blosclz", clevel=9)),
    '"bz2"': (2, numcodecs.BZ2()),
}
for name, (version, codec) in refusals.items():
    of = lambda *_: {"compressors": codec}
    recoded("csr-3.zarr", f"{name.strip()}-{version}.zarr", version, of, refused=f"{name.strip()} {rewrite}")


def damaged(name, source, change, refused, note=None):
    import shutil

    shutil.copytree(path(source), path(name))
    change(path(name))
    entries.append([source.split("-")[0] + ".h5ad", name, "X", refused, note])


def cut(root):
    chunk = os.path.join(root, "X/data/c/0")
    os.truncate(chunk, os.path.getsize(chunk) // 2)


def garbled(root):
    with open(os.path.join(root, "X/data/zarr.json"), "w") as file:
        file.write("{")


def outside(root):
    with open(os.path.join(root, "obs/zarr.json"), "r+") as file:
        found = json.load(file)
        found["attributes"]["column-order"] = ["../../csr-3.zarr/obs/n"]
        file.seek(0)
        json.dump(found, file)
        file.truncate()


def without(chunk):
    return lambda root: os.remove(os.path.join(root, chunk))


for version, chunk in ((3, "c/0"), (2, "0")):
    for array in ("X/data", "X/indices", "X/indptr", "obs/barcode"):
        name = f"without-{array.replace('/', '-')}-{version}.zarr"
        damaged(name, f"csr-{version}.zarr", without(f"{array}/{chunk}"), array)


# Chunks that zarr's writers leave out as they hold zeros alone, and the same of stores that lost them.
def plain(*_):
    return {"compressors": None}


def sharded(chunks, text):
    return {"shards": tuple(3 * n for n in chunks)}


def missing(name, array, expected):
    """How many files of chunks of one dimension zarr left out, which must be as many as the test means."""
    root = os.path.join(path(name), array)
    node = zarr.open_array(root, mode="r")
    size = (node.shards or node.chunks)[0]
    files = {f for f in os.listdir(os.path.join(root, "c") if node.metadata.zarr_format == 3 else root) if f.isdigit()}
    assert -(-node.shape[0] // size) - len(files) == expected, (name, array, files)


few = counts().tolil()
few[:70] = 0
few[:70, 0] = np.arange(1, 71).reshape(-1, 1)  # one entry each, of the first gene
gaps = {"few": few.tocsr()}
empty = counts().toarray()
empty[20:60, :] = 0
gaps["empty"] = empty
for name, x in gaps.items():
    adata = made(x)
    adata.write_h5ad(path(f"{name}.h5ad"))
    default(name, adata, 3)
one = "X: the file of a chunk is absent, which means that all its "
for version in (2, 3):
    words = "X: the files of 3 chunks are absent, which means that all their entries are of the first gene; if that"
    recoded("few-3.zarr", f"few-{version}-20.zarr", version, plain, chunk=20, note=words)
    missing(f"few-{version}-20.zarr", "X/indices", 3)
    first = "0" if version == 2 else "c/0"
    for array in ("indptr", "data"):
        name = f"few-{version}-without-{array}.zarr"
        damaged(name, f"few-{version}-20.zarr", without(f"X/{array}/{first}"), f"X/{array}: the file of a chunk is not")
    for array, chunk in (("indices", 5), ("indptr", 1), ("data", 5)):
        chunk = str(chunk) if version == 2 else f"c/{chunk}"
        recoded("csr-3.zarr", f"csr-{version}-{array}-20.zarr", version, plain, chunk=20)
        name = f"csr-{version}-without-{array}.zarr"
        words = f"X/{array}: the file of a chunk is not there; copy the store again"
        damaged(name, f"csr-{version}-{array}-20.zarr", without(f"X/{array}/{chunk}"), words)
        recoded("csc-3.zarr", f"csc-{version}-{array}-20.zarr", version, plain, chunk=20)
        damaged(name.replace("csr", "csc"), f"csc-{version}-{array}-20.zarr", without(f"X/{array}/{chunk}"), words)
# A shard that lists no chunk is told; chunks that a shard does not list are zeros, for it was copied with its list.
recoded("few-3.zarr", "few-shards.zarr", 3, sharded, chunk=20, note=one + "entries are of the first gene")
missing("few-shards.zarr", "X/indices", 1)
recoded("few-3.zarr", "few-shard.zarr", 3, sharded, chunk=40)
missing("few-shard.zarr", "X/indices", 0)
damaged("without-shard.zarr", "csr-shards.zarr", without("X/indices/c/2"), "X/indices: the file of a chunk is not there")
damaged("without-first-shard.zarr", "csr-shards.zarr", without("X/indptr/c/0"), "X/indptr: the file of a chunk is not")
recoded("empty-3.zarr", "empty-20.zarr", 3, plain, chunk=20, note="X: the files of 8 chunks are absent, which means")
recoded("empty-3.zarr", "empty-shards.zarr", 3, sharded, chunk=10, note="X: the files of 3 chunks are absent, which means that all their values are the fill value")
recoded("empty-3.zarr", "empty-shard.zarr", 3, sharded, chunk=20)
damaged("cut.zarr", "csr-3.zarr", cut, "X/data")
damaged("garbled.zarr", "csr-3.zarr", garbled, "zarr.json")
damaged("outside.zarr", "csr-3.zarr", outside, "no column")
print(json.dumps(entries))
