//! Certificates change while the gateway runs: new links use the new ones, and no open stream
//! breaks.

use system_tests::prelude::*;

use super::{Answer, Fixture, PATH, Pki, TunnelServer, member, tunnelled};

#[tokio::test]
async fn a_rotated_certificate_is_shown_on_new_links_and_old_ones_drain() {
    let fixture = Fixture::new(MemberOptions { alpn: &["http/1.1"], ..MemberOptions::default() }).await;
    // Every request needs a stream of its own.
    fixture.member.on_any(|_| Reply::full(200, &[("connection", "close")], "fine"));
    let mut streams = fixture.member.streams("/watch");
    let mut connection = fixture.testbed.connect(Http::H2).await;
    let mut watch = connection.open("GET", &proxied(CLUSTER, "/watch"), &[]).await.expect("an answer");
    let (_, events) = streams.next().await;
    fixture.pki.write_identity("gateway-2");
    becomes(WAIT, "a link with the new certificate", async || {
        assert_eq!(fixture.get().await.status, 200);
        fixture.server.links().last().is_some_and(|name| name == "gateway-2")
    })
    .await;
    assert_eq!(fixture.server.links(), ["gateway-1", "gateway-2"]);
    assert!(events.send("still here\n").await);
    assert_eq!(watch.chunk().await.expect("the watch goes on").expect("more to come"), "still here\n");
    assert_eq!(fixture.server.ended(), 0, "a link with a stream lives");
    drop((events, watch));
    eventually(WAIT, || fixture.server.ended() == 1).await;
    assert_eq!(fixture.get().await.status, 200);
}

#[tokio::test]
async fn the_end_of_the_certificate_shown_is_told_and_follows_its_file() {
    let fixture = Fixture::new(MemberOptions::default()).await;
    let series = format!(
        "cluster_gateway_certificate_expiry_timestamp_seconds{{file=\"{}\"}}",
        fixture.pki.path("gateway.crt").display()
    );
    let now = || std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    let long = fixture.testbed.metric(&series).await;
    assert!(long > now() + 24 * 60 * 60, "{long}");
    let soon = Leaf::client("gateway-1").valid(time::Duration::ZERO, time::Duration::hours(1));
    fixture.pki.frontends.issue(&soon).write_to(fixture.pki.directory.path(), "gateway").expect("a writable directory");
    becomes(WAIT, "the other end", async || fixture.testbed.metric(&series).await <= now() + 60 * 60).await;
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_counted_and_changes_nothing() {
    let fixture = Fixture::new(MemberOptions { alpn: &["http/1.1"], ..MemberOptions::default() }).await;
    fixture.member.on_any(|_| Reply::full(200, &[("connection", "close")], "fine"));
    std::fs::write(fixture.pki.path("gateway.crt"), "half a certif").expect("the directory is writable");
    becomes(WAIT, "the count", async || {
        fixture.testbed.metric("cluster_gateway_tunnel_reload_failures_total").await == 1
    })
    .await;
    assert_eq!(fixture.get().await.status, 200);
    assert_eq!(fixture.server.links(), ["gateway-1"]);
}

#[tokio::test]
async fn another_authority_of_the_servers_is_taken_over() {
    let (mut pki, member) = (Pki::new(), member(MemberOptions::default()).await);
    let wrong = Authority::new("not-yet");
    pki.write_ca(&wrong);
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    let testbed = pki.gateway(&[&server]).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 503);
    let servers = std::mem::replace(&mut pki.servers, wrong);
    pki.write_ca(&servers);
    testbed.until(WAIT, &proxied(CLUSTER, PATH), |answer| answer.status == 200).await;
}
