//! Karmada's Cluster as a view of a cluster's Secret: reads, writes, and the merge of many members'
//! lists into one.

pub mod change;
pub mod cluster;
mod kept;
pub mod merge;
mod problem;
mod spec;
mod text;

pub use self::kept::MOST_KEPT;
pub use self::spec::{SecretRef, Spec, Taint};
