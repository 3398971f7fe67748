//! The product with real control planes on loopback: a hub (etcd, kube-apiserver with its
//! aggregator, kube-controller-manager) and a member (kube-apiserver, kube-controller-manager,
//! kube-scheduler, kwok for nodes and pods, a kubelet for streams).
//!
//! No container engine is needed: the binaries are built once from pinned Go modules ([`tools`])
//! and run as child processes that end with this process, however it ends ([`process`]).
//! [`testbed::Testbed`] is all of it, up and registered.

pub mod audit;
pub mod control_plane;
pub mod egress;
pub mod fixture;
pub mod follower;
pub mod gate;
pub mod helm;
pub mod http;
pub mod hub;
pub mod informer;
pub mod karmada;
pub mod kubeconfig;
pub mod kubectl;
pub mod load;
pub mod mask;
pub mod member;
mod objects;
pub mod pace;
pub mod page;
pub mod ports;
pub mod prelude;
pub mod process;
pub mod product;
pub mod promtool;
pub mod scratch;
pub mod screens;
pub mod size;
pub mod testbed;
pub mod tls_server;
pub mod tools;
pub mod trouble;
pub mod tunnel;
pub mod turns;
pub mod usage;
pub mod wait;
