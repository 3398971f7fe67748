//! A refusal of the tunnel is reported with the hop that refused, and costs the cluster nothing
//! afterwards.

use kit::hub::ClusterSecret;
use kit::member::{BlackHole, MemberOptions};
use kit::wait::{Gate, WAIT, eventually, free_port};
use system_tests::{ADMIN, CLUSTER, Http, MEMBER_TOKEN, Testbed, proxied};
use tokio::time::{Duration, Instant};
use tunnel::{Hop, Reason};

use super::server::refusal;
use super::{Answer, Fixture, PATH, Pki, TunnelServer, member, tunnelled};

/// The message of one failed request, with its code and reason.
async fn failure_message(testbed: &Testbed, code: u16, reason: &str) -> String {
    message_of(&testbed.get(&proxied(CLUSTER, PATH)).await, code, reason)
}

fn message_of(answer: &system_tests::Answer, code: u16, reason: &str) -> String {
    let message = answer.status_message(code, reason);
    assert!(message.starts_with("cluster c1 is unreachable: dial tcp "), "{message}");
    message
}

#[tokio::test]
async fn each_refusal_names_its_hop_and_what_to_do() {
    let fixture = Fixture::new(MemberOptions::default()).await;
    let unavailable = (503, "ServiceUnavailable");
    let table = [
        (
            Hop::Server,
            Reason::NoLink,
            unavailable,
            "no tunnel-agent of the cluster is linked to the tunnel-server: check",
        ),
        (
            Hop::Server,
            Reason::UnknownCluster,
            unavailable,
            "no tunnel-agent of the cluster is linked to the tunnel-server: check",
        ),
        (Hop::Server, Reason::Limit, unavailable, "the tunnel-server accepts no more streams: why; retry shortly"),
        (Hop::Server, Reason::Draining, unavailable, "the tunnel-server is shutting down: why"),
        (
            Hop::Server,
            Reason::Forbidden,
            unavailable,
            "the tunnel-server refused this gateway: why: check --proxy-cert",
        ),
        (Hop::Agent, Reason::Forbidden, unavailable, "the tunnel-agent refused: why: check the agent's --allow"),
        (
            Hop::Agent,
            Reason::Lookup,
            unavailable,
            "cannot connect to its API server: why: check the agent's --api-server",
        ),
        (Hop::Agent, Reason::Unreachable, unavailable, "cannot connect to its API server: why"),
        (Hop::Agent, Reason::DialTimeout, (504, "Timeout"), "its API server does not answer: why: i/o timeout"),
        (Hop::Server, Reason::AgentTimeout, (504, "Timeout"), "did not answer in time: why: i/o timeout"),
    ];
    for (hop, reason, (code, word), expected) in table {
        fixture.server.set(CLUSTER, refusal(hop, reason, "why"));
        // A circuit of its own for each.
        fixture.testbed.register(CLUSTER, tunnelled(CLUSTER, &fixture.member).data("tls-server-name", reason.as_str()));
        let failure_message = |answer: &system_tests::Answer| answer.text().contains(expected);
        let answer = fixture.testbed.until(WAIT, &proxied(CLUSTER, PATH), failure_message).await;
        answer.status_message(code, word);
        let again = answer.header("retry-after");
        let momentary = matches!(reason, Reason::Limit | Reason::Draining);
        assert_eq!(again, momentary.then_some("1"), "{hop} {}", reason.as_str());
        let series = format!("cluster_gateway_tunnel_opens_total{{outcome=\"{}\",hop=\"{hop}\"}}", reason.as_str());
        assert!(fixture.testbed.metric(&series).await >= 1, "{series}");
    }
    assert_eq!(fixture.member.connections_accepted(), 0);
}

#[tokio::test]
async fn a_gateway_without_a_tunnel_says_which_flags_it_needs() {
    let member = member(MemberOptions::default()).await;
    let testbed = Testbed::builder().cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    let message = testbed.get(&proxied(CLUSTER, PATH)).await.status_message(503, "ServiceUnavailable");
    assert!(message.contains("ClusterProxy") && message.contains("--proxy-host"), "{message}");
    assert!(message.contains("--tunnel-listen"), "{message}");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named() {
    let (pki, member) = (Pki::new(), member(MemberOptions::default()).await);
    let port = free_port().await;
    let testbed = pki
        .gateway_at("127.0.0.1")
        .arg(&format!("--proxy-port={port}"))
        .cluster(CLUSTER, tunnelled(CLUSTER, &member))
        .start()
        .await;
    let message = failure_message(&testbed, 503, "ServiceUnavailable").await;
    let expected = format!("the gateway cannot reach any tunnel-server: dial tcp 127.0.0.1:{port}: connect: ");
    assert!(message.contains(&expected) && message.contains("check --proxy-host"), "{message}");
    // It comes, and is found at once: no circuit keeps the cluster away.
    for _ in 0..10 {
        failure_message(&testbed, 503, "ServiceUnavailable").await;
    }
    let server = TunnelServer::start_at(&pki, ([127, 0, 0, 1], port).into()).await;
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    let back = Instant::now();
    testbed.until(WAIT, &proxied(CLUSTER, PATH), |answer| answer.status == 200).await;
    assert!(back.elapsed() < Duration::from_secs(5), "{:?}", back.elapsed());
}

#[tokio::test]
async fn a_name_that_leads_nowhere_is_named() {
    let (pki, member) = (Pki::new(), member(MemberOptions::default()).await);
    let testbed = pki.gateway_at("no-such-host.invalid").cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    let message = failure_message(&testbed, 503, "ServiceUnavailable").await;
    assert!(message.contains("dial tcp: lookup no-such-host.invalid: "), "{message}");
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_believed() {
    let (pki, member) = (Pki::new(), member(MemberOptions::default()).await);
    let server = TunnelServer::start(&Pki::new()).await;
    let testbed = pki.gateway(&[&server]).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    let message = failure_message(&testbed, 503, "ServiceUnavailable").await;
    assert!(message.contains("tls: invalid peer certificate"), "{message}");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn what_is_no_tunnel_server_is_named() {
    let (pki, member) = (Pki::new(), member(MemberOptions::default()).await);
    let options = MemberOptions { alpn: &["http/1.1"], ..MemberOptions::default() };
    let other = super::member(options).await;
    pki.write_ca(other.authority());
    let testbed =
        pki.gateway_at(&other.address().to_string()).cluster(CLUSTER, tunnelled(CLUSTER, &member)).start().await;
    let message = failure_message(&testbed, 503, "ServiceUnavailable").await;
    assert!(message.contains("tls: ") || message.contains("it does not support HTTP/2"), "{message}");
}

#[tokio::test]
async fn silence_ends_with_the_dial_timeout() {
    let (pki, member, hole) = (Pki::new(), member(MemberOptions::default()).await, BlackHole::start().await);
    let testbed = pki
        .gateway_at(&hole.address().to_string())
        .arg("--dial-timeout=500ms")
        .cluster(CLUSTER, tunnelled(CLUSTER, &member))
        .start()
        .await;
    let started = Instant::now();
    let message = failure_message(&testbed, 504, "Timeout").await;
    // Of ten seconds by default.
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    assert!(message.contains(&hole.address().to_string()), "{message}");
}

#[tokio::test]
async fn a_dial_that_nobody_waits_for_is_cancelled_at_the_far_end() {
    let fixture = Fixture::with(MemberOptions::default(), |builder| builder.arg("--dial-timeout=2s")).await;
    fixture.server.set(CLUSTER, Answer::Waits(Gate::new(), fixture.member.address()));
    failure_message(&fixture.testbed, 504, "Timeout").await;
    eventually(WAIT, || fixture.server.cancelled() == 1).await;
}

#[tokio::test]
async fn that_no_agent_is_linked_opens_no_circuit() {
    let fixture = Fixture::new(MemberOptions::default()).await;
    fixture.server.set(CLUSTER, refusal(Hop::Server, Reason::NoLink, "none"));
    let mut connection = fixture.testbed.connect(Http::H2).await;
    for _ in 0..10 {
        let message = connection.get(&proxied(CLUSTER, PATH)).await.status_message(503, "ServiceUnavailable");
        assert!(!message.contains("attempts to connect failed"), "{message}");
    }
    fixture.server.set(CLUSTER, Answer::LeadsTo(fixture.member.address()));
    assert_eq!(fixture.get().await.status, 200, "the agent is back, and used at once");
}

#[tokio::test]
async fn an_api_server_that_its_agent_cannot_reach_opens_the_circuit() {
    let fixture = Fixture::new(MemberOptions::default()).await;
    fixture.server.set(CLUSTER, refusal(Hop::Agent, Reason::Unreachable, "connection refused"));
    // One connection: on a slow machine, others take as long as the circuit's first pause.
    let mut connection = fixture.testbed.connect(Http::H2).await;
    let mut message = String::new();
    for _ in 0..6 {
        message = message_of(&connection.get(&proxied(CLUSTER, PATH)).await, 503, "ServiceUnavailable");
    }
    assert!(message.contains("the last 5 attempts to connect failed"), "{message}");
    assert_eq!(fixture.server.count(), 5);
}

#[tokio::test]
async fn an_upgrade_is_refused_in_the_same_words() {
    let fixture = Fixture::new(MemberOptions::default()).await;
    fixture.server.set(CLUSTER, refusal(Hop::Server, Reason::NoLink, "none"));
    let mut connection = fixture.testbed.client().h1().await.expect("the gateway accepts connections");
    let authorization = format!("Bearer {ADMIN}");
    let target = proxied(CLUSTER, "/api/v1/namespaces/ns/pods/p/exec?command=sh");
    let headers = [("Authorization", authorization.as_str())];
    let head = connection.upgrade("GET", &target, "websocket", &headers).await.expect("an answer");
    assert_eq!(head.status, 503, "{head:?}");
}

#[tokio::test]
async fn files_that_cannot_be_used_stop_the_start() {
    let pki = Pki::new();
    let secret = ClusterSecret::new("vela-system", CLUSTER).tunnelled().token(MEMBER_TOKEN);
    std::fs::write(pki.path("gateway.key"), "no key").expect("the directory is writable");
    let start = pki.gateway_at("127.0.0.1").cluster(CLUSTER, secret).launch();
    let failed = tokio::spawn(async move { drop(start.await) }).await.expect_err("it does not start");
    let panic = failed.into_panic();
    let text = panic.downcast_ref::<String>().expect("a message");
    assert!(text.contains("--proxy-ca-cert, --proxy-cert, --proxy-key") && text.contains("gateway.key"), "{text}");
}
