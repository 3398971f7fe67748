//! Figures, and the goals for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The target of a figure: a program under load, or a way to use it. Its name in the report.
pub type Target = &'static str;

/// The member itself, without anything in between.
pub const DIRECT: Target = "direct";
/// This project's release build.
pub const OURS: Target = "ours";
/// Our tunnel, entered as the gateway does it: HTTP/2 over mutual TLS. [`OURS`] is entered as
/// kube-apiserver does it.
pub const OURS_H2: Target = "ours, h2 frontend";
/// An earlier build of ours, given by path.
pub const BASELINE: Target = "ours before";
/// oam-dev/cluster-gateway.
pub const GO: Target = "go gateway";
/// nginx as a plain reverse proxy.
pub const NGINX: Target = "nginx";
/// `HAProxy` as a plain reverse proxy.
pub const HAPROXY: Target = "haproxy";
/// Karmada's aggregated API server.
pub const KARMADA: Target = "karmada";
/// Open Cluster Management's controllers.
pub const OCM: Target = "ocm";
/// A hub's API server without anybody in front of it or beside it.
pub const HUB: Target = "hub alone";
/// konnectivity's tunnel, entered by HTTP CONNECT.
pub const ANP_HTTP: Target = "anp http-connect";
/// konnectivity's tunnel, entered by gRPC.
pub const ANP_GRPC: Target = "anp grpc";
/// A TCP relay with TLS between its two halves: the floor for a tunnel.
pub const RELAY: Target = "tls relay";

/// All that are not ours, without the direct way. Variants begin with the name: `nginx, 2 workers`.
const PEERS: [Target; 9] = [BASELINE, GO, NGINX, HAPROXY, KARMADA, OCM, ANP_HTTP, ANP_GRPC, RELAY];

/// Whether `target` is another project's, or an earlier build.
pub fn is_peer(target: &str) -> bool {
    PEERS.iter().any(|peer| target.starts_with(peer))
}

/// One kind of number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// Key in goals, samples and JSON: `cpu_us`.
    pub key: &'static str,
    /// Heading in tables, with its unit: `CPU µs per request`.
    pub title: &'static str,
    /// Digits after the point in tables.
    pub digits: usize,
}

/// Result of one measurement of one target: figures by their key.
pub type Sample = BTreeMap<&'static str, f64>;

/// A bound for a figure of one target in relation to another's, both of the same round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Goal {
    /// A figure's key.
    pub figure: &'static str,
    /// The target it is about.
    pub of: Target,
    /// The target whose figure it is divided by; none: it is judged as it is.
    pub beside: Option<Target>,
    /// The target whose figure is subtracted from both first: what a proxy *adds* to the direct
    /// way.
    pub over: Option<Target>,
    /// The bound that makes it good enough.
    pub must: Option<Bound>,
    /// A better bound to aim at.
    pub aim: Option<Bound>,
}

/// A value, and the side of it that is good.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// For scenarios whose targets are the points of lines: how a figure grows with something.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// The quantity that grows: `clusters registered`.
    pub title: &'static str,
    pub lines: &'static [Line],
}

/// One line in the chart.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    pub title: &'static str,
    /// Position of each target on the axis, from left to right.
    pub points: &'static [(f64, Target)],
}

// === impl Figure ===

impl Figure {
    pub const fn new(key: &'static str, title: &'static str, digits: usize) -> Self {
        Self { key, title, digits }
    }
}

// === impl Goal ===

impl Goal {
    /// `figure` of `of`, divided by that of `beside`.
    pub const fn ratio(figure: &'static str, of: Target, beside: Target) -> Self {
        Self { figure, of, beside: Some(beside), over: None, must: None, aim: None }
    }

    /// `figure` of `of`, as it is.
    pub const fn value(figure: &'static str, of: Target) -> Self {
        Self { figure, of, beside: None, over: None, must: None, aim: None }
    }

    /// Compares only the parts of both that exceed `over`.
    #[must_use]
    pub const fn over(mut self, over: Target) -> Self {
        self.over = Some(over);
        self
    }

    #[must_use]
    pub const fn must(mut self, bound: Bound) -> Self {
        self.must = Some(bound);
        self
    }

    #[must_use]
    pub const fn aim(mut self, bound: Bound) -> Self {
        self.aim = Some(bound);
        self
    }
}

// === impl Bound ===

impl Bound {
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtMost(limit) => value <= limit,
            Self::AtLeast(limit) => value >= limit,
        }
    }
}
