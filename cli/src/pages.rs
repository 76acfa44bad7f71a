//! `tilekern pages`: the pages of a Parquet file.

use tilekern::Limits;

use crate::console::Console;
use crate::fault::{Fault, Stop};
use crate::source::{AnyInput, Found};
use crate::{Verdict, parquet};

/// Show each page of a Parquet file: where, of which type, how encoded and compressed, values and nulls
///
/// Headers, checksums and levels are read, values are not. Offsets are those of the headers in the file; sizes are those of
/// header, body as stored, body unpacked, and the levels in it, which come before the values. The pages end at the first fault, which is told last; `verify` tells all.
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern pages orders.parquet                  all pages
  tilekern pages orders.parquet country          those of one column
  tilekern pages orders.parquet 0 --row-group 2  of the first column, in the third row group
  tilekern pages orders.parquet --json | jq '.pages[] | select(.encoding == \"PLAIN\")'")]
pub struct Args {
    #[command(flatten)]
    input: AnyInput,

    /// Only this column: its name, its path with dots, or its number from 0
    column: Option<String>,

    /// Only the row group of this number, from 0
    #[arg(long, value_name = "N")]
    row_group: Option<usize>,
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let path = &args.input.path;
    match args.input.found(&Limits::default())? {
        Found::Parquet(bytes) => parquet::pages::run(&bytes, path, args.column.as_deref(), args.row_group, console),
        Found::Tile(_) | Found::Dataset | Found::Mlt(..) | Found::Archive(_) => {
            let why = "has no pages, which are Parquet's: `tilekern info` tells how it is cut";
            Err(Fault::new("unsupported", path, why).into())
        }
    }
}
