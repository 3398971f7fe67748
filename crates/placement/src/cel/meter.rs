//! The steps that an evaluation may take, and the reasons why it has no value.

use std::borrow::Cow;

/// The steps that are left. A step is about what one node of an expression takes to evaluate;
/// functions are charged by the size of what they read.
#[derive(Debug)]
pub struct Meter {
    left: u64,
}

/// Why there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The expression's own error: `&&`, `||`, `all` and `exists` may ignore it.
    Error(Cow<'static, str>),
    /// No steps are left: nothing ignores this.
    Exhausted,
}

/// Bytes that are read or written in a step.
const STRIDE: usize = 8;

// === impl Meter ===

impl Meter {
    pub fn new(steps: u64) -> Self {
        Self { left: steps }
    }

    pub fn left(&self) -> u64 {
        self.left
    }

    pub fn charge(&mut self, steps: usize) -> Result<(), Failure> {
        let left = self.left.checked_sub(u64::try_from(steps).unwrap_or(u64::MAX));
        self.left = left.unwrap_or(0);
        left.map(|_| ()).ok_or(Failure::Exhausted)
    }

    /// Charges for reading or creating `bytes` bytes.
    pub fn traverse(&mut self, bytes: usize) -> Result<(), Failure> {
        self.charge(bytes / STRIDE)
    }
}

// === impl Failure ===

impl Failure {
    pub fn error(why: impl Into<Cow<'static, str>>) -> Self {
        Self::Error(why.into())
    }

    pub fn no_overload() -> Self {
        Self::error("no such overload")
    }
}
