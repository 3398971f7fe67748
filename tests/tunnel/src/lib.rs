//! Shared code of the tunnel's tests: testbeds of servers and agents in this process, frontends
//! that call, destinations that answer or misbehave, and measures.
//!
//! Everything is real sockets and real TLS on loopback, on ports of the system's choice, and ends
//! when dropped.

pub mod admin;
pub mod frontend;
pub mod measure;
pub mod pattern;
pub mod pki;
pub mod site;
pub mod testbed;

pub use self::frontend::{Answer, Caller, Frontend, NotOpened, Tunnel};
pub use self::site::Site;
pub use self::testbed::{AgentSpec, Testbed};
