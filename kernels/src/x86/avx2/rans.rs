//! Symbols out of four rANS lanes.

use crate::scalar;
use crate::{RansSeen, RansTable};

/// The plain loop, compiled for this level.
#[target_feature(enable = "avx2,bmi1,bmi2,fma,lzcnt,popcnt")]
pub(crate) fn rans_symbols(
    slots: &[u32],
    tables: &[RansTable; 14],
    depth: u32,
    lanes: &[&[u8]; 4],
    states: &[u32; 4],
    starts: &[u8],
    out: &mut [[u16; 2]],
) -> RansSeen {
    scalar::rans::rans_symbols(slots, tables, depth, lanes, states, starts, out)
}
