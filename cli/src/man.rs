//! `tilekern man`: the manual pages.

use clap::CommandFactory;
use clap::builder::Resettable;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::console::{Console, stdout_failed};
use crate::fault::Stop;
use crate::{Cli, Verdict};

/// Print the manual page, or that of a verb
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern man | man -l -
  tilekern man decode > /usr/local/share/man/man1/tilekern-decode.1")]
pub struct Args {
    /// The verb whose page to print, such as decode
    verb: Option<String>,
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    let mut command = Cli::command();
    // Gives the pages of verbs their full names, and their global options.
    command.build();
    let page = match &args.verb {
        None => command,
        Some(verb) => match command.find_subcommand(verb) {
            Some(page) => page.clone(),
            None => {
                let verbs: Vec<_> = command.get_subcommands().map(clap::Command::get_name).collect();
                return Err(Stop::Usage(format!("no verb {verb:?}; there are {}", verbs.join(", "))));
            }
        },
    };
    let blocks = page.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let page = page.after_long_help(Resettable::Reset);
    Man::new(page).render(console.out()).map_err(stdout_failed)?;
    sections(&blocks).to_writer(console.out()).map_err(stdout_failed)?;
    Ok(Verdict::Sound)
}

/// The blocks below the options of a help, as sections of their own; each has a heading that ends in a colon.
fn sections(blocks: &str) -> Roff {
    let mut roff = Roff::new();
    for block in blocks.split("\n\n") {
        let (heading, lines) = block.split_once(":\n").unwrap_or(("Notes", block));
        roff.control("SH", [heading.to_uppercase().as_str()]).control("nf", []);
        for line in lines.lines() {
            roff.text([roman(line.trim_start())]);
        }
        roff.control("fi", []);
    }
    roff
}
