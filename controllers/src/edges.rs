//! What `tests/edges` feeds with any bytes.

pub use crate::raw::weight;
