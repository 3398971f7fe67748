//! Runs in the unreachable network: dials out to tunnel-servers, takes byte streams from them, and
//! connects these to allowed addresses only.

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
