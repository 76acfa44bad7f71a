//! Shared by the tests that read the corpora.
#![allow(dead_code)] // each test target uses its part

#[cfg(feature = "mlt")]
pub mod mlt;
#[cfg(feature = "parquet")]
pub mod parquet;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use sha2::{Digest, Sha256};
use tilekern::deltacel::{Decoder, Tile};
use tilekern::kernels::Kernels;
use tilekern::{ErrorKind, Unsupported};

/// The folder that holds the corpora: `TILEKERN_FIXTURES`, else `../shared` beside the checkout.
pub fn fixtures() -> PathBuf {
    match std::env::var_os("TILEKERN_FIXTURES") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
    }
}

/// Whether a missing corpus is a failure.
fn required() -> bool {
    std::env::var_os("TILEKERN_REQUIRE_FIXTURES").is_some_and(|value| value != "0" && !value.is_empty())
}

/// Runs the trials that `list` makes of the corpus in `fixtures/<folder>`.
///
/// Without the corpus there is one test: ignored, or failing where `TILEKERN_REQUIRE_FIXTURES` is set.
pub fn run(folder: &str, list: impl FnOnce(&Path) -> Vec<Trial>) -> ! {
    run_with(Vec::new(), folder, list)
}

/// As [`run`], behind trials that need no corpus.
pub fn run_with(mut trials: Vec<Trial>, folder: &str, list: impl FnOnce(&Path) -> Vec<Trial>) -> ! {
    let arguments = Arguments::from_args();
    let corpus = fixtures().join(folder);
    if cfg!(target_endian = "big") {
        let refused = || match Tile::open(&[]) {
            Err(error) if error.kind() == ErrorKind::Unsupported(Unsupported::BigEndianHost) => Ok(()),
            other => Err(format!("not refused by a big-endian host: {other:?}").into()),
        };
        trials = vec![Trial::test("tiles are refused", refused)];
    } else if corpus.is_dir() {
        trials.extend(list(&corpus));
    } else {
        let message = format!("no corpus at {}; set TILEKERN_FIXTURES", corpus.display());
        let missing = Trial::test(format!("corpus {folder}"), move || Err(Failed::from(message)));
        trials.push(missing.with_ignored_flag(!required()));
    }
    libtest_mimic::run(&arguments, trials).exit()
}

/// Reads a JSON file of the corpus.
pub fn json(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The entries of an `index.json`.
pub fn entries(path: &Path) -> Vec<Value> {
    json(path).as_array().expect("a list").clone()
}

/// One decoder of each kind: kernels and number of threads.
pub fn decoders() -> impl Iterator<Item = Decoder> {
    Kernels::available().flat_map(|kernels| {
        [1, 3].map(|threads| Decoder::builder().kernels(kernels).threads(threads).build().expect("a decoder"))
    })
}

/// SHA-256 in lower-case hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of plain values, little-endian as every host that decodes tiles is.
pub fn bytes_of<T: bytemuck::Pod>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// A failure unless both are equal.
pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, expected {expected:?}").into()) }
}
