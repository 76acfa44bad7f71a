//! The reference: every operation as a plain loop. Other rows must agree with it bit for bit, and use it for tails.

pub mod alp;
pub mod bits;
pub mod delta;
pub mod fsst;
pub mod gather;
pub mod morton;
pub mod patch;
pub mod planes;
pub mod rans;
pub mod runs;
pub mod scan;
pub mod spread;
pub mod strings;
pub mod swap;
pub mod varint;
pub mod zigzag;
