//! The environment of tests of the whole gateway: the gateway in this process, scripted members and
//! hubs from the kit, and one client that speaks HTTP/1.1 or HTTP/2 so that a scenario is written
//! once for all protocol versions.
//!
//! Everything listens on 127.0.0.1:0 and every wait is bounded. See [`Testbed`] for where to start.

mod buffers;
pub mod connection;
pub mod dialects;
pub mod frames;
pub mod prelude;
pub mod testbed;
pub mod versions;

pub use self::buffers::socket_buffers;
pub use self::connection::{Answer, Connection, Failure, Streamed, Upload};
pub use self::dialects::Dialect;
pub use self::testbed::{ADMIN, CLUSTER, MEMBER_TOKEN, Testbed, TestbedBuilder, VIEWER, cluster, proxied};
pub use self::versions::{Http, Versions};
