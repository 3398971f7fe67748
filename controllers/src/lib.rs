//! Registers clusters with a gateway: objects of other systems on a hub become the cluster Secrets
//! that the gateway follows. Its parts do more for clusters, each by itself.
//!
//! A thin client of the hub: what an object means is decided in `register`, what is due when by
//! kube's runtime, and the gateway has no idea that this exists.

mod admin;
mod app;
pub mod args;
mod calls;
pub mod commands;
#[doc(hidden)]
pub mod edges;
mod events;
mod explained;
mod feed;
mod metrics;
mod parts;
mod queue;
mod raw;
mod registrar;
mod reports;
#[cfg(test)]
mod scripted;
mod secrets;
mod sources;
mod term;
mod together;
mod wakes;

pub use self::app::Controllers;
