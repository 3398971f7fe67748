//! Each way in which no stream comes about has its status, its reason, and the hop that answered;
//! and it comes in time.

use std::time::Duration;

use kit::member::BlackHole;
use kit::wait::{WAIT, becomes, free_port};
use tokio::task::block_in_place;
use tokio::time::Instant;
use tunnel_tests::{AgentSpec, Answer, Caller, Frontend, Site, Testbed, testbed::CLUSTER};

/// An answer that needs no network comes at once: on a busy machine too, long before any time for
/// dials is over.
const AT_ONCE: Duration = Duration::from_secs(5);

fn assert_answer(answer: &Answer, status: u16, reason: &str, hop: &str, words: &[&str]) {
    assert_eq!((answer.status, answer.reason.as_str(), answer.hop.as_str()), (status, reason, hop), "{answer:?}");
    for word in words {
        assert!(answer.message.contains(word), "{word:?} is not in the message: {answer:?}");
        assert!(answer.phrase.contains(word), "{word:?} is not in the reason phrase: {answer:?}");
    }
    assert!(answer.closed, "the connection stays open: {answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_unroutable_and_unknown_hosts_are_told_apart() {
    let agent = AgentSpec::new(CLUSTER).allow("255.255.255.255").allow("no-such-host.invalid");
    let testbed = Testbed::builder().agent(agent).start().await;
    let nobody = format!("127.0.0.1:{}", free_port().await);
    for caller in testbed.callers() {
        let start = Instant::now();
        assert_answer(&caller.refused(&nobody).await, 502, "unreachable", "agent", &["connection refused", &nobody]);
        let unroutable = caller.refused("255.255.255.255:443").await;
        assert_answer(&unroutable, 502, "unreachable", "agent", &["255.255.255.255"]);
        assert!(!unroutable.message.contains("refused"), "{unroutable:?}");
        assert!(start.elapsed() < AT_ONCE);
        let unknown = caller.refused("no-such-host.invalid:443").await;
        assert_answer(&unknown, 502, "lookup", "agent", &["no-such-host.invalid"]);
    }
    testbed.wait_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_that_does_not_answer_is_a_504_within_the_dial_timeout() {
    let agent = AgentSpec::new(CLUSTER).flag("--dial-timeout=1s");
    let testbed = Testbed::builder().agent(agent).server_flag("--dial-timeout=10s").start().await;
    let hole = BlackHole::start().await;
    for caller in testbed.callers() {
        let start = Instant::now();
        let answer = caller.refused(&hole.address().to_string()).await;
        assert_answer(&answer, 504, "dial-timeout", "agent", &[&hole.address().to_string()]);
        let took = start.elapsed();
        assert!(Duration::from_millis(500) < took && took < AT_ONCE, "{took:?}");
    }
    testbed.wait_idle().await;
}

/// An agent that is more patient than the server does not make a caller wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_servers_own_dial_timeout_holds_too() {
    let agent = AgentSpec::new(CLUSTER).flag("--dial-timeout=30s");
    let testbed = Testbed::builder().agent(agent).server_flag("--dial-timeout=1s").start().await;
    let hole = BlackHole::start().await;
    for caller in testbed.callers() {
        let start = Instant::now();
        let answer = caller.refused(&hole.address().to_string()).await;
        assert_eq!((answer.status, answer.hop.as_str()), (504, "server"), "{answer:?}");
        assert!(start.elapsed() < AT_ONCE, "{:?}", start.elapsed());
    }
    testbed.wait_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_without_an_agent_are_told_at_once() {
    let mut testbed = Testbed::simple().await;
    let refused = async |caller: Caller| {
        let start = Instant::now();
        let answer = caller.refused("10.0.0.1:443").await;
        assert!(start.elapsed() < AT_ONCE, "{:?}: {answer:?}", start.elapsed());
        answer
    };
    for kind in Frontend::ALL {
        let answer = refused(testbed.caller_of(0, kind, Some("never-seen"))).await;
        assert_answer(&answer, 404, "unknown-cluster", "server", &["never-seen"]);
    }
    let answer = refused(testbed.caller_of(0, Frontend::Uds, None)).await;
    assert!(matches!(answer.status, 400 | 404), "no cluster was named: {answer:?}");

    let agent = testbed.take_agent(0);
    block_in_place(|| drop(agent));
    let cluster = tunnel::ClusterName::parse(CLUSTER).expect("a name");
    kit::wait::eventually(WAIT, || !testbed.server(0).registry().is_linked(&cluster)).await;
    for caller in testbed.callers() {
        assert_answer(&refused(caller).await, 503, "no-link", "server", &[CLUSTER]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_agent_during_a_dial_is_told_at_once() {
    for kind in Frontend::ALL {
        let mut testbed = Testbed::simple().await;
        let hole = BlackHole::start().await;
        let (caller, authority) = (testbed.caller(kind), hole.address().to_string());
        let dial = tokio::spawn(async move { caller.refused(&authority).await });
        becomes(WAIT, "a dial under way", async || tunnel_tests::measure::connecting(hole.address().port()) > 0).await;
        let agent = testbed.take_agent(0);
        let start = Instant::now();
        block_in_place(|| drop(agent));
        let answer = dial.await.expect("an answer");
        assert!(matches!(answer.status, 502 | 503), "{kind:?}: {answer:?}");
        assert!(start.elapsed() < AT_ONCE, "{kind:?}: {:?}", start.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_agent_refuses_what_is_not_allowed() {
    let agent = AgentSpec { allow: Vec::new(), ..AgentSpec::new(CLUSTER) };
    let testbed = Testbed::builder().agent(agent.allow("allowed.invalid").allow("10.0.0.0/8:443")).start().await;
    let site = Site::echo().await;
    for caller in testbed.callers() {
        for forbidden in [site.authority().as_str(), "localhost:1", "169.254.169.254:80", "10.1.2.3:22", "[::1]:443"] {
            let answer = caller.refused(forbidden).await;
            assert_answer(&answer, 403, "forbidden", "agent", &[forbidden]);
        }
        // Its own API server, by address and by the names that mean it.
        let address = testbed.api_server.authority();
        for allowed in [address.as_str(), "kubernetes.default.svc:443", "kubernetes.default.svc.cluster.local:443"] {
            let mut tunnel = caller.must(allowed).await;
            tunnel_tests::measure::echo_p99(&mut tunnel, 1).await.expect("an echo");
        }
    }
    assert_eq!(site.accepted(), 0);
    let named = testbed.caller_of(0, Frontend::Uds, None);
    named.must(&format!("{CLUSTER}:443")).await;
    named.must(&format!("{CLUSTER}:6443")).await;
}
