//! Runs the commands of docs/tutorial.md, as they stand there. What `curl` would fetch is made by a script, and what
//! `cargo` would build is built already.
//!
//! Without Python and the libraries that the tutorial uses there is one test: ignored, or failing where
//! `TILEKERN_REQUIRE_PYTHON` is set.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use support::{names, switched_on};
use tempfile::tempdir;

const CURL: &str = r#"#!/bin/sh
# curl -sSfLo FILE URL
case "$#,$1,$3" in 3,-sSfLo,https://*) exec python3 "$STANDS_IN" "$2" ;; esac
echo "unknown: curl $*" >&2
exit 2
"#;

const CARGO: &str = r#"#!/bin/sh
case "$*" in
"build --release") exit ;;
"run --release -p tilekern-cli --example "*) 
    shift 5; name=$1; shift 2
    [ -x "$EXAMPLES/$name" ] || { echo "not built: cargo build -p tilekern-cli --examples" >&2; exit 1; }
    exec "$EXAMPLES/$name" "$@" ;;
esac
echo "unknown: cargo $*" >&2
exit 2
"#;

fn main() {
    let arguments = Arguments::from_args();
    let found = Command::new("python3").args(["-c", "import h5py, scipy, anndata"]).output();
    let there = cfg!(unix) && found.is_ok_and(|output| output.status.success());
    let mut trials = vec![Trial::test("the loop is that of the example", the_loop)];
    trials.push(if there {
        Trial::test("commands", commands)
    } else {
        let missing = || Err(Failed::from("no python3 with h5py, scipy and anndata"));
        Trial::test("commands", missing).with_ignored_flag(!switched_on("TILEKERN_REQUIRE_PYTHON"))
    });
    libtest_mimic::run(&arguments, trials).exit()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn tutorial() -> Result<String, Failed> {
    Ok(fs::read_to_string(root().join("docs/tutorial.md"))?)
}

/// The code blocks of a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let parts = text.split("\n```").skip(1).step_by(2);
    parts.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

fn the_loop() -> Result<(), Failed> {
    let example = fs::read_to_string(root().join("cli/examples/batches.rs"))?;
    let text = tutorial()?;
    let shown = blocks(&text, "rust");
    let differs = shown.iter().any(|block| !example.contains(block));
    if differs || shown.is_empty() { Err("the tutorial shows other code than the example".into()) } else { Ok(()) }
}

fn commands() -> Result<(), Failed> {
    let folder = tempdir()?;
    let (work, shims) = (folder.path().join("work"), folder.path().join("shims"));
    fs::create_dir(&work)?;
    fs::create_dir(&shims)?;
    for (name, text) in [("curl", CURL), ("cargo", CARGO)] {
        fs::write(shims.join(name), text)?;
        #[cfg(unix)]
        fs::set_permissions(shims.join(name), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    }
    let binaries = Path::new(env!("CARGO_BIN_EXE_tilekern")).parent().ok_or("a folder of binaries")?;
    let path = format!("{}:{}:{}", shims.display(), binaries.display(), std::env::var("PATH")?);
    let text = tutorial()?;
    let mut said = String::new();
    for block in blocks(&text, "sh") {
        let mut shell = Command::new("sh");
        shell.args(["-euc", block]).current_dir(&work).env("PATH", &path).stdin(Stdio::null());
        shell.env("STANDS_IN", root().join("tests/python/tenx.py")).env("EXAMPLES", binaries.join("examples"));
        let output = shell.env("PYTHONDONTWRITEBYTECODE", "1").output()?;
        said += &String::from_utf8(output.stdout)?;
        if !output.status.success() {
            return Err(format!("{block}\n{said}\n{}", String::from_utf8_lossy(&output.stderr)).into());
        }
    }
    let made = [
        "genes.tsv",
        "labelled",
        "labelled.h5ad",
        "labelled.npz",
        "myeloid.npy",
        "pbmc",
        "pbmc.h5",
        "pbmc.h5ad",
        "pbmc.svg",
    ];
    if names(&work) != made {
        return Err(format!("it made {:?}", names(&work)).into());
    }
    for words in ["300", "pbmc: sound", "lymphoid", "epoch 1: ", "position: ", " 0 batches"] {
        if !said.contains(words) {
            return Err(format!("{words:?} is not in what it said:\n{said}").into());
        }
    }
    Ok(())
}
