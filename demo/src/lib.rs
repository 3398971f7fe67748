//! The parts of the demo that are worth testing on their own.
//!
//! [`member`] is a small API server that looks enough like Kubernetes for kubectl to list, describe, watch and follow
//! logs, without a cluster, a container engine or a network behind it. [`manifests`] tells a gateway about members,
//! [`steps`] shows what works through it with [`client`], and [`kubeconfig`] lets the user go on with kubectl.

pub mod client;
pub mod kubeconfig;
pub mod manifests;
pub mod member;
pub mod steps;
