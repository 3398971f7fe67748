//! Traces of requests at a collector: how the spans hang together, who decides about them, and that
//! no request waits for the collector.

mod collector_away;
mod decided;
mod spans;
mod tunnelled;

use http::HeaderMap;
use kit::collector::{Collector, Span};
use kit::exposition;
use system_tests::prelude::*;

/// A path of the member.
const PATH: &str = "/api/v1/namespaces/ns/pods/p";
/// Every request without an earlier decision.
const ALL: &str = "--tracing-sampling-rate-per-million=1000000";
/// The first span of a request for a member.
const ROOT: &str = "GET clustergateways/proxy";

/// A collector, a hub, a member registered there, and the gateway of all three.
struct Fixture {
    collector: Collector,
    hub: FakeHub,
    member: FakeMember,
    testbed: Testbed,
}

/// A span that the caller began, as `traceparent` names it.
struct Parent {
    trace: &'static str,
    span: &'static str,
    flags: &'static str,
}

const SAMPLED: Parent = Parent { trace: "4bf92f3577b34da6a3ce929d0e0e4736", span: "00f067aa0ba902b7", flags: "01" };
const UNSAMPLED: Parent = Parent { trace: "0af7651916cd43dd8448eb211c80319c", span: "b7ad6b7169203331", flags: "00" };

// === impl Parent ===

impl Parent {
    fn header(&self) -> String {
        format!("00-{}-{}-{}", self.trace, self.span, self.flags)
    }
}

// === impl Fixture ===

impl Fixture {
    /// A fixture with further arguments of the gateway.
    async fn with(http: Http, arguments: &[&str]) -> Self {
        Self::telling(Collector::start().await, http, arguments).await
    }

    async fn telling(collector: Collector, http: Http, arguments: &[&str]) -> Self {
        let (hub, member) = (FakeHub::start().await, http.member().await);
        hub.allow_all();
        member.on_any(|_| Reply::full(200, &[], "from the member"));
        hub.put_secret(cluster(CLUSTER, &member));
        let builder = Testbed::builder().hub(&hub).arg(&endpoint(&collector));
        let testbed = arguments.iter().fold(builder, |builder, argument| builder.arg(argument)).start().await;
        Self { collector, hub, member, testbed }
    }

    /// The answer to the hub's aggregator, which brings jane, with `headers`.
    async fn through_the_hub(&self, http: Http, headers: &[(&str, &str)]) -> Answer {
        let mut connection = self.testbed.aggregator(&self.hub, http).await.with("x-remote-user", "jane");
        connection.call("GET", &proxied(CLUSTER, PATH), headers, b"").await
    }

    /// The trace headers of the latest request that the member got.
    async fn forwarded(&self) -> (Option<String>, Option<String>) {
        self.member.next_request().await;
        let request = self.member.requests().pop().expect("it was asked");
        (text(&request.headers, "traceparent"), text(&request.headers, "tracestate"))
    }
}

fn endpoint(collector: &Collector) -> String {
    format!("--tracing-endpoint={}", collector.address())
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).map(|value| value.to_str().expect("text").to_owned())
}

/// The one span of `spans` called `name`.
#[track_caller]
fn one<'a>(spans: &'a [Span], name: &str) -> &'a Span {
    let mut named = spans.iter().filter(|span| span.name == name);
    let (Some(span), None) = (named.next(), named.next()) else { panic!("not one span {name}: {spans:#?}") };
    span
}

/// The value of a series in the gateway's metrics, 0 if there is none.
async fn metric(connection: &mut Connection, series: &str) -> u64 {
    exposition::value(&connection.get("/metrics").await.text(), series).unwrap_or_default()
}
