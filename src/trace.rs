//! Traces: what each byte of an object means, step by step.
//!
//! A format's trace walks the object with the same code as its decoder, so that the two cannot disagree.

use std::fmt::Display;
use std::ops::Range;

use crate::error::Error;

/// One step of reading an object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// What is read, in the format's own words.
    pub label: String,
    /// The bytes, in absolute offsets of the object.
    pub span: Range<u64>,
    /// What was read from them.
    pub detail: String,
    /// How many steps this one is a part of.
    pub depth: u8,
}

/// A walk over an object: the steps up to its end or its first fault, and that fault.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Trace {
    /// Steps in the order of reading.
    pub steps: Vec<Step>,
    /// What ended the walk early.
    pub fault: Option<Error>,
    depth: u8,
}

impl Trace {
    /// Adds a step.
    pub(crate) fn step(&mut self, label: impl Into<String>, span: Range<u64>, detail: impl Display) {
        self.steps.push(Step { label: label.into(), span, detail: detail.to_string(), depth: self.depth });
    }

    /// Runs a part of the walk whose steps belong to the last one.
    pub(crate) fn inside<R>(&mut self, walk: impl FnOnce(&mut Trace) -> R) -> R {
        self.depth += 1;
        let result = walk(self);
        self.depth -= 1;
        result
    }
}
