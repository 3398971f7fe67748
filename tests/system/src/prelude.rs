//! Imports of most scenarios: a gateway to start, scripted members and hubs, bounded waiting.

pub use std::sync::Arc;
pub use std::time::Duration;

pub use http::Method;
pub use kit::hub::{Call, ClusterSecret, Decision, FakeHub, Fault, Resource, TokenUser};
pub use kit::member::raw::{Act, RawMember};
pub use kit::member::{FakeMember, MemberOptions, Reply};
pub use kit::pki::{Authority, Leaf};
pub use kit::wait::{Gate, WAIT, becomes, eventually, within};
pub use serde_json::{Value, json};
pub use tokio::time::Instant;

pub use crate::{
    ADMIN, Answer, CLUSTER, Connection, Dialect, Http, MEMBER_TOKEN, Testbed, Versions, across_dialects, across_http,
    across_versions, cluster, proxied,
};
