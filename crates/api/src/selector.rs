//! Selectors of list requests.

pub mod field;
pub mod label;
