//! Sound tiles, cut at every byte and with every bit of header and chunk table flipped.

#[allow(dead_code, unused_imports)] // other tests use the rest
#[path = "../fuzz/src/lib.rs"]
mod bodies;
mod support;

use bodies::build::{ENTRY, HEADER, repair};
use bodies::oracle;
use libtest_mimic::{Failed, Trial};
use support::{decoders, entries, same};
use tilekern::deltacel::{Csr, Decoder, Tile, trace, verify};
use tilekern::{Error, Limits};

/// Cuts, and flips in the table, of one tile that are also tried with size and CRC made right, and decoded in every way;
/// larger tiles are thinned out to about so many. As they are, every cut and every flip is tried.
const MOST: usize = 350;

fn main() {
    let generated = bodies::seeds::tiles().into_iter().enumerate();
    let generated = generated.map(|(i, tile)| Trial::test(format!("generated {i}"), move || damage(&tile))).collect();
    support::run_with(generated, "fixtures/deltacel", |corpus| {
        let mut trials = Vec::new();
        for entry in entries(&corpus.join("valid/index.json")) {
            let path = corpus.join("valid").join(entry["tile"].as_str().expect("a tile"));
            let name = format!("corpus {}", entry["name"].as_str().unwrap_or_default());
            trials.push(Trial::test(name, move || damage(&std::fs::read(&path)?)));
        }
        trials
    })
}

/// What a tile decodes to; the number of genes is no part of it, since nothing protects it within its range.
type Arrays = (Vec<i64>, Vec<i32>, Vec<i32>);

fn damage(sound: &[u8]) -> Result<(), Failed> {
    let decoders: Vec<Decoder> = decoders().collect();
    let expected = decoded(sound, &decoders, true)?.map_err(|error| format!("not sound: {error}"))?;
    let n_chunks = Tile::open(sound)?.n_chunks() as usize;

    for cut in 0..sound.len() {
        if Tile::open(&sound[..cut]).is_ok() {
            return Err(format!("cut to {cut} bytes: accepted").into());
        }
    }
    let mut tile = sound.to_vec();
    for bit in 8 * HEADER..8 * (HEADER + ENTRY * n_chunks) {
        tile[bit / 8] ^= 1 << (bit % 8);
        // All of the table is under the CRC.
        if Tile::open(&tile).is_ok() {
            return Err(format!("bit {bit}: accepted").into());
        }
        tile[bit / 8] ^= 1 << (bit % 8);
    }
    let step = sound.len().div_ceil(MOST).max(1);
    let around_parts = (0..HEADER + ENTRY).chain(sound.len().saturating_sub(20)..sound.len());
    for cut in (0..sound.len()).step_by(step).chain(around_parts).filter(|&cut| cut < sound.len()) {
        check(&sound[..cut], &decoders, None, cut % 8 == 0)
            .map_err(|e| format!("cut to {cut} bytes: {}", message(&e)))?;
    }
    let table = HEADER..HEADER + ENTRY * n_chunks;
    let step = (8 * table.len()).div_ceil(MOST).max(1) | 1; // odd, so that each bit of a byte has its turn
    for bit in (0..8 * HEADER).chain((8 * table.start..8 * table.end).step_by(step)) {
        let mut tile = sound.to_vec();
        tile[bit / 8] ^= 1 << (bit % 8);
        check(&tile, &decoders, Some(&expected), bit % 8 == 7).map_err(|e| format!("bit {bit}: {}", message(&e)))?;
    }
    Ok(())
}

fn message(failed: &Failed) -> &str {
    failed.message().unwrap_or_default()
}

/// A damaged tile is refused, or gives `expected`. With size and CRC made right it is another tile: what it then is, the
/// oracle says.
fn check(tile: &[u8], decoders: &[Decoder], expected: Option<&Arrays>, every_way: bool) -> Result<(), Failed> {
    match (decoded(tile, decoders, every_way)?, expected) {
        (Err(_), _) => {}
        (Ok(found), Some(expected)) => same("the arrays", found == *expected, true)?,
        (Ok(_), None) => return Err("accepted".into()),
    }
    let mut repaired = tile.to_vec();
    repair(&mut repaired);
    let found = decoded(&repaired, decoders, every_way)?;
    let declared = repaired.get(24..32).map_or(0, |nnz| u64::from_le_bytes(nnz.try_into().unwrap_or_default()));
    if repaired.len() < HEADER || declared > oracle::MAX_NONZEROS {
        return Ok(());
    }
    let oracle = oracle::read(&repaired).map(|matrix| (matrix.indptr, matrix.indices, matrix.counts));
    match (found, oracle) {
        (Ok(found), Some(expected)) => same("the arrays of the oracle", found == expected, true),
        (Err(_), None) => Ok(()),
        (Ok(_), None) => Err("repaired: accepted, but not by the oracle".into()),
        (Err(error), Some(_)) => Err(format!("repaired: accepted by the oracle, but {error}").into()),
    }
}

/// What every decoder gives, be it arrays or the same error; `every_way` takes the other ways to read a tile, too.
fn decoded(tile: &[u8], decoders: &[Decoder], every_way: bool) -> Result<Result<Arrays, String>, Failed> {
    let line = |error: Error| format!("{error} [{}]", error.kind().name());
    if every_way && let Ok(open) = Tile::open_without_crc(tile) {
        _ = decoders[0].decode(&open, &mut Csr::<f32>::new());
    }
    let opened = match Tile::open(tile) {
        Ok(opened) => opened,
        Err(error) => {
            let error = line(error);
            if every_way {
                same("faults of a tile that does not open", verify(tile, &decoders[0]).is_empty(), false)?;
                same("fault of its trace", trace(tile, None, &Limits::default()).fault.is_some(), true)?;
            }
            return Ok(Err(error));
        }
    };
    let run = |decoder: &Decoder| {
        let mut csr = Csr::<i32>::new();
        let result = decoder.decode(&opened, &mut csr).map_err(line);
        result.map(|_| (csr.indptr().to_vec(), csr.indices().to_vec(), csr.values().to_vec()))
    };
    let first = run(&decoders[0]);
    for decoder in &decoders[1..] {
        if run(decoder) != first {
            return Err(format!("{:?}, {} threads: not as the first", decoder.kernels(), decoder.threads()).into());
        }
    }
    if every_way {
        same("soundness", verify(tile, &decoders[0]).is_empty(), first.is_ok())?;
    }
    Ok(first)
}
