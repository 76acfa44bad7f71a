//! What pyarrow and pandas make of the tables that are written here, following the format's text.
//!
//! Without python3, pyarrow and pandas there is one test: ignored, or failing where `TILEKERN_REQUIRE_PYTHON` is set.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float32Array, Float64Array, Int64Array, RecordBatch, StringArray,
};
use libtest_mimic::{Arguments, Failed, Trial};
use tilekern::deltacel::CsrView;
use tilekern::deltacel::dataset::obs::{Cache, ObsUnion};
use tilekern::deltacel::dataset::{Dataset, INDEX_NAME, Writer};

/// Checks a dataset, a cache that this library filled from it, and leaves another cache as pyarrow writes it.
const SCRIPT: &str = r#"
import hashlib, json, os, sys
from urllib.parse import quote
import pyarrow as pa, pyarrow.parquet as pq, pyarrow.ipc as ipc
import pandas as pd

root, cache, other = sys.argv[1:]
manifest = json.load(open(f"{root}/manifest.json"))
text = open(f"{root}/obs/schema.json", encoding="utf-8").read()
schema = json.loads(text)
assert (schema["format"], schema["version"]) == ("deltacells-obs", 1)
assert json.dumps(schema) == text, text

# Shards: sizes, digests, one row group for each tile, exact types, no statistics, zstd.
k, cells = manifest["obs_tiles_per_file"], manifest["tile_cells"]
digests, batches = [], []
for s in range(-(-len(cells) // k)):
    path = f"{root}/obs/obs_{s:04d}.parquet"
    data = open(path, "rb").read()
    assert len(data) == manifest["obs_shard_bytes"][s]
    digests.append(hashlib.sha256(data).hexdigest())
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)] == cells[s * k:(s + 1) * k]
    names = {"double": "double", "float": "float", "string": "string", "bool": "bool"}
    found = [(f.name, names.get(str(f.type), str(f.type))) for f in file.schema_arrow]
    assert found == [(c["name"], c["arrow_type"]) for c in schema["columns"]], found
    for g in range(file.num_row_groups):
        for c in range(file.metadata.num_columns):
            column = file.metadata.row_group(g).column(c)
            assert column.compression == "ZSTD" and not column.is_stats_set, column
        batches.append(file.read_row_group(g))
assert digests == manifest["obs_shard_sha256"]
canonical = json.dumps({"schema": text, "tile_cells": cells, "shards": digests}, sort_keys=True)
fingerprint = hashlib.sha256(canonical.encode()).hexdigest()[:24]
assert fingerprint == manifest["obs_fingerprint"]

# Values by meaning.
table = pa.concat_tables(batches)
def meaning(column):
    values = table[column["name"]].to_pylist()
    if column["kind"] != "category":
        return values
    return [None if code == -1 else column["categories"][code] for code in values]
obs = {column["name"]: meaning(column) for column in schema["columns"]}
n = sum(cells)
assert obs["cell_type"] == [[None, "T", "B c\u00e9ll", "\U0001F9EC"][i % 4] for i in range(n)]
assert obs["batch"] == [[7, -3][i % 2] for i in range(n)]
assert obs["n"] == [None if i % 5 == 4 else i * 10**15 for i in range(n)]
assert obs["score"] == [i / 4 for i in range(n)]
assert obs["ok"] == [None if i % 3 == 2 else i % 2 == 0 for i in range(n)]
assert obs["bar code"] == [None if i % 6 == 5 else f"AAA{i}\u00e9" for i in range(n)]

# The table of genes as pandas has it.
var = pd.read_parquet(f"{root}/var.parquet")
assert var.index.name == "gene symbol" and list(var.index) == ["a", "b", "a", ""], var.index
assert list(var.columns) == ["id", "type", "mean", "used"], var.columns
assert list(var["id"]) == ["E1", "E2", "E3", "E4"]
assert var["type"].dtype == "category" and list(var["type"].cat.categories) == ["x", "y"]
assert [None if pd.isna(value) else value for value in var["type"]] == ["x", None, "x", "y"]
assert var["mean"].dtype == "float64" and list(var["mean"]) == [0.5, 1.0, 1.5, 2.0]
assert var["used"].dtype == "bool" and list(var["used"]) == [True, False, True, True]

# The cache that was filled, and one to be read.
for column in schema["columns"]:
    name = f"{fingerprint}/obs/{quote(column['name'], safe='')}.arrow"
    with pa.memory_map(f"{cache}/{name}") as source:
        file = ipc.open_file(source)
        assert [file.get_batch(i).num_rows for i in range(file.num_record_batches)] == cells
        assert file.schema.names == [column["name"]]
        assert file.read_all()[column["name"]].to_pylist() == table[column["name"]].to_pylist()
    os.makedirs(os.path.dirname(f"{other}/{name}"), exist_ok=True)
    field = pa.schema([(column["name"], table.schema.field(column["name"]).type)])
    with ipc.new_file(f"{other}/{name}", field) as writer:
        for batch in batches:
            writer.write_table(batch.select([column["name"]]).cast(field), max_chunksize=2**31)
print("ok")
"#;

fn main() {
    let found = Command::new("python3").args(["-c", "import pyarrow, pandas"]).output();
    let trial = if found.is_ok_and(|output| output.status.success()) {
        Trial::test("a dataset of ours", ours)
    } else {
        let required =
            std::env::var_os("TILEKERN_REQUIRE_PYTHON").is_some_and(|value| value != "0" && !value.is_empty());
        let missing = || Err(Failed::from("no python3 with pyarrow and pandas"));
        Trial::test("pyarrow", missing).with_ignored_flag(!required)
    };
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit()
}

fn obs(n: usize) -> Result<RecordBatch, Failed> {
    let types = ["T", "B c\u{e9}ll", "\u{1F9EC}"];
    let types: DictionaryArray<Int32Type> = (0..n).map(|i| (i % 4 > 0).then(|| types[i % 4 - 1])).collect();
    let keys = (0..n).map(|i| i8::try_from(i % 2).ok()).collect();
    let batch = DictionaryArray::<Int8Type>::try_new(keys, Arc::new(Int64Array::from(vec![7, -3])))?;
    let ints: Int64Array = (0..n as i64).map(|i| (i % 5 != 4).then_some(i * 1_000_000_000_000_000)).collect();
    let scores = Float32Array::from((0..n).map(|i| i as f32 / 4.0).collect::<Vec<_>>());
    let flags: BooleanArray = (0..n).map(|i| (i % 3 != 2).then_some(i % 2 == 0)).collect();
    let codes: StringArray = (0..n).map(|i| (i % 6 != 5).then(|| format!("AAA{i}\u{e9}"))).collect();
    Ok(RecordBatch::try_from_iter_with_nullable([
        ("cell_type", Arc::new(types) as ArrayRef, true),
        ("batch", Arc::new(batch), true),
        ("n", Arc::new(ints), true),
        ("score", Arc::new(scores), true),
        ("ok", Arc::new(flags), true),
        ("bar code", Arc::new(codes), true),
    ])?)
}

fn var() -> Result<RecordBatch, Failed> {
    let types: DictionaryArray<Int8Type> = [Some("x"), None, Some("x"), Some("y")].into_iter().collect();
    let table = RecordBatch::try_from_iter_with_nullable([
        ("symbol", Arc::new(StringArray::from(vec!["a", "b", "a", ""])) as ArrayRef, false),
        ("id", Arc::new(StringArray::from(vec!["E1", "E2", "E3", "E4"])), true),
        ("type", Arc::new(types), true),
        ("mean", Arc::new(Float64Array::from(vec![0.5, 1.0, 1.5, 2.0])), true),
        ("used", Arc::new(BooleanArray::from(vec![true, false, true, true])), true),
    ])?;
    let metadata: std::collections::HashMap<String, String> =
        [(INDEX_NAME.to_owned(), "gene symbol".to_owned())].into();
    Ok(table.clone().with_schema(Arc::new(table.schema().as_ref().clone().with_metadata(metadata)))?)
}

fn ours() -> Result<(), Failed> {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let table = obs(29)?;
    let mut union = ObsUnion::new();
    union.add(&table)?;
    let mut encoder = union.finish();
    let builder = Writer::builder(4).tile_size(6).var(var()?).var_names(["a", "b", "a", ""]);
    let mut writer = builder.obs(encoder.schema().clone(), 2).create(path("dataset"))?;
    for start in (0..29).step_by(10) {
        let n = 10.min(29 - start);
        let cells = CsrView { n_genes: 4, indptr: &vec![0; n + 1], indices: &[], values: &[] };
        writer.push_with_obs(&cells, &encoder.encode(&table.slice(start, n))?)?;
    }
    writer.finish()?;

    let dataset = Dataset::open(path("dataset"))?;
    let cells: Vec<u64> = (0..29).collect();
    let names: Vec<String> = encoder.schema().columns.iter().map(|column| column.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let read = |cache: &Path| -> Result<RecordBatch, Failed> {
        let table = dataset.obs()?.ok_or("no table of cells")?.cached(Cache::at(cache));
        Ok(table.codes(&names, &cells)?)
    };
    let expected = encoder.encode(&table)?;
    same(&read(&path("cache"))?, &expected)?;
    let arguments = [path("dataset"), path("cache"), path("other")];
    let output = Command::new("python3").args(["-c", SCRIPT]).args(&arguments).output()?;
    if !output.status.success() || output.stdout != b"ok\n" {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    // What pyarrow wrote is taken as it is: nothing is fetched, and the shards are not there any more.
    let fingerprint = dataset.manifest().obs().ok_or("no table of cells")?.fingerprint().to_owned();
    let modified = || std::fs::metadata(Cache::at(path("other")).path(&fingerprint, "bar code"))?.modified();
    let before = modified()?;
    std::fs::rename(path("dataset/obs/obs_0000.parquet"), path("gone"))?;
    same(&read(&path("other"))?, &expected)?;
    if modified()? == before { Ok(()) } else { Err("the file of pyarrow was replaced".into()) }
}

fn same(found: &RecordBatch, expected: &RecordBatch) -> Result<(), Failed> {
    for (a, b) in found.columns().iter().zip(expected.columns()) {
        if a.to_data() != b.to_data() {
            return Err(format!("{a:?}, expected {b:?}").into());
        }
    }
    if found.num_columns() == expected.num_columns() { Ok(()) } else { Err("columns are missing".into()) }
}
