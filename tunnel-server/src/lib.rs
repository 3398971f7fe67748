//! Holds the links that agents opened, and opens byte streams over them for gateways and for a
//! kube-apiserver's egress selector.

mod admin;
mod app;
pub mod args;
#[doc(hidden)]
pub mod edges;
mod egress;
mod frontend;
mod metrics;
mod relay;
mod shared;
#[cfg(test)]
mod testing;

pub use self::app::Server;
