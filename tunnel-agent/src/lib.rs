//! Runs in the unreachable network: dials out to tunnel-servers, is asked for byte streams,
//! connects to allowed addresses only.

mod api_server;
mod app;
pub mod args;
mod cidr;
mod connector;
mod credentials;
mod files;
mod forward;
mod joining;
mod links;
mod metrics;
mod outbound;
mod streams;
mod targets;

pub use self::app::Agent;
