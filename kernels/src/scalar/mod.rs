//! The reference: every operation as a plain loop. Other rows must agree with it bit for bit, and use it for tails.

pub mod bits;
pub mod delta;
pub mod gather;
pub mod patch;
pub mod planes;
pub mod runs;
pub mod scan;
pub mod strings;
