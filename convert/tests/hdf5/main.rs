//! HDF5 inputs: those of the corpora against what is expected of them, and files that Python's libraries make in the test
//! against what these libraries read.
//!
//! Without the corpora, or without python3 with its libraries, there is one test in their place: ignored, or failing where
//! `TILEKERN_REQUIRE_FIXTURES` or `TILEKERN_REQUIRE_PYTHON` is set.

mod corpus;
mod matrix;
mod python;
mod tables;

use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use tilekern_convert::{Hdf5, Input, InputOptions, Source};

fn main() {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    match fixtures() {
        Some(root) => trials.extend(corpus::trials(&root)),
        None => trials.push(missing("the corpora", "TILEKERN_REQUIRE_FIXTURES")),
    }
    if python::is_there() {
        trials.extend(python::trials(fixtures().as_deref()));
    } else {
        trials.push(missing("python3 with numpy, scipy, h5py and anndata", "TILEKERN_REQUIRE_PYTHON"));
    }
    libtest_mimic::run(&arguments, trials).exit()
}

/// The folder that holds the corpora: `TILEKERN_FIXTURES`, else `../shared` beside the checkout.
fn fixtures() -> Option<PathBuf> {
    let root = match std::env::var_os("TILEKERN_FIXTURES") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"),
    };
    root.join("fixtures/deltacel/inputs").is_dir().then_some(root)
}

fn missing(what: &'static str, switch: &str) -> Trial {
    let required = std::env::var_os(switch).is_some_and(|value| value != "0" && !value.is_empty());
    let fail = move || Err(Failed::from(format!("there is no {what}")));
    Trial::test(what, fail).with_ignored_flag(!required)
}

/// Opens a matrix, with `[feature_type=NAME]` behind its slot.
fn open(path: &Path, slot: &str, memory: usize, scratch: &Path) -> tilekern_convert::Result<Box<dyn Input>> {
    let (slot, feature_type) = match slot.split_once("[feature_type=") {
        Some((slot, rest)) => (slot, Some(rest.trim_end_matches(']').to_owned())),
        None => (slot, None),
    };
    // The corpora call it by both names.
    let slot = slot.replace("raw.X", "raw/X");
    Hdf5::open(path)?.open(&slot, &InputOptions { feature_type, memory, scratch: scratch.to_owned(), tables: true })
}

/// A failure unless both are equal.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<(), Failed> {
    if found == expected { Ok(()) } else { Err(format!("{what}: {found:?}, expected {expected:?}").into()) }
}
