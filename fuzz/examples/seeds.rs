//! Writes the seeds of every target to `corpus/<target>/`: made here, simulated, and from `$TILEKERN_FIXTURES` if set.

use std::io;
use std::path::Path;

use tilekern::deltacel::{Chunks, CsrView, Encoder, Profile};
use tilekern::parquet::Encoding;
use tilekern::simulate::{Params, Simulator};

fn main() -> io::Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let engine = tilekern_fuzz::TARGETS.iter().map(|target| (target.0, tilekern_fuzz::seeds(target.0)));
    let conversion = tilekern_fuzz::inputs::TARGETS.iter();
    let conversion = conversion.map(|target| (target.0, tilekern_fuzz::inputs::seeds(target.0)));
    for (target, mut seeds) in engine.chain(conversion) {
        let folder = corpus.join(target);
        std::fs::create_dir_all(&folder)?;
        if target.starts_with("tile_") {
            seeds.extend(simulated());
            seeds.extend(fixtures("fixtures/deltacel/valid", "dct")?);
            seeds.extend(fixtures("fixtures/deltacel/invalid", "dct")?);
        }
        if target == "manifest" {
            seeds.extend(manifests("fixtures/deltacel/datasets")?);
            seeds.extend(manifests("fixtures/deltacel/datasets_invalid")?);
        }
        if target == "parquet_payload" {
            seeds.extend(sections("fixtures/parquet/raw")?);
            seeds.extend(sections("fixtures/parquet/malformed")?);
        }
        if target == "mlt_tile" {
            for folder in [
                "v1-synthetic",
                "v1-encodings",
                "v1-real",
                "v2-encodings",
                "v2-fastpfor-page",
                "v2-real",
                "hand",
                "invalid",
            ] {
                seeds.extend(fixtures(&format!("fixtures/mlt/{folder}"), "mlt")?);
            }
        }
        if target == "parquet_file" {
            for folder in ["", "special", "handmade", "matrix", "writers", "bad_data"] {
                seeds.extend(fixtures(&format!("fixtures/parquet/{folder}"), "parquet")?);
            }
        }
        for (i, seed) in seeds.iter().enumerate() {
            std::fs::write(folder.join(format!("seed-{i:03}")), seed)?;
        }
        println!("{target}: {} seeds", seeds.len());
    }
    Ok(())
}

/// Small tiles of realistic counts.
fn simulated() -> Vec<Vec<u8>> {
    [(3, 300), (20, 3000), (5, 33_000)]
        .map(|(cells, genes)| {
            let counts = Simulator::new(&Params { cells, genes, seed: 1 }).cells(0..cells);
            let mut encoder = Encoder::builder()
                .profile(Profile::Plain(19))
                .chunks(Chunks::Count(2))
                .build()
                .expect("sound settings");
            let matrix =
                CsrView { n_genes: genes, indptr: &counts.indptr, indices: &counts.indices, values: &counts.data };
            let mut tile = Vec::new();
            encoder.encode(&matrix, &mut tile).expect("a sound matrix");
            tile
        })
        .into()
}

/// The files of a folder of the conformance corpus that are small enough for a fuzzer.
fn fixtures(folder: &str, extension: &str) -> io::Result<Vec<Vec<u8>>> {
    let Some(root) = std::env::var_os("TILEKERN_FIXTURES") else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(Path::new(&root).join(folder))? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) && path.metadata()?.len() <= 64 << 10 {
            files.push(std::fs::read(path)?);
        }
    }
    Ok(files)
}

/// The manifests of a folder of datasets of the conformance corpus.
fn manifests(folder: &str) -> io::Result<Vec<Vec<u8>>> {
    let Some(root) = std::env::var_os("TILEKERN_FIXTURES") else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(Path::new(&root).join(folder))? {
        files.extend(std::fs::read(entry?.path().join("manifest.json")).ok());
    }
    Ok(files)
}

/// The sections of a folder of the conformance corpus, each behind what its page says of it.
fn sections(folder: &str) -> io::Result<Vec<Vec<u8>>> {
    let Some(root) = std::env::var_os("TILEKERN_FIXTURES") else { return Ok(Vec::new()) };
    let folder = Path::new(&root).join(folder);
    let index: Vec<serde_json::Value> = serde_json::from_slice(&std::fs::read(folder.join("index.json"))?)?;
    let mut seeds = Vec::new();
    for entry in index {
        let text = |key: &str| entry[key].as_str().unwrap_or_default();
        let name = if text("file").is_empty() { format!("{}.bin", text("id")) } else { text("file").to_owned() };
        let width =
            entry["bit_width"].as_u64().or(entry["type_length"].as_u64().map(|length| length.saturating_sub(1)));
        let count = entry["count"].as_u64().unwrap_or(0);
        seeds.extend(section(
            text("encoding"),
            text("physical_type"),
            width.unwrap_or(0),
            count,
            entry["dictionary"].as_array().map_or(0, Vec::len),
            &std::fs::read(folder.join(name))?,
        ));
    }
    Ok(seeds)
}

/// The bytes that `parquet_payload` takes for such a section, unless it is too large for it.
fn section(encoding: &str, kind: &str, width: u64, count: u64, entries: usize, bytes: &[u8]) -> Option<Vec<u8>> {
    const KINDS: [&str; 8] =
        ["BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY"];
    let encoding = Encoding::ALL.iter().position(|known| known.name() == encoding)?;
    let kind = KINDS.iter().position(|known| *known == kind).unwrap_or(1);
    let count = u16::try_from(count).ok()?.to_le_bytes();
    let byte = |n: usize| u8::try_from(n).ok();
    let width = u8::try_from(width).ok()?;
    let mut seed = vec![byte(encoding)?, byte(kind)?, width, count[0], count[1], 0, 0, byte(entries)?];
    seed.extend_from_slice(bytes);
    Some(seed)
}
