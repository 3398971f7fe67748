//! The tunnel protocol: byte streams through a connection that the far end opened.
//!
//! The side in the unreachable network dials and registers with an HTTP/1.1 `Upgrade`
//! ([`register`]); then HTTP/2 starts with reversed roles. The side that accepted is the client and
//! holds a [`Link`], on which it opens `CONNECT` streams; the side that dialled answers them with
//! [`serve()`]. The same two ends, not reversed, join a gateway to a tunnel-server. This crate does
//! not know Kubernetes. `docs/protocol.md` is the specification.

mod activity;
mod ahead;
mod answered;
pub mod bridge;
mod cluster_name;
mod deferred_reset;
mod destination;
mod gauge;
mod inbox;
mod keepalive;
mod leaving;
pub mod link;
#[cfg(test)]
mod protocol;
mod refusal;
pub mod register;
pub mod serve;
mod settings;
mod signals;
pub mod splice;
mod stream;
#[cfg(test)]
mod testing;
mod timing;
mod turn;

pub use self::cluster_name::{ClusterName, ClusterNameError};
pub use self::destination::{Destination, DestinationError};
pub use self::gauge::{Budget, Gauge};
pub use self::link::{Link, LinkError, NotSent, OpenError};
pub use self::refusal::{Hop, Reason, Refusal};
pub use self::serve::{Incoming, Serving, serve};
pub use self::settings::Settings;
pub use self::stream::{HeldObserver, Stream};
pub use self::timing::Timing;
