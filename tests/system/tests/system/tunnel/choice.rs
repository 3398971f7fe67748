//! Several tunnel-servers: the one that has the cluster is found, remembered, and left when it is
//! away.

use kit::member::{BlackHole, FakeMember, MemberOptions};
use kit::wait::{Gate, WAIT, becomes, free_port};
use system_tests::{CLUSTER, Testbed, proxied};
use tokio::time::{Duration, Instant};
use tunnel::{Hop, Reason};

use super::server::refusal;
use super::{Answer, PATH, Pki, TunnelServer, member, tunnelled};

/// Time of a dial, which an absent server must not use up.
const DIAL: Duration = Duration::from_secs(10);

/// A member whose connections end with their request, so that each needs a stream of its own.
async fn forgetful() -> FakeMember {
    let member = member(MemberOptions { alpn: &["http/1.1"], ..MemberOptions::default() }).await;
    member.on_any(|_| kit::member::Reply::full(200, &[("connection", "close")], "fine"));
    member
}

async fn get(testbed: &Testbed) -> u16 {
    testbed.get(&proxied(CLUSTER, PATH)).await.status
}

#[tokio::test]
async fn the_server_that_has_the_cluster_is_found_and_remembered() {
    let (pki, member) = (Pki::new(), forgetful().await);
    let servers = [TunnelServer::start(&pki).await, TunnelServer::start(&pki).await, TunnelServer::start(&pki).await];
    servers[2].set(CLUSTER, Answer::LeadsTo(member.address()));
    servers[1].set(CLUSTER, refusal(Hop::Server, Reason::NoLink, "not any more"));
    let all: Vec<_> = servers.iter().collect();
    let testbed = pki.gateway(&all).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    for _ in 0..10 {
        assert_eq!(get(&testbed).await, 200);
    }
    assert_eq!(servers[2].count(), 10);
    assert!(servers[0].count() <= 1 && servers[1].count() <= 1, "{} {}", servers[0].count(), servers[1].count());

    // The agent links elsewhere: another search, once.
    servers[2].set(CLUSTER, refusal(Hop::Server, Reason::Draining, "leaving"));
    servers[0].set(CLUSTER, Answer::LeadsTo(member.address()));
    let before = servers[2].count();
    for _ in 0..10 {
        assert_eq!(get(&testbed).await, 200);
    }
    assert_eq!(servers[2].count(), before + 1);
}

#[tokio::test]
async fn a_server_that_is_full_sends_to_the_next() {
    let (pki, member) = (Pki::new(), forgetful().await);
    let (full, other) = (TunnelServer::start(&pki).await, TunnelServer::start(&pki).await);
    full.set(CLUSTER, refusal(Hop::Server, Reason::Limit, "full"));
    other.set(CLUSTER, Answer::LeadsTo(member.address()));
    let testbed = pki.gateway(&[&full, &other]).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    for _ in 0..4 {
        assert_eq!(get(&testbed).await, 200);
    }
}

#[tokio::test]
async fn what_the_agent_says_is_final() {
    let (pki, member) = (Pki::new(), forgetful().await);
    let servers = [TunnelServer::start(&pki).await, TunnelServer::start(&pki).await];
    for server in &servers {
        server.set(CLUSTER, refusal(Hop::Agent, Reason::Unreachable, "refused"));
    }
    let testbed = pki.gateway(&[&servers[0], &servers[1]]).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    assert_eq!(get(&testbed).await, 503);
    assert_eq!(servers[0].count() + servers[1].count(), 1);
}

#[tokio::test]
async fn servers_that_cannot_be_reached_are_left_alone() {
    let (pki, member) = (Pki::new(), forgetful().await);
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    let hosts = format!("127.0.0.1:{},{}", free_port().await, server.address());
    let testbed = pki.gateway_at(&hosts).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    for _ in 0..10 {
        assert_eq!(get(&testbed).await, 200);
    }
    assert_eq!(server.count(), 10);
    server.set(CLUSTER, refusal(Hop::Server, Reason::NoLink, "none"));
    let message = testbed.get(&proxied(CLUSTER, PATH)).await.status_message(503, "ServiceUnavailable");
    assert!(message.contains("linked to the one tunnel-server that could be asked (dial tcp 127.0.0.1:"), "{message}");
}

#[tokio::test]
async fn a_server_that_swallows_everything_costs_a_moment() {
    let (pki, member, hole) = (Pki::new(), forgetful().await, BlackHole::start().await);
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    let hosts = format!("{},{}", hole.address(), server.address());
    let testbed = pki.gateway_at(&hosts).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    for _ in 0..4 {
        let started = Instant::now();
        assert_eq!(get(&testbed).await, 200);
        assert!(started.elapsed() < DIAL, "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn a_server_that_never_answers_costs_a_moment() {
    let (pki, member) = (Pki::new(), forgetful().await);
    let (mute, server) = (TunnelServer::start(&pki).await, TunnelServer::start(&pki).await);
    mute.set(CLUSTER, Answer::Waits(Gate::new(), member.address()));
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    let testbed = pki.gateway(&[&mute, &server]).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    let started = Instant::now();
    for _ in 0..3 {
        assert_eq!(get(&testbed).await, 200);
    }
    assert!(started.elapsed() < DIAL, "{:?}", started.elapsed());
    kit::wait::eventually(WAIT, || mute.cancelled() == mute.count()).await;
}

#[tokio::test]
async fn a_server_that_leaves_is_linked_to_anew_and_its_streams_go_on() {
    let (pki, member) = (Pki::new(), member(MemberOptions::default()).await);
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    let testbed = pki.gateway(&[&server]).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    assert_eq!(get(&testbed).await, 200);
    server.drain();
    assert_eq!(get(&testbed).await, 200);
    assert_eq!((server.count(), server.links().len()), (1, 1), "the member's connection is still good");
    // The gateway may learn of it a moment later; until then a new cluster's connection goes over
    // the old link, and is served.
    let mut others = 0;
    becomes(WAIT, "a link that is not leaving", async || {
        others += 1;
        let other = format!("other-{others}");
        server.set(&other, Answer::LeadsTo(member.address()));
        testbed.register(&other, tunnelled(&other, &member));
        testbed.until(WAIT, &proxied(&other, PATH), |answer| answer.status == 200).await;
        server.links().len() == 2
    })
    .await;
    assert_eq!(get(&testbed).await, 200, "what the old link carries goes on");
}
