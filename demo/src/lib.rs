//! The parts of the demo that are worth testing on their own.
//!
//! [`member`] is a small API server that looks enough like Kubernetes for kubectl to list,
//! describe, watch and follow logs, without a cluster, a container engine or a network behind it.
//! [`installation`] starts some of them with a gateway in front, which reads about them in
//! [`manifests`], and an [`agent`] for the one that the gateway cannot dial; [`steps`] shows what
//! works through it with [`client`], also a [`workload`] that leaves a lost cluster, [`report`]
//! puts that into words, and [`kubeconfig`] lets the user go on with kubectl.

pub mod agent;
pub mod client;
pub mod identities;
pub mod installation;
pub mod kubeconfig;
pub mod manifests;
pub mod member;
mod private_file;
pub mod report;
pub mod signals;
pub mod steps;
pub mod workload;
