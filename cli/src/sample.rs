//! x
use crate::Verdict;
use crate::console::Console;
use crate::fault::Stop;
/// x
#[derive(clap::Args, Debug)]
pub struct Args {}
pub fn run(_: &Args, _: &mut Console) -> Result<Verdict, Stop> {
    Ok(Verdict::Sound)
}
