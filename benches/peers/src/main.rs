//! `tilekern-peers FAMILY [--json]`: tilekern beside other crates on the same data, in one run.

mod deltacel;
mod mlt;
mod oracle;
mod parquet;
mod read;
mod turns;

use std::process::ExitCode;

use serde_json::Value;

const HELP: &str = "\
tilekern beside other crates, on the same data in one run

Usage: tilekern-peers FAMILY [--json]

Families:
  deltacel   whole tiles: libzstd through the zstd crate with plain loops, ruzstd with plain loops, and the same
             matrix in the bitpacking crate's blocks (larger; no entropy coding)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let json = arguments.iter().any(|argument| argument == "--json");
    let show = |rows: Vec<Value>| println!("{}", serde_json::json!({ "results": rows }));
    match arguments.first().map(String::as_str) {
        Some("deltacel") => {
            let rows = deltacel::run();
            if json { show(rows.iter().map(turns::Row::to_json).collect()) } else { turns::print(&rows) }
        }
        Some("read") => match read::run(&arguments) {
            Ok(rows) if json => show(rows.iter().map(read::Row::to_json).collect()),
            Ok(rows) => read::print(&rows),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        },
        Some("parquet") => match parquet::run(&arguments) {
            Ok(rows) if json => show(rows.iter().map(parquet::Row::to_json).collect()),
            Ok(rows) => parquet::print(&rows),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        },
        Some("mlt") => match mlt::run(&arguments) {
            Ok(rows) if json => show(rows.iter().map(mlt::Row::to_json).collect()),
            Ok(rows) => mlt::print(&rows),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        },
        Some("--help" | "-h") => print!("{HELP}{}{}{}", parquet::HELP, mlt::HELP, read::HELP),
        _ => {
            eprint!("{HELP}{}{}{}", parquet::HELP, mlt::HELP, read::HELP);
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
