//! FastPFOR payloads of version 1 of the MapLibre Tile corpus, on every kernel level that this machine has.

mod support;

use std::path::Path;

use libtest_mimic::{Failed, Trial};
use support::same;
use tilekern::kernels::Kernels;
use tilekern::mlt::encoding::{Scratch, fastpfor};
use tilekern::mlt::{Input, Options};

/// Payloads start here in their object, so that offsets are seen to be absolute.
const START: u64 = 1_000_000;

fn main() {
    support::run("fixtures/mlt/payloads", |corpus| {
        let files = std::fs::read_dir(corpus).expect("a folder").map(|entry| entry.expect("an entry").path());
        let mut encoded: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with("_encoded.bin")).collect();
        encoded.sort();
        assert!(!encoded.is_empty(), "no payloads");
        let name = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        encoded.into_iter().map(|path| Trial::test(name(&path), move || payload(&path))).collect()
    })
}

fn payload(path: &Path) -> Result<(), Failed> {
    let bytes = std::fs::read(path)?;
    let expected = std::fs::read(path.to_string_lossy().replace("_encoded", "_decoded"))?;
    let expected: Vec<u32> = expected.as_chunks::<4>().0.iter().map(|word| u32::from_be_bytes(*word)).collect();
    let mut again = Vec::new();
    fastpfor::encode_256(&expected, &mut again);
    let mut scratch = Scratch::new();
    let mut told = Vec::new();
    for options in Kernels::available().map(Options::with_kernels) {
        let mut decode = |bytes: &[u8]| {
            let mut values = vec![0u32; expected.len()];
            fastpfor::decode_256(Input::at(bytes, START), &mut values, &options, &mut scratch).map(|()| values)
        };
        same(&format!("values, {:?}", options.kernels), decode(&bytes)? == expected, true)?;
        same("values encoded again", decode(&again)? == expected, true)?;
        // Cut anywhere, it is refused, the same on every level.
        let cuts = (0..bytes.len()).map(|cut| match decode(&bytes[..cut]) {
            Ok(_) => Err(format!("cut to {cut} bytes: accepted")),
            Err(error) if error.offset().is_some_and(|at| (START..=START + cut as u64).contains(&at)) => {
                Ok(format!("{error:?}"))
            }
            Err(error) => Err(format!("cut to {cut} bytes: no offset inside: {error:?}")),
        });
        told.push(cuts.collect::<Result<Vec<_>, _>>()?);
    }
    same("the same errors on every level", told.windows(2).all(|two| two[0] == two[1]), true)
}
