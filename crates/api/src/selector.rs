//! Selectors of list requests.

pub mod field;
