//! The DELTACEL tiles of the conformance corpus, on every kernel level that this machine has.

mod support;

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use support::{bytes_of, decoders, entries, same, sha256};
use tilekern::deltacel::{Csr, Decoder, Tile, verify};

fn main() {
    support::run("fixtures/deltacel", |corpus| {
        let mut trials = Vec::new();
        for entry in entries(&corpus.join("valid/index.json")) {
            let path = corpus.join("valid").join(entry["tile"].as_str().expect("a tile"));
            let name = format!("valid {}", entry["name"].as_str().unwrap_or_default());
            trials.push(Trial::test(name, move || valid(&path, &entry)));
        }
        for entry in entries(&corpus.join("invalid/index.json")) {
            let path = corpus.join("invalid").join(entry["tile"].as_str().expect("a tile"));
            let name = format!("invalid {}", entry["name"].as_str().unwrap_or_default());
            trials.push(Trial::test(name, move || invalid(&path, &entry)));
        }
        trials
    })
}

fn valid(path: &Path, entry: &Value) -> Result<(), Failed> {
    let bytes = std::fs::read(path)?;
    let tile = Tile::open(&bytes)?;
    same("n_cells", Some(tile.n_cells() as u64), entry["n_cells"].as_u64())?;
    same("n_genes", Some(u64::from(tile.n_genes())), entry["n_genes"].as_u64())?;
    same("nnz", Some(tile.nnz()), entry["nnz"].as_u64())?;
    for decoder in decoders() {
        let what = |array: &str| format!("{array}, {:?}", decoder.kernels());
        let mut csr = Csr::<i32>::new();
        let decoded = decoder.decode(&tile, &mut csr)?;
        let expected = &entry["sha256"];
        same(&what("indptr"), sha256(bytes_of(csr.indptr())).as_str(), expected["indptr"].as_str().unwrap_or(""))?;
        same(&what("indices"), sha256(bytes_of(csr.indices())).as_str(), expected["indices"].as_str().unwrap_or(""))?;
        same(&what("data"), sha256(bytes_of(csr.values())).as_str(), expected["data"].as_str().unwrap_or(""))?;
        same("decoded", decoded.nnz, csr.nnz())?;
        let sum: i64 = csr.values().iter().map(|&count| i64::from(count)).sum();
        same("sum", Some(sum), entry["sum"].as_i64())?;

        let mut floats = Csr::<f32>::new();
        let decoded = decoder.decode(&tile, &mut floats)?;
        let large = csr.values().iter().filter(|&&count| count > 1 << 24).count();
        same("counts above 2^24", decoded.inexact, large)?;
        let as_floats: Vec<f32> = csr.values().iter().map(|&count| count as f32).collect();
        same("f32 equal", floats.values() == as_floats, true)?;
        same("f32 indices", floats.indices(), csr.indices())?;

        let mut short = Csr::<u16>::new();
        let as_short: Result<Vec<u16>, _> = csr.values().iter().map(|&count| u16::try_from(count)).collect();
        match (decoder.decode(&tile, &mut short), as_short) {
            (Ok(_), Ok(expected)) => same("u16 equal", short.values() == expected, true)?,
            (Err(error), Err(_)) => same("u16 refusal", error.kind().name(), "out_of_range")?,
            (result, expected) => {
                return Err(format!("u16: {result:?}, though it fits: {}", expected.is_ok()).into());
            }
        }

        let mut genes = Csr::<i32>::new();
        decoder.decode_indices(&tile, 0..tile.n_cells(), &mut genes)?;
        same("indices alone", genes.indices(), csr.indices())?;
        same("counts of indices alone", genes.values().len(), 0)?;
        ranges(&decoder, &tile, &csr)?;
        same("verify", verify(&bytes, &decoder).len(), 0)?;
    }
    Ok(())
}

/// Every range of cells (a sample of them in large tiles) gives the rows of the whole.
fn ranges(decoder: &Decoder, tile: &Tile<'_>, whole: &Csr<i32>) -> Result<(), Failed> {
    let n = tile.n_cells();
    let step = n.div_ceil(8).max(1);
    let mut part = Csr::<i32>::new();
    for start in (0..=n).step_by(step) {
        for end in (start..=n).step_by(step) {
            decoder.decode_cells(tile, start..end, &mut part)?;
            let (from, to) = (whole.indptr()[start], whole.indptr()[end]);
            let bounds: Vec<i64> = whole.indptr()[start..=end].iter().map(|bound| bound - from).collect();
            same("indptr of a range", part.indptr(), &bounds)?;
            let values = usize::try_from(from)?..usize::try_from(to)?;
            same("indices of a range", part.indices() == &whole.indices()[values.clone()], true)?;
            same("counts of a range", part.values() == &whole.values()[values], true)?;
        }
    }
    Ok(())
}

fn invalid(path: &Path, entry: &Value) -> Result<(), Failed> {
    let bytes = std::fs::read(path)?;
    let mut told: Option<String> = None;
    for decoder in decoders() {
        let mut csr = Csr::<i32>::new();
        let error = match Tile::open(&bytes).and_then(|tile| decoder.decode(&tile, &mut csr)) {
            Ok(_) => return Err(format!("accepted, though {}", entry["reason"]).into()),
            Err(error) => error,
        };
        if error.offset().is_none_or(|offset| offset > bytes.len() as u64) {
            return Err(format!("no offset inside the object: {error}").into());
        }
        let message = format!("{error} [{}]", error.kind().name());
        if let Some(told) = &told {
            same("the same error everywhere", &message, told)?;
        }
        let faults = verify(&bytes, &decoder);
        if !faults.iter().any(|fault| fault.to_string() == error.to_string()) {
            return Err(format!("verify tells {faults:?}, a decode {error}").into());
        }
        told = Some(message);
    }
    if std::env::var_os("TILEKERN_SHOW_ERRORS").is_some() {
        println!("{}: {}", entry["name"].as_str().unwrap_or_default(), told.unwrap_or_default());
    }
    Ok(())
}
