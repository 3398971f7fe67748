//! Selectors of list requests, in the grammars of Kubernetes.
//!
//! Both parsers refuse what they cannot read: a selector that is ignored returns too much.

pub mod field;
pub mod label;
