//! `tilekern-peers FAMILY [--json]`: tilekern beside other crates on the same data, in one run.

mod deltacel;
mod turns;

use std::process::ExitCode;

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
    let families: Vec<&str> = arguments.iter().map(String::as_str).filter(|argument| *argument != "--json").collect();
    let rows = match families[..] {
        ["deltacel"] => deltacel::run(),
        ["--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    if json {
        println!("{}", serde_json::json!({ "results": rows.iter().map(turns::Row::to_json).collect::<Vec<_>>() }));
    } else {
        turns::print(&rows);
    }
    ExitCode::SUCCESS
}
