//! `clustergateways/traffic`: the traffic from one replica of the gateway to one cluster.
//!
//! A replica counts for as long as it knows the cluster, and then starts at 0 again. Readers
//! compute rates from two readings with the same [`Traffic::replica`] and [`Traffic::since`]. The
//! hub may ask any replica, and each has its own counts.

use std::borrow::Cow;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::cluster_name::ClusterName;
use crate::{API_VERSION, go_text};

/// The object's kind.
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

/// One replica's counts for one cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Traffic {
    /// The replica that counted. Its host name, which is its pod's name.
    pub replica: String,
    /// Start of counting, in milliseconds since 1970.
    pub since: i64,
    /// Requests in progress, including streams and excluding upgrades.
    pub requests_in_flight: i64,
    /// The watches and followed logs among them.
    pub streams_in_flight: i64,
    /// Exec, attach and port-forward.
    pub upgrades_in_flight: i64,
    /// Pooled connections to the member.
    pub connections: i64,
    /// Whether dials are paused because the last ones failed.
    pub circuit_open: bool,
    /// Requests that have ended.
    pub requests: Vec<Requests>,
    /// The gateway's own failures by the side that failed. Sides without a failure are absent.
    pub failures: Vec<Failures>,
    /// Durations of requests that have ended, excluding streams and upgrades.
    pub duration: Duration,
    /// The last failures that were not the caller's fault, oldest first. Repetitions in a flood are
    /// omitted.
    pub recent_failures: Vec<RecentFailure>,
    /// The last attempt to open a byte stream to the cluster through the tunnel. Absent if there
    /// was none: the cluster has another endpoint type, or is not in use.
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

/// Number of requests that failed on one side.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Failures {
    /// [`crate::side::Side::as_str`].
    pub side: String,
    pub count: u64,
}

/// The distribution of request durations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Duration {
    pub sum_micros: u64,
    /// Ascending; not cumulative.
    pub buckets: Vec<Bucket>,
}

/// Number of requests that took longer than the previous bucket's bound, and at most this bound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bucket {
    /// Absent in the last bucket, which has no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub most_micros: Option<u64>,
    pub count: u64,
}

/// A failure as in the gateway's log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RecentFailure {
    /// In milliseconds since 1970.
    pub time: i64,
    pub user: String,
    pub verb: String,
    /// In the form that `kubectl auth can-i` accepts.
    pub resource: String,
    pub code: u16,
    pub side: String,
    pub took_micros: u64,
    pub text: String,
    /// Failures of the same side that were omitted before this one.
    pub suppressed: u64,
}

/// An attempt to open a byte stream through the tunnel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TunnelOpen {
    /// When it ended, in milliseconds since 1970.
    pub time: i64,
    /// Total time until the stream was open or refused.
    pub took_micros: u64,
    /// The hops tried, in the order of their responses. The last one opened the stream, if it was
    /// opened.
    pub hops: Vec<TunnelHop>,
}

/// A tunnel-server that was asked for a byte stream. The same data as the span `tunnel hop`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TunnelHop {
    /// Address and port. Empty is the gateway itself, which agents can link to.
    pub server: String,
    /// `opened`, the reason of a refusal (`docs/protocol.md`), `unreachable`, or `unanswered`.
    pub outcome: String,
    /// Time until the response: the way to the server, from there to the agent, and the agent's
    /// dial of the API server.
    pub took_micros: u64,
    /// The round trip of the last PING between gateway and server. Absent if none was measured yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trip_micros: Option<u64>,
    /// Time from the server's question to the agent's response, as the server reports it. Absent if
    /// it was not reported, or if there is no server in between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_micros: Option<u64>,
    /// The agent's dial of the API server, as the agent reports it. Absent if it was not reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dial_micros: Option<u64>,
}

// === impl ClusterTraffic ===

impl ClusterTraffic {
    pub fn new(cluster: &ClusterName, status: Traffic) -> Self {
        let metadata = Metadata { name: cluster.to_string() };
        Self { kind: KIND.into(), api_version: API_VERSION.into(), metadata, status }
    }

    pub fn to_json(&self) -> Bytes {
        go_text::json(self)
    }
}
