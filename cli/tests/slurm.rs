//! The job script in docs/ submits commands that do what it says.
#![cfg(unix)]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::tempdir;

#[test]
fn the_jobs_make_the_dataset() {
    let temp = tempdir().unwrap();
    let path = |name: &str| temp.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("in put.mtx"), "%%MatrixMarket matrix coordinate integer general\n3 5 2\n1 1 1\n3 4 7\n").unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/convert.slurm");
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&script);
        command.env("DRY_RUN", "1").args(arguments).stdin(Stdio::null()).output().unwrap()
    };
    let (input, out) = (path("in put.mtx"), path("out"));
    let output = run(&[&out, "3", &input, "--", "--tile-size", "1"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{text}");
    let jobs: Vec<&str> = text.lines().filter(|line| line.starts_with("sbatch ")).collect();
    assert_eq!(jobs.len(), 3, "{text}");
    // What Slurm would run: the wrapped command, for each number of its array.
    for job in jobs {
        let (_, wrapped) = job.split_once("--wrap=").unwrap();
        let numbers = if job.contains("--array=0-2") { vec!["0", "1", "2"] } else { vec![""] };
        for number in numbers {
            let binary = Path::new(env!("CARGO_BIN_EXE_tilekern")).parent().unwrap();
            let search = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
            let mut shell = Command::new("sh");
            let shell = shell.args(["-c", wrapped]).env("PATH", search).env("SLURM_ARRAY_TASK_ID", number);
            let output = shell.output().unwrap();
            assert!(output.status.success(), "{wrapped}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    let found = support::tilekern(["decode", &out, "--json"]).json();
    assert_eq!((found["n_cells"].as_u64(), found["sum"].as_u64()), (Some(5), Some(8)));
    assert_eq!(run(&[]).status.code(), Some(2));
}
