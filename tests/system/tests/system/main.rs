//! The whole gateway in one process, through real TLS sockets, against scripted members and hubs.
//!
//! One binary, so that it links once. Each module is one promise to users; each test has its own
//! gateway and members.

mod audit;
mod circuit;
mod clusters;
mod contract;
mod dialects;
mod documents;
mod dynamic;
mod faults;
mod hostile;
mod identity;
mod isolation;
mod metrics;
mod overload;
mod probes;
mod proxies;
mod proxying;
mod resources;
mod serving;
mod shutdown;
mod streaming;
mod traces;
mod tunnel;
mod upgrades;
