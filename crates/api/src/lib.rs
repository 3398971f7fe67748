//! The pure types of the gateway's API: what a path asks for, what a Secret contains, and our
//! responses.
//!
//! Without IO and async runtime: every function is a table or a parser, and is tested as one.

pub mod accept;
pub mod access;
pub mod beside;
pub mod cluster_gateway;
pub mod cluster_name;
pub mod conditions;
pub mod discovery;
mod go_text;
pub mod health;
pub mod health_change;
pub mod hub_object;
pub mod hub_status;
pub mod impersonable;
pub mod karmada;
pub mod karmada_cluster;
pub mod list_options;
pub mod managed_cluster;
pub mod object;
pub mod ocm_agent;
pub mod openapi;
pub mod patch;
pub mod path;
pub mod query;
pub mod route;
#[cfg(test)]
mod samples;
pub mod secret;
pub mod selector;
pub mod served;
pub mod side;
pub mod status;
pub mod table;
pub mod time;
pub mod traffic;
pub mod virtual_cluster;
pub mod watch_event;
pub mod weight;

/// API group of every resource served here.
pub const GROUP: &str = "cluster.core.oam.dev";
/// The only version of [`GROUP`].
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of everything in [`GROUP`].
pub const API_VERSION: &str = "cluster.core.oam.dev/v1alpha1";
