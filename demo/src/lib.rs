//! The parts of the demo that are worth testing on their own.
//!
//! [`member`] is a small API server that looks enough like Kubernetes for kubectl to list, describe, watch
//! and follow logs, without a cluster, a container engine or a network behind it. [`kubeconfig`] writes the file
//! by which kubectl finds its way.

pub mod kubeconfig;
pub mod member;
