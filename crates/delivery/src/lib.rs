//! Delivery of objects to clusters, as far as it is pure: who gets something next.
//!
//! Nothing here does IO or asks a clock. [`rollout`] decides which clusters of a
//! `ManifestWorkReplicaSet` are given a new template, as Open Cluster Management does.

pub mod rollout;
