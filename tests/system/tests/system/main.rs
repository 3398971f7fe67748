//! The whole gateway in one process, through real TLS sockets, against scripted members and hubs.
//!
//! One binary, so that it links once. Each module is one promise to users; each test has its own gateway and members.

mod clusters;
mod faults;
mod identity;
mod isolation;
mod proxying;
mod shutdown;
mod streaming;
mod upgrades;
