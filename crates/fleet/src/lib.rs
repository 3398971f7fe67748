//! What thin clients of many clusters are built from: the list of a hub's clusters, a client for
//! each of them through the gateway, one operation over many of them, and failures that name the
//! side.
//!
//! It uses only the gateway's API, so that any server of that API serves these clients.

mod answer;
mod bounded;
mod cluster;
mod each;
mod failure;
mod fleet;
mod paced;
mod pages;
mod retry_after;
mod roomed;
mod sender;
mod sight;
mod through;

pub use self::answer::answer;
pub use self::bounded::bounded;
pub use self::cluster::{Cluster, EndpointType};
pub use self::each::{Each, Event, Limits, Outcome, Progress, each};
pub use self::failure::{Failure, Kind};
pub use self::fleet::Fleet;
pub use self::roomed::Room;
pub use self::sender::Sender;
pub use self::sight::{Change, Sight};
