//! Hub, gateway and member report one trace to one collector: the hub's kube-apiserver begins it,
//! the gateway continues it, and the member's kube-apiserver is a child of the gateway's span for
//! the request.

use hub_tests::prelude::*;
use kit::collector::{Collector, Span, SpanKind};
use libtest_mimic::Trial;
use tokio::runtime::Runtime;

use crate::fixture::{Fixture, test};

const CLUSTER: &str = "traced";
/// The path that is requested from the member.
const PATH: &str = "/api/v1/namespaces/default";
/// kube-apiserver's service name.
const APISERVER: &str = "apiserver";
/// Time for another replica to find the gateway available, and to know the cluster.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "traces::hub, gateway and member tell of one trace", one_trace)]
}

fn one_trace(testbed: &Testbed) -> Result<()> {
    let runtime = Runtime::new()?;
    let collector = runtime.block_on(Collector::at(testbed.collector));
    let config = testbed.launcher().file("tracing.json");
    let document = json!({
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "TracingConfiguration",
        "endpoint": testbed.collector.to_string(),
        "samplingRatePerMillion": 1_000_000,
    });
    std::fs::write(&config, document.to_string())?;
    let flag = [format!("--tracing-config-file={}", config.display())];
    let mut hub = testbed.hub.server.start_replica("traced-hub", &flag)?;
    let mut member = testbed.member.server.start_replica("traced-member", &flag)?;
    hub.wait_ready()?;
    member.wait_ready()?;
    // With a member of `system:masters`: the member trusts no other user's trace context.
    testbed.hub.register_member(CLUSTER, &MemberSecret::with_certificate(&member, member.admin()))?;
    let path = format!("{}{PATH}", Testbed::proxy_path(CLUSTER));
    wait::until("an answer of the member", LIMIT, || hub.raw(&path))?;

    let spans = runtime.block_on(async {
        let asked = |span: &Span| span.name == "member" && span.get("http.response.status_code") == "200";
        let asked = collector.span("asking the member", asked).await;
        let answered = |span: &Span| span.parent == asked.id && span.resource["service.name"] == APISERVER;
        let answered = collector.span("the member's answer", answered).await;
        let gateways = |span: &Span| span.id == asked.parent;
        let gateways = collector.span("the gateway's part", gateways).await;
        let hubs = collector.span("the hub's part", |span| span.id == gateways.parent).await;
        [hubs, gateways, asked, answered]
    });
    let [hubs, gateways, _, answered] = &spans;
    ensure!(spans.iter().all(|span| span.trace == hubs.trace), "not one trace: {spans:#?}");
    ensure!(hubs.resource["service.name"] == APISERVER, "not of the hub: {hubs:#?}");
    ensure!(gateways.resource["service.name"] == "cluster-gateway", "not of the gateway: {gateways:#?}");
    ensure!(hubs.kind == SpanKind::Client, "not of the hub's asking us: {hubs:#?}");
    let path = answered.get("url.path");
    ensure!(answered.kind == SpanKind::Server && path == PATH, "not the member's answer: {answered:#?}");
    testbed.hub.forget_member(CLUSTER)
}
