//! A Cluster of Karmada's as a cluster's Secret in its words: read, written, and lists of many
//! members made one.

pub mod change;
pub mod cluster;
mod kept;
pub mod merge;
mod problem;
mod spec;
mod text;

pub use self::kept::MOST_KEPT;
pub use self::spec::{SecretRef, Spec, Taint};
