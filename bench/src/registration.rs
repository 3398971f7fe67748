//! Clusters that register themselves: the objects on the hub before our programs look.

mod kubeconfigs;
pub mod sources;
