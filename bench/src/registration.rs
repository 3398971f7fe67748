//! Clusters that register themselves: what is on the hub before anything of ours looks.

mod kubeconfigs;
pub mod sources;
