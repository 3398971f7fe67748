//! The product on real nodes: a hub and a member of two nodes each, and for one test another member
//! of one node. Each node has kubelet, containerd and kube-proxy; each cluster has a DNS server of
//! its own.
//!
//! Everything, including the tests, runs in namespaces without an interface that leads out
//! ([`namespaces`]): the end of their first process ends everything, including mounts and
//! addresses. The images are made from this executable, by the last steps of the Dockerfile
//! ([`image`]).

pub mod cloud;
pub mod cluster;
pub mod connections;
pub mod family;
pub mod image;
pub mod inventory;
pub mod load;
pub mod namespaces;
pub mod node;
pub mod operator;
pub mod programs;
pub mod prometheus;
pub mod states;
pub mod testbed;
