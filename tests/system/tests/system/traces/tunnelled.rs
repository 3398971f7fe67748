//! Members behind the tunnel: each tunnel-server that was asked is a hop.

use tunnel::{Hop, Reason};

use super::*;
use crate::tunnel::server::{Answer, TunnelServer, refusal};
use crate::tunnel::{Pki, member, tunnelled};

async fn get(testbed: &Testbed) -> u16 {
    testbed.get(&proxied(CLUSTER, PATH)).await.status
}

#[tokio::test]
async fn the_hops_of_a_dial_are_told() {
    let (pki, collector, member) = (Pki::new(), Collector::start().await, member(MemberOptions::default()).await);
    let (without, with) = (TunnelServer::start(&pki).await, TunnelServer::start(&pki).await);
    without.set(CLUSTER, refusal(Hop::Server, Reason::NoLink, "no agent is linked"));
    with.set(CLUSTER, Answer::LeadsTo(member.address()));
    let builder = pki.gateway(&[&without, &with]).cluster(CLUSTER, tunnelled(CLUSTER, &member));
    let testbed = builder.arg(&endpoint(&collector)).arg(ALL).start().await;
    assert_eq!(get(&testbed).await, 200);
    let root = collector.span("the request", |span| span.name == ROOT).await;
    let spans = collector.trace(ROOT, &root.trace).await;

    let dial = one(&spans, "dial");
    assert_eq!((&dial.parent, dial.get("cluster_gateway.dial.by")), (&one(&spans, "member").id, "tunnel"));
    let hops: Vec<_> = spans.iter().filter(|span| span.name == "tunnel hop").collect();
    for hop in &hops {
        assert!(hop.parent == dial.id && hop.is_within(dial), "{hop:#?} in {dial:#?}");
        assert_eq!(hop.get("k8s.cluster.name"), CLUSTER);
    }
    let by_server = |server: &TunnelServer| {
        let port = server.address().port().to_string();
        hops.iter().find(move |hop| hop.get("network.peer.port") == port).map(|hop| (hop.get("error.type"), &hop.error))
    };
    assert_eq!(by_server(&with), Some(("", &None)));
    // It may not have been asked: which one is first differs.
    let refused = Some(("no-link", &Some("no agent is linked".to_owned())));
    assert!(by_server(&without).is_none() && hops.len() == 1 || by_server(&without) == refused, "{hops:#?}");
}

#[tokio::test]
async fn who_waits_for_the_dial_of_another_says_so() {
    let (pki, collector, member) = (Pki::new(), Collector::start().await, member(MemberOptions::default()).await);
    let (server, gate) = (TunnelServer::start(&pki).await, Gate::new());
    server.set(CLUSTER, Answer::Waits(gate.clone(), member.address()));
    let builder = pki.gateway(&[&server]).cluster(CLUSTER, tunnelled(CLUSTER, &member));
    let testbed = builder.arg(&endpoint(&collector)).arg(ALL).start().await;
    let (first, second) = (get(&testbed), get(&testbed));
    let opening = async {
        let in_flight = format!("cluster_gateway_requests_in_flight{{cluster=\"{CLUSTER}\"}}");
        let mut connection = testbed.connect(Http::H2).await;
        becomes(WAIT, "both requests", async || metric(&mut connection, &in_flight).await == 2).await;
        becomes(WAIT, "the dial", async || server.asked().len() == 1).await;
        gate.open();
    };
    assert_eq!(tokio::join!(first, second, opening), (200, 200, ()));
    let shared = |span: &Span| span.name == "dial" && span.get("cluster_gateway.dial.shared") == "true";
    let waited = collector.span("the waiting", shared).await;
    let dialled = collector.span("the dial", |span| span.name == "dial" && !shared(span)).await;
    assert_ne!(waited.trace, dialled.trace);
    let hop = collector.span("the hop", |span| span.name == "tunnel hop").await;
    assert_eq!((hop.parent, hop.error, waited.error), (dialled.id, None, None));
}
