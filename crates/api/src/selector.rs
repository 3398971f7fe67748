//! Selectors of list requests, with the grammars of Kubernetes.
//!
//! Both parsers refuse invalid input: an ignored selector returns too much.

pub mod field;
pub mod label;
