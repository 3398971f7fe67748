//! A link that is lost: open requests end at once with the reason, and the next request goes
//! through.

use kit::member::{MemberOptions, Reply};
use kit::wait::{Gate, WAIT, free_port, within};
use system_tests::{CLUSTER, Http, across_http, proxied};
use tokio::time::{Duration, Instant};
use tunnel::{Hop, Reason};

use super::server::refusal;
use super::{Fixture, PATH};

/// How soon all callers have to know: long before the ten seconds after which a silent link is
/// checked.
const PROMPT: Duration = Duration::from_secs(5);

across_http!(requests_under_way_fail_and_name_the_tunnel);

async fn requests_under_way_fail_and_name_the_tunnel(http: Http) {
    let fixture = Fixture::new(http.member_options()).await;
    let never = Gate::new();
    let gate = never.clone();
    fixture.member.on("/never", move |_| Reply::full(200, &[], "").after(&gate));
    let mut waiting = fixture.testbed.connect(http).await;
    let asking = tokio::spawn(async move { waiting.get(&proxied(CLUSTER, "/never")).await });
    fixture.member.next_request().await;
    let lost = Instant::now();
    fixture.server.cut();
    let answer = within(WAIT, "the end of the request", asking).await.expect("no panic");
    let message = answer.status_message(502, "InternalError");
    assert!(lost.elapsed() < PROMPT, "{:?}", lost.elapsed());
    assert!(message.contains("the tunnel through tunnel-server 127.0.0.1:"), "{message}");
    assert_eq!(answer.header("retry-after"), None, "the member may have acted on it");
    assert_eq!(fixture.get().await.status, 200, "the next links anew");
}

across_http!(watches_end_at_once);

async fn watches_end_at_once(http: Http) {
    let fixture = Fixture::new(http.member_options()).await;
    let mut streams = fixture.member.streams("/watch");
    let mut connection = fixture.testbed.connect(http).await;
    let mut watch = connection.open("GET", &proxied(CLUSTER, "/watch"), &[]).await.expect("an answer");
    let (_, events) = streams.next().await;
    assert!(events.send("{}\n").await);
    assert_eq!(watch.chunk().await.expect("an event").expect("more to come"), "{}\n");
    let lost = Instant::now();
    fixture.server.cut();
    within(PROMPT, "the end of the watch", watch.chunk()).await.expect_err("it is cut off, not ended");
    assert!(lost.elapsed() < PROMPT);
}

#[tokio::test]
async fn a_tunnel_server_that_dies_takes_its_links_with_it() {
    let address = ([127, 0, 0, 1], free_port().await).into();
    let mut fixture = Fixture::at(address, MemberOptions::default()).await;
    assert_eq!(fixture.get().await.status, 200);
    drop(std::mem::replace(&mut fixture.server, super::TunnelServer::start(&fixture.pki).await));
    fixture.testbed.until(WAIT, &proxied(CLUSTER, PATH), |answer| answer.status == 503).await;
    let server = super::TunnelServer::start_at(&fixture.pki, address).await;
    server.set(CLUSTER, super::Answer::LeadsTo(fixture.member.address()));
    fixture.testbed.until(WAIT, &proxied(CLUSTER, PATH), |answer| answer.status == 200).await;
}

#[tokio::test]
async fn between_two_links_of_an_agent_clients_are_told_to_repeat() {
    let fixture = Fixture::new(MemberOptions::default()).await;
    assert_eq!(fixture.get().await.status, 200);
    fixture.server.set(CLUSTER, refusal(Hop::Server, Reason::NoLink, "none"));
    fixture.server.cut();
    let is_missed = |answer: &system_tests::Answer| answer.text().contains("no tunnel-agent of the cluster is linked");
    let answer = fixture.testbed.until(WAIT, &proxied(CLUSTER, PATH), is_missed).await;
    answer.status_message(503, "ServiceUnavailable");
    assert_eq!(answer.header("retry-after"), Some("1"));
}
