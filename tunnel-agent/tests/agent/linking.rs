//! How many links are made, to which servers, and how often the agent tries.

use std::collections::BTreeSet;
use std::time::Duration;

use http::StatusCode;
use kit::wait::timely;
use tokio::time::Instant;

use crate::fixture::{Fixture, admin, metric, ready};
use crate::server::FakeServer;

#[tokio::test(flavor = "multi_thread")]
async fn each_server_gets_its_links_and_readiness_tells_of_them() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.server(&["one"]).await, fixture.server(&["two"]).await);
    let agent = fixture.agent(&[&one, &two], &["--links=2"]);
    ready(&agent);
    let mut links = one.linked(2).await;
    links.extend(two.linked(2).await);
    let numbers: BTreeSet<_> = links.iter().map(|(seen, _)| seen.link).collect();
    assert_eq!(numbers.len(), 4, "no link can be taken for another's replacement: {numbers:?}");
    let agents: BTreeSet<_> = links.iter().map(|(seen, _)| (&seen.agent, &seen.cluster)).collect();
    assert_eq!(agents.len(), 1, "{agents:?}");
    assert_eq!(links[0].0.cluster, "c1");
    assert_eq!(links[0].0.authorization.as_deref(), Some("Bearer first"));
    kit::wait::becomes(kit::wait::WAIT, "all four links listed", async || {
        admin(&agent, "/readyz?verbose").await.1.contains("4 of 4 links to 2 tunnel-servers")
    })
    .await;
    assert!((metric(&agent, "tunnel_agent_servers").await - 2.0).abs() < f64::EPSILON);
    assert_eq!(one.seen().len() + two.seen().len(), 4, "nobody looks for more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_behind_one_address_is_found() {
    let fixture = Fixture::new();
    // Two in a row lead to the same server: the agent must try a third link.
    let balancer = fixture.server(&["one", "one", "two"]).await;
    let agent = fixture.agent(&[&balancer], &["--links=2"]);
    ready(&agent);
    balancer
        .until("links to both", |balancer| {
            let servers: BTreeSet<_> = balancer.links().into_iter().map(|(seen, _)| seen.server).collect();
            (servers.len() == 2).then_some(())
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_for_a_second_server_in_vain_is_rare() {
    let fixture = Fixture::new();
    let server = fixture.server(&["only"]).await;
    let agent = fixture.agent(&[&server], &["--links=2"]);
    ready(&agent);
    // Three more links in a row are the look; they are returned, and no other follows for seconds.
    server.until("a look", |server| (server.seen().len() == 5 && server.links().len() == 2).then_some(())).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((server.seen().len(), server.links().len()), (5, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_names_of_one_server_do_not_double_its_links() {
    let fixture = Fixture::new();
    let (front, back) = (fixture.server(&["same"]).await, fixture.server(&["same"]).await);
    let agent = fixture.agent(&[&front, &back], &["--links=2"]);
    ready(&agent);
    let total = || front.links().len() + back.links().len();
    kit::wait::eventually(kit::wait::WAIT, || front.seen().len() + back.seen().len() >= 4 && total() == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_is_linked_again_within_two_seconds() {
    timely(Duration::from_secs(2), "links to the restarted server", restart).await;
}

/// Returns how long the links to a restarted server took.
async fn restart() -> Duration {
    let fixture = Fixture::new();
    let address = ([127, 0, 0, 1], kit::wait::free_port().await).into();
    let server = FakeServer::at(address, &fixture.authority, &["before"]).await;
    let other = fixture.server(&["other"]).await;
    let agent = fixture.agent(&[&other, &server], &["--links=2"]);
    ready(&agent);
    server.linked(2).await;
    drop(server);
    // An outage that is long enough for the waits to have grown.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let server = FakeServer::at(address, &fixture.authority, &["after"]).await;
    let started = Instant::now();
    let links = server.linked(2).await;
    let took = started.elapsed();
    assert!(links.iter().all(|(seen, _)| seen.server.as_deref() == Some("after")));
    assert!(metric(&agent, "tunnel_agent_links_lost_total").await >= 2.0);
    took
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_is_not_stormed() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    server.refuse(Some((StatusCode::TOO_MANY_REQUESTS, Some(Duration::from_secs(2)))));
    let started = Instant::now();
    let agent = fixture.agent(&[&server], &[]);
    server.until("a try", |server| (!server.seen().is_empty()).then_some(())).await;
    server.refuse(None);
    server.linked(2).await;
    assert!(started.elapsed() > Duration::from_secs(2), "Retry-After is kept: {:?}", started.elapsed());
    let failures = metric(&agent, "tunnel_agent_registration_failures_total{reason=\"limit\"}").await;
    assert!((failures - 1.0).abs() < f64::EPSILON, "{failures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_credential_is_tried_again_now_and_then() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    server.refuse(Some((StatusCode::FORBIDDEN, None)));
    let agent = fixture.agent(&[&server], &[]);
    server.until("a try", |server| (!server.seen().is_empty()).then_some(())).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let tries = server.seen().len();
    assert!((1..=12).contains(&tries), "{tries} tries in three seconds");
    let (status, told) = admin(&agent, "/readyz").await;
    assert!(status == 503 && told.contains("[-]links failed") && told.contains("0 of "), "{status} {told}");
    server.refuse(None);
    server.linked(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_server_that_leaves_another_is_looked_for_soon() {
    let fixture = Fixture::new();
    let server = fixture.server(&["other"]).await;
    server.refuse(Some((StatusCode::SERVICE_UNAVAILABLE, Some(Duration::from_mins(1)))));
    let _agent = fixture.agent(&[&server], &[]);
    server.until("a try", |server| (!server.seen().is_empty()).then_some(())).await;
    server.refuse(None);
    // Ten seconds at most, although the server that left asked for sixty.
    server.linked(2).await;
}
