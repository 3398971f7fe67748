//! The environment of tests: a throw-away PKI, a scripted member, a hub that answers the few calls
//! a gateway makes, adversarial IO, and clients that let a test hold every knob of the protocol.
//!
//! Everything listens on 127.0.0.1:0, stops when dropped, waits for a bounded time only, and panics
//! with a sentence that names what it awaited: a panic here is a failed test.

pub mod client;
#[cfg(feature = "collector")]
pub mod collector;
pub mod exposition;
pub mod frames;
pub mod hostile;
pub mod hub;
pub mod io;
pub mod lines;
pub mod member;
pub mod merge;
pub mod others;
pub mod pki;
pub mod ports;
pub mod process;
pub mod proxy;
pub mod selector;
mod server;
pub mod status;
pub mod wait;
