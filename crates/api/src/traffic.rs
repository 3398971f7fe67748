//! `clustergateways/traffic`: what passed one replica of the gateway on its way to one cluster.
//!
//! Counts go up for as long as the replica knows the cluster, and begin at 0 after that: readers
//! make rates of two readings with the same [`Traffic::replica`] and [`Traffic::since`]. The hub
//! asks any replica, and each counts its own.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::cluster_name::ClusterName;
use crate::{API_VERSION, go_text};

/// Of the object.
pub const KIND: &str = "ClusterTraffic";

/// The object: a [`Traffic`] with its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterTraffic {
    kind: Cow<'static, str>,
    api_version: Cow<'static, str>,
    metadata: Metadata,
    pub status: Traffic,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Metadata {
    name: String,
}

/// What one replica counted for one cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Traffic {
    /// Which replica counted: its host's name, which is that of its pod.
    pub replica: String,
    /// Start of counting, in milliseconds since 1970.
    pub since: i64,
    /// Under way: requests, streams included, upgrades excluded.
    pub requests_in_flight: i64,
    /// Watches and followed logs among them.
    pub streams_in_flight: i64,
    /// Exec, attach and port-forward.
    pub upgrades_in_flight: i64,
    /// Pooled connections to the member.
    pub connections: i64,
    /// Whether dials are paused, because the last ones failed.
    pub circuit_open: bool,
    /// Requests that ended.
    pub requests: Vec<Requests>,
    /// Failures of the gateway's own, by the side that failed; without those that never happened.
    pub failures: Vec<Failures>,
    /// Of requests that ended, streams and upgrades excluded.
    pub duration: Duration,
    /// The last failures that were not their callers', oldest first. Floods are left out.
    pub recent_failures: Vec<RecentFailure>,
    /// The last attempt to open a byte stream to the cluster through the tunnel. Absent if there
    /// was none: it is reached otherwise, or not in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tunnel_open: Option<TunnelOpen>,
}

/// Number of requests by method and code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requests {
    /// The HTTP method.
    pub method: String,
    pub code: u16,
    pub count: u64,
}

/// How many requests failed on this side.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failures {
    /// [`crate::side::Side::as_str`].
    pub side: String,
    pub count: u64,
}

/// How long requests took.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Duration {
    pub sum_micros: u64,
    /// Ascending; not cumulative.
    pub buckets: Vec<Bucket>,
}

/// Number of requests that took longer than the previous bucket's bound, and no longer than this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bucket {
    /// Absent: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_micros: Option<u64>,
    pub count: u64,
}

/// A failure as the gateway's log has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecentFailure {
    /// In milliseconds since 1970.
    pub time: i64,
    pub user: String,
    pub verb: String,
    /// As `kubectl auth can-i` takes it.
    pub resource: String,
    pub code: u16,
    pub side: String,
    pub took_micros: u64,
    pub text: String,
    /// Failures of the same side left out before this one.
    pub suppressed: u64,
}

/// An attempt to open a byte stream through the tunnel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TunnelOpen {
    /// When it ended, in milliseconds since 1970.
    pub time: i64,
    /// Until the stream was open or refused, everything together.
    pub took_micros: u64,
    /// The hops tried, in the order of their answers. The last one opened it, if any did.
    pub hops: Vec<TunnelHop>,
}

/// A tunnel-server that was asked for a byte stream, as the span `tunnel hop` has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TunnelHop {
    /// Address and port. Empty: the gateway itself, to which agents are linked.
    pub server: String,
    /// `opened`, the reason of a refusal (`docs/protocol.md`), `unreachable`, or `unanswered`.
    pub outcome: String,
    /// Until it answered: the way to the server, from there to the agent, and the agent's dial of
    /// the API server.
    pub took_micros: u64,
    /// Of the last PING between gateway and server. Absent: none was measured yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_micros: Option<u64>,
    /// From the server's question to the agent's answer, as the server says. Absent: it did not
    /// say, or there is no server between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_micros: Option<u64>,
    /// The agent's dial of the API server, as the agent says. Absent: it did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dial_micros: Option<u64>,
}

// === impl ClusterTraffic ===

impl ClusterTraffic {
    pub fn new(cluster: &ClusterName, status: Traffic) -> Self {
        let metadata = Metadata { name: cluster.to_string() };
        Self { kind: KIND.into(), api_version: API_VERSION.into(), metadata, status }
    }

    /// As JSON.
    pub fn to_json(&self) -> Bytes {
        go_text::json(self)
    }
}
