//! The reference: every operation as a plain loop. Other rows must agree with it bit for bit, and use it for tails.

pub mod patch;
pub mod planes;
pub mod scan;
