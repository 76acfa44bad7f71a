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

/// Kinds of invalid datasets whose fault lies inside `obs/schema.json`, an obs shard or `var.parquet`: without the
/// feature `obs` their content is not read, so all that is asked is that nothing breaks.
const TABLES: [&str; 4] = ["obs_schema", "obs_shard", "obs_value", "var_table"];

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
        #[cfg(feature = "obs")]
        tables::valid(&dataset, entry)?;
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
    let mut warnings = Vec::new();
    let mut last = None;
    let source = Directory::new(path)?;
    let _ = verify(&source, decoder, |event| {
        match event {
            Event::Fault(fault) => faults.push(fault),
            Event::Progress { done, tiles } => last = Some((done, tiles)),
            Event::Warning(warning) => warnings.push(warning.to_string()),
            other => panic!("{other:?}"),
        }
        ControlFlow::<()>::Continue(())
    });
    same("progress to the end", last.is_none_or(|(done, tiles)| done == tiles), true)?;
    same("warnings", warnings.is_empty() || !faults.is_empty(), true)?;
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
    if !cfg!(feature = "obs") && TABLES.contains(&kind) {
        return Ok(());
    }
    if told.is_empty() {
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
        "obs_value" => ("obs/obs_000", ", column 0, value "),
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
        #[cfg(feature = "obs")]
        tables::read(&dataset)?;
        dataset.range(0..dataset.n_cells(), &Decoder::new()?, &mut Csr::<i32>::new())
    });
    match whole {
        Err(error) => same("the first fault", told.iter().any(|fault| fault.starts_with(&error.to_string())), true),
        // What a manifest says of a whole shard is looked at when all of it is.
        Ok(_) if cfg!(feature = "obs") => same("read, though unsound", name, "obs_shard_sha256_wrong"),
        Ok(_) => same("read, though unsound", TABLES.contains(&kind), true),
    }
}

/// The tables of cells and genes.
#[cfg(feature = "obs")]
mod tables {
    use tilekern::deltacel::dataset::obs::{Value as Found, getter};

    use super::*;

    /// Reads all of both.
    pub fn read(dataset: &Dataset) -> Result<(), Error> {
        dataset.var()?;
        let Some(obs) = dataset.obs()? else { return Ok(()) };
        let names: Vec<&str> = obs.schema().columns.iter().map(|column| &*column.name).collect();
        obs.codes(&names, &(0..dataset.n_cells()).collect::<Vec<_>>()).map(drop)
    }

    /// The stored values are those of the corpus, in any order of the cells.
    pub fn valid(dataset: &Dataset, entry: &Value) -> Result<(), Failed> {
        let Some(var) = dataset.var()? else { return valid_obs(dataset, entry) };
        same("rows of var", var.num_rows() as u64, u64::from(dataset.n_genes()))?;
        valid_obs(dataset, entry)
    }

    fn valid_obs(dataset: &Dataset, entry: &Value) -> Result<(), Failed> {
        let Some(obs) = dataset.obs()? else { return same("obs", &entry["obs"], &Value::Null) };
        let columns = obs.schema().columns.iter().map(|column| {
            let (kind, stored) = (column.kind.name(), column.arrow_type.name());
            Value::from(vec![Value::from(&*column.name), kind.into(), stored.into(), column.categories.len().into()])
        });
        same("obs_columns", &columns.collect::<Value>(), &entry["obs_columns"])?;
        let n = dataset.n_cells();
        let folder = tempfile::tempdir()?;
        let cached = dataset.obs()?.map(|obs| obs.cached(tilekern::deltacel::dataset::obs::Cache::at(folder.path())));
        let lists: [Vec<u64>; 3] =
            [(0..n).collect(), (0..n).rev().flat_map(|cell| [cell, n - 1 - cell]).collect(), vec![]];
        for cells in &lists {
            for table in [Some(&obs), cached.as_ref()].into_iter().flatten() {
                for column in &obs.schema().columns {
                    let rows = table.codes(&[&column.name], cells)?;
                    let get = getter(rows.column(0)).ok_or("a type without values")?;
                    let found: Vec<Value> = (0..rows.num_rows()).map(|row| json_of(get(row))).collect();
                    let expected = &entry["obs"][&column.name];
                    let expected: Vec<Value> = cells.iter().map(|&cell| expected[cell as usize].clone()).collect();
                    let alike = found.iter().zip(&expected).all(|(found, expected)| alike(found, expected));
                    if !alike || found.len() != expected.len() {
                        same(&column.name, found, expected)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn json_of(value: Found<'_>) -> Value {
        match value {
            Found::Null => Value::Null,
            Found::Bool(value) => value.into(),
            Found::Int(value) => match u64::try_from(value) {
                Ok(value) => value.into(),
                Err(_) => i64::try_from(value).expect("64 bits").into(),
            },
            Found::Float(value) if value.is_nan() => "NaN".into(),
            Found::Float(value) if value == f64::INFINITY => "Infinity".into(),
            Found::Float(value) => value.into(),
            Found::String(text) => text.into(),
        }
    }

    /// Equal; numbers bit by bit, and with the same sign of zero.
    fn alike(found: &Value, expected: &Value) -> bool {
        match (found, expected) {
            (Value::Number(a), Value::Number(b)) if a.is_f64() => {
                a.as_f64().map(f64::to_bits) == b.as_f64().map(f64::to_bits)
            }
            (a, b) => a == b,
        }
    }
}
