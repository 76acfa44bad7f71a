//! `tilekern completions`: what a shell needs to complete the command line.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::console::{Console, stdout_failed};
use crate::fault::Stop;
use crate::{Cli, Verdict};

/// Print the completions for a shell
#[derive(clap::Args, Debug)]
#[command(after_long_help = "\
Examples:
  tilekern completions bash > ~/.local/share/bash-completion/completions/tilekern
  tilekern completions zsh > ~/.zfunc/_tilekern
  tilekern completions fish > ~/.config/fish/completions/tilekern.fish")]
pub struct Args {
    /// Which shell
    shell: Shell,
}

pub fn run(args: &Args, console: &mut Console) -> Result<Verdict, Stop> {
    // Into memory first: the generator panics where a write fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tilekern", &mut script);
    std::io::Write::write_all(console.out(), &script).map_err(stdout_failed)?;
    Ok(Verdict::Sound)
}
