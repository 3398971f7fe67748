//! Counters and latencies of authentication and authorization.
//!
//! Label values are fixed sets, so every handle is made at start-up and a request only increments.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Upper bounds in seconds: a review takes milliseconds on a healthy hub, and is abandoned after
/// tens of seconds.
const LATENCY_BUCKETS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0];
const METHODS: [&str; 5] = ["front_proxy", "client_certificate", "bearer", "websocket", "anonymous"];
const VERDICTS: [&str; 3] = ["allowed", "denied", "failure"];
const KINDS: [&str; 2] = ["token", "access"];

/// Metric handles of this crate. Clones share their values.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Indexed by method, then by success.
    attempts: [[Counter; 2]; METHODS.len()],
    verdicts: [Counter; VERDICTS.len()],
    kinds: [KindMetrics; KINDS.len()],
    reload_failures: Counter,
}

/// The methods of authentication in their order, as in [`METHODS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    FrontProxy,
    ClientCertificate,
    Bearer,
    WebSocket,
    Anonymous,
}

/// The outcome of an authorization, as in [`VERDICTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    Denied,
    /// The review failed.
    Failed,
}

/// The kind of a review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Token,
    Access,
}

#[derive(Debug, Clone)]
struct KindMetrics {
    /// Indexed by success.
    latency: [Histogram; 2],
    hits: Counter,
    misses: Counter,
    turned_away: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    method: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TurnedAwayLabels {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabels {
    kind: &'static str,
    result: &'static str,
}

// === impl Metrics ===

impl Metrics {
    /// Registers `cluster_gateway_authentication_total{method,result}`,
    /// `cluster_gateway_authorization_total{result}`,
    /// `cluster_gateway_review_duration_seconds{kind,result}`,
    /// `cluster_gateway_review_cache_total{kind,result}`,
    /// `cluster_gateway_reviews_rejected_total{kind}` and
    /// `cluster_gateway_client_ca_reload_failures_total`.
    pub fn register(registry: &mut Registry) -> Self {
        Self::register_named(registry, "cluster_gateway")
    }

    /// The same as [`Metrics::register`], with `prefix` instead of `cluster_gateway`.
    pub fn register_named(registry: &mut Registry, prefix: &str) -> Self {
        let attempts = Family::<AttemptLabels, Counter>::default();
        registry.register(
            format!("{prefix}_authentication"),
            "Authentication attempts by method and result; a method without an opinion is not counted",
            attempts.clone(),
        );
        let verdicts = Family::<VerdictLabels, Counter>::default();
        registry.register(
            format!("{prefix}_authorization"),
            "Authorizations by result, with and without a review by the hub",
            verdicts.clone(),
        );
        let latency = Family::<KindLabels, Histogram>::new_with_constructor(|| Histogram::new(LATENCY_BUCKETS));
        registry.register(
            format!("{prefix}_review_duration_seconds"),
            "Time until the hub answered a review, retries included",
            latency.clone(),
        );
        let cache = Family::<KindLabels, Counter>::default();
        registry.register(format!("{prefix}_review_cache"), "Lookups of cached reviews", cache.clone());
        let turned_away = Family::<TurnedAwayLabels, Counter>::default();
        registry.register(
            format!("{prefix}_reviews_rejected"),
            "Reviews rejected because too many were waiting for the hub",
            turned_away.clone(),
        );

        let reload_failures = Counter::default();
        registry.register(
            format!("{prefix}_client_ca_reload_failures"),
            "Changes of the CA file of client certificates that could not be used; the last good one stays in use",
            reload_failures.clone(),
        );

        let counter = |method, result| attempts.get_or_create_owned(&AttemptLabels { method, result });
        let kinds = KINDS.map(|kind| KindMetrics {
            latency: ["failure", "success"].map(|result| latency.get_or_create_owned(&KindLabels { kind, result })),
            hits: cache.get_or_create_owned(&KindLabels { kind, result: "hit" }),
            misses: cache.get_or_create_owned(&KindLabels { kind, result: "miss" }),
            turned_away: turned_away.get_or_create_owned(&TurnedAwayLabels { kind }),
        });
        Self {
            attempts: METHODS.map(|method| ["failure", "success"].map(|result| counter(method, result))),
            verdicts: VERDICTS.map(|result| verdicts.get_or_create_owned(&VerdictLabels { result })),
            kinds,
            reload_failures,
        }
    }

    pub(crate) fn authenticated(&self, method: Method, success: bool) {
        self.attempts[method as usize][usize::from(success)].inc();
    }

    pub(crate) fn reload_failed(&self) {
        self.reload_failures.inc();
    }

    pub(crate) fn authorized(&self, verdict: Verdict) {
        self.verdicts[verdict as usize].inc();
    }

    pub(crate) fn reviewed(&self, kind: Kind, success: bool, took: Duration) {
        self.kinds[kind as usize].latency[usize::from(success)].observe(took.as_secs_f64());
    }

    pub(crate) fn turned_away(&self, kind: Kind) {
        self.kinds[kind as usize].turned_away.inc();
    }

    pub(crate) fn cache_lookup(&self, kind: Kind, hit: bool) {
        let kind = &self.kinds[kind as usize];
        if hit { &kind.hits } else { &kind.misses }.inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_is_the_one_its_name_says() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.authenticated(Method::WebSocket, false);
        metrics.authenticated(Method::FrontProxy, true);
        metrics.cache_lookup(Kind::Access, true);
        metrics.turned_away(Kind::Access);
        metrics.authorized(Verdict::Denied);
        metrics.reviewed(Kind::Token, true, Duration::from_millis(2));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).expect("into a String");
        for line in [
            "cluster_gateway_authentication_total{method=\"websocket\",result=\"failure\"} 1",
            "cluster_gateway_authentication_total{method=\"front_proxy\",result=\"success\"} 1",
            "cluster_gateway_authentication_total{method=\"anonymous\",result=\"success\"} 0",
            "cluster_gateway_review_cache_total{kind=\"access\",result=\"hit\"} 1",
            "cluster_gateway_authorization_total{result=\"denied\"} 1",
            "cluster_gateway_authorization_total{result=\"allowed\"} 0",
            "cluster_gateway_reviews_rejected_total{kind=\"access\"} 1",
            "cluster_gateway_review_duration_seconds_count{kind=\"token\",result=\"success\"} 1",
        ] {
            assert!(text.contains(line), "{line}\nmissing in\n{text}");
        }
    }
}
