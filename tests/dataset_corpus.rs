//! The DELTACEL datasets of the conformance corpus, on every kernel level that this machine has.

mod support;

use std::ops::ControlFlow;
use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use support::{bytes_of, decoders, entries, json, same, sha256};
use tilekern::deltacel::dataset::{Dataset, Event, verify};
use tilekern::deltacel::{Csr, Decoder};
use tilekern::{Directory, Error, MappedDirectory};

/// Invalid datasets whose fault lies inside `obs/schema.json`, an obs shard or `var.parquet`: their content is not read
/// yet, so all that is asked is that nothing breaks.
const NOT_JUDGED: [&str; 33] = [
    "code_max",
    "code_minus_2",
    "code_null",
    "code_too_large",
    "obs_shard_sha256_wrong",
    "schema_bool_int",
    "schema_category_float",
    "schema_category_null",
    "schema_category_repeated",
    "schema_category_too_many",
    "schema_format",
    "schema_kind_unknown",
    "schema_name_number",
    "schema_name_repeated",
    "schema_no_columns",
    "schema_not_json",
    "schema_numeric_text",
    "schema_string_binary",
    "schema_version_2",
    "shard_column_extra",
    "shard_column_missing",
    "shard_column_renamed",
    "shard_columns_swapped",
    "shard_extra_row_group",
    "shard_junk",
    "shard_one_row_group",
    "shard_row_short",
    "shard_rows_moved",
    "shard_type_code_int32",
    "shard_type_dictionary",
    "shard_type_float_double",
    "var_table_junk",
    "var_table_short",
];

/// Keys of the manifest that names of fixtures begin with.
const KEYS: [&str; 14] = [
    "format",
    "version",
    "n_cells",
    "n_genes",
    "tile_size",
    "tile_cells",
    "tile_nnz",
    "tile_bytes",
    "has_gene_order",
    "has_obs",
    "metadata",
    "obs_tiles_per_file",
    "obs_shard_bytes",
    "obs_shard_sha256",
];

fn main() {
    support::run("fixtures/deltacel", |corpus| {
        let mut trials = Vec::new();
        for entry in entries(&corpus.join("datasets/index.json")) {
            let name = entry["name"].as_str().expect("a name").to_owned();
            let path = corpus.join("datasets").join(&name);
            trials.push(Trial::test(format!("valid {name}"), move || valid(&path, &entry, &entry)));
        }
        let path = corpus.join("real/pbmc1k");
        let expected = json(&corpus.join("real/pbmc1k.json"));
        trials.push(Trial::test("real pbmc1k", move || valid(&path, &expected["decoded"], &Value::Null)));
        for entry in entries(&corpus.join("datasets_invalid/index.json")) {
            let path = corpus.join("datasets_invalid").join(entry["dataset"].as_str().expect("a dataset"));
            let name = format!("invalid {}", entry["name"].as_str().unwrap_or_default());
            trials.push(Trial::test(name, move || invalid(&path, &entry)));
        }
        trials
    })
}

fn valid(path: &Path, arrays: &Value, entry: &Value) -> Result<(), Failed> {
    let dataset = Dataset::open(path)?;
    same("n_cells", Some(dataset.n_cells()), arrays["n_cells"].as_u64())?;
    same("n_genes", Some(u64::from(dataset.n_genes())), arrays["n_genes"].as_u64())?;
    same("nnz", Some(dataset.manifest().nnz()), arrays["nnz"].as_u64())?;
    if !entry.is_null() {
        same("n_tiles", Some(u64::from(dataset.n_tiles())), entry["n_tiles"].as_u64())?;
        let limits: Vec<u64> = dataset.manifest().tile_limits().collect();
        same("tile_limits", &Value::from(limits), &entry["tile_limits"])?;
        let order = dataset.gene_order()?.map_or(Value::Null, |order| Value::from(order.to_vec()));
        same("gene_order", &order, &entry["gene_order"])?;
        let names = dataset.var_names()?;
        let names = names.map_or(Value::Null, |names| Value::from(names.iter().collect::<Vec<_>>()));
        same("var_names", &names, &entry["var_names"])?;
    }
    // SAFETY: nothing changes the corpus while a test runs.
    #[allow(unsafe_code)]
    let mapped = unsafe { MappedDirectory::new(path)? };
    let sources = [
        ("read", Dataset::open(path)?),
        ("mapped", Dataset::builder().open_source(Box::new(mapped.clone()))?),
        ("parts", Dataset::builder().check_crc(false).open(path)?),
        ("mapped parts", Dataset::builder().check_crc(false).open_source(Box::new(mapped))?),
    ];
    for (n, decoder) in decoders().enumerate() {
        for (how, dataset) in &sources {
            let what = |array: &str| format!("{array}, {how}, {:?}", decoder.kernels());
            let mut whole = Csr::<i32>::new();
            let decoded = dataset.range(0..dataset.n_cells(), &decoder, &mut whole)?;
            let digest = |array: &str| arrays["sha256"][array].as_str().unwrap_or_default().to_owned();
            same(&what("indptr"), sha256(bytes_of(whole.indptr())), digest("indptr"))?;
            same(&what("indices"), sha256(bytes_of(whole.indices())), digest("indices"))?;
            same(&what("data"), sha256(bytes_of(whole.values())), digest("data"))?;
            same("cells decoded", Some(decoded.cells as u64), arrays["n_cells"].as_u64())?;
            same("nonzeros decoded", decoded.nnz, whole.nnz())?;
            let sum: i64 = whole.values().iter().map(|&count| i64::from(count)).sum();
            same("sum", Some(sum), arrays["sum"].as_i64())?;
            // All of them with one source of the four, each decoder with the next.
            if std::ptr::eq(dataset, &sources[n % sources.len()].1) {
                selections(dataset, &decoder, &whole)?;
            }
        }
    }
    let faults = faults(path, &Decoder::new()?)?;
    same("faults", faults.iter().map(Error::to_string).collect::<Vec<_>>(), Vec::new())
}

/// Ranges, and lists in both directions with repeats, give the rows of the whole.
fn selections(dataset: &Dataset, decoder: &Decoder, whole: &Csr<i32>) -> Result<(), Failed> {
    let n = dataset.n_cells();
    let reader = dataset.reader(decoder);
    let mut part = Csr::<i32>::new();
    let step = (n / 7).max(1);
    let bounds: Vec<u64> = (0..=n).step_by(usize::try_from(step)?).collect();
    for &start in &bounds {
        for &end in bounds.iter().filter(|&&end| end >= start) {
            let decoded = reader.range(start..end, &mut part)?;
            same("cells of a range", decoded.cells as u64, end - start)?;
            rows_of(whole, start..end, &part)?;
        }
    }
    let up: Vec<u64> = (0..n).step_by(usize::try_from(step.div_ceil(3))?).collect();
    let lists: [Vec<u64>; 4] = [
        Vec::new(),
        up.clone(),
        up.iter().rev().flat_map(|&cell| [cell, n - 1 - cell, cell]).collect(),
        (0..n).collect(),
    ];
    for cells in lists {
        reader.rows(&cells, &mut part)?;
        rows_of(whole, cells.into_iter(), &part)?;
    }
    let beyond = reader.rows(&[n], &mut part).expect_err("no such cell");
    same("no such cell", (beyond.kind().name(), beyond.value_index()), ("out_of_range", Some(0)))
}

fn rows_of(whole: &Csr<i32>, cells: impl Iterator<Item = u64>, found: &Csr<i32>) -> Result<(), Failed> {
    same("n_genes", found.n_genes(), whole.n_genes())?;
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for cell in cells {
        let cell = usize::try_from(cell)?;
        let row = usize::try_from(whole.indptr()[cell])?..usize::try_from(whole.indptr()[cell + 1])?;
        indices.extend_from_slice(&whole.indices()[row.clone()]);
        values.extend_from_slice(&whole.values()[row]);
        indptr.push(i64::try_from(indices.len())?);
    }
    same("indptr of rows", found.indptr(), &indptr)?;
    same("indices of rows", found.indices() == indices, true)?;
    same("counts of rows", found.values() == values, true)
}

fn faults(path: &Path, decoder: &Decoder) -> Result<Vec<Error>, Failed> {
    let mut faults = Vec::new();
    let mut last = None;
    let source = Directory::new(path)?;
    let _ = verify(&source, decoder, |event| {
        match event {
            Event::Fault(fault) => faults.push(fault),
            Event::Progress { done, tiles } => last = Some((done, tiles)),
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    });
    same("progress to the end", last.is_none_or(|(done, tiles)| done == tiles), true)?;
    Ok(faults)
}

fn invalid(path: &Path, entry: &Value) -> Result<(), Failed> {
    let name = entry["name"].as_str().unwrap_or_default();
    let kind = entry["kind"].as_str().unwrap_or_default();
    let mut told: Option<Vec<String>> = None;
    for decoder in decoders() {
        let found: Vec<String> =
            faults(path, &decoder)?.iter().map(|fault| format!("{fault} [{}]", fault.kind().name())).collect();
        if let Some(told) = &told {
            same("the same faults everywhere", &found, told)?;
        }
        told = Some(found);
    }
    let told = told.unwrap_or_default();
    if std::env::var_os("TILEKERN_SHOW_ERRORS").is_some() {
        println!("{name}: {told:?}");
    }
    if NOT_JUDGED.contains(&name) {
        return same("judged after all: take it off the list", told, Vec::new());
    }
    let faults = faults(path, &Decoder::new()?)?;
    if faults.is_empty() {
        return Err(format!("accepted, though {}", entry["reason"]).into());
    }
    // The fault is told where it lies.
    let key = match name {
        "tile_size_larger" | "tile_size_smaller" | "last_tile_0_cells" | "last_tile_too_large" => "tile_cells",
        "tile_cells_short" => "tile_nnz",
        "obs_tiles_per_file_other" => "obs_shard_bytes",
        _ => KEYS.iter().copied().find(|key| name.starts_with(key)).unwrap_or(""),
    };
    let (file, part) = match kind {
        "tile_file" | "crc" | "total_size" => ("tiles/tile_00000", ""),
        "gene_order" => ("gene_order.npy", ""),
        "var_names" => ("var_names.txt", ""),
        "var_table" => ("var.parquet", ""),
        "obs_schema" => ("obs/schema.json", ""),
        "obs_shard" => ("obs/obs_000", ""),
        "fingerprint" => ("manifest.json: ", "manifest, obs_fingerprint"),
        "manifest" if name == "manifest_missing" => ("manifest_missing: ", "no manifest.json"),
        "manifest" if key.is_empty() => ("manifest.json: ", "manifest at byte"),
        "manifest" => ("manifest.json: ", key),
        other => return Err(format!("a kind that this test does not know: {other}").into()),
    };
    same(&format!("{file} named in {told:?}"), told.iter().all(|fault| fault.contains(file)), true)?;
    let part = if kind == "manifest" && !key.is_empty() { format!("manifest, {key}") } else { part.to_owned() };
    same(&format!("{part} named in {told:?}"), told.iter().any(|fault| fault.contains(&part)), true)?;
    // What opens has its fault in another file; reading everything finds it, too.
    let whole = Dataset::open(path).and_then(|dataset| {
        dataset.gene_order()?;
        dataset.var_names()?;
        dataset.range(0..dataset.n_cells(), &Decoder::new()?, &mut Csr::<i32>::new())
    });
    match whole {
        Err(error) => same("the first fault", told.iter().any(|fault| fault.starts_with(&error.to_string())), true),
        Ok(_) => same("read, though unsound", ["var_table", "obs_schema", "obs_shard"].contains(&kind), true),
    }
}
