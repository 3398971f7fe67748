//! The destinations that the agent connects to, and how it refuses others.

use std::time::Duration;

use kit::member::BlackHole;
use kit::wait::timely;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tunnel::{Hop, Reason};

use crate::fixture::{Fixture, echo, echoes, metric, open, ready, refused};

#[tokio::test(flavor = "multi_thread")]
async fn the_api_server_goes_by_its_names_and_by_no_others() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let address = echo().await;
    let arguments = fixture.arguments(&[&server], address);
    let agent = tunnel_agent::Agent::start(arguments).unwrap();
    let (_, link) = server.linked(2).await.remove(0);
    for name in
        ["c1:1234", "kubernetes.default.svc:443", "Kubernetes.Default.svc.cluster.local.:443", &address.to_string()]
    {
        echoes(&mut open(&link, name).await.unwrap(), name.as_bytes()).await;
    }
    let other = echo().await.to_string();
    for name in [&*other, "kubernetes.default.svc:80", "169.254.169.254:80", "c2:443"] {
        let refusal = refused(&link, name).await;
        assert_eq!((refusal.hop, refusal.reason), (Hop::Agent, Reason::Forbidden), "{name}: {refusal}");
        assert!(
            refusal.message.contains("cluster c1") && refusal.message.contains(&format!("--allow={name}")),
            "{refusal}"
        );
    }
    let counted = metric(&agent, "tunnel_agent_refused_destinations_total").await;
    assert!((counted - 4.0).abs() < f64::EPSILON, "{counted}");
    kit::wait::becomes(kit::wait::WAIT, "closed streams uncounted", async || {
        metric(&agent, "tunnel_agent_streams").await.abs() < f64::EPSILON
    })
    .await;
    let bytes = metric(&agent, "tunnel_agent_bytes_total{direction=\"to-destination\"}").await;
    assert!(bytes > 50.0, "{bytes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_failure_is_told_as_what_it_is() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let hole = BlackHole::start().await;
    let agent = fixture.agent(&[&server], &["--allow=127.0.0.0/8,no-such-host.invalid", "--dial-timeout=5s"]);
    ready(&agent);
    let (_, link) = server.linked(2).await.remove(0);
    let free = kit::wait::free_port().await;
    let refusal = refused(&link, &format!("127.0.0.1:{free}")).await;
    assert_eq!(refusal.reason, Reason::Unreachable);
    assert!(refusal.message.contains(&format!("dial tcp 127.0.0.1:{free}: connect: connection refused")), "{refusal}");
    let refusal = refused(&link, "no-such-host.invalid:80").await;
    assert_eq!(refusal.reason, Reason::Lookup, "{refusal}");
    assert!(refusal.message.contains("lookup no-such-host.invalid"), "{refusal}");
    timely(Duration::from_secs(5), "an answer before the server gives up", async || {
        let started = Instant::now();
        let refusal = refused(&link, &hole.address().to_string()).await;
        assert_eq!(refusal.reason, Reason::DialTimeout, "{refusal}");
        started.elapsed()
    })
    .await;
    assert!(metric(&agent, "tunnel_agent_dials_total{outcome=\"dial-timeout\"}").await > 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_exist_and_names_that_do_not_are_refused_alike() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    // Addresses of a documentation network are allowed, to which no name here resolves.
    let agent = fixture.agent(&[&server], &["--allow=192.0.2.0/24"]);
    ready(&agent);
    let (_, link) = server.linked(2).await.remove(0);
    let told = async |host: &str| {
        let refusal = refused(&link, &format!("{host}:80")).await;
        (refusal.reason, refusal.message.replace(host, "HOST"))
    };
    let (reason, message) = told("localhost").await;
    assert_eq!(reason, Reason::Forbidden, "{message}");
    assert_eq!(told("no-such-host.invalid").await, (reason, message));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dial_given_up_by_its_asker_ends() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let hole = BlackHole::start().await;
    let agent = fixture.agent(&[&server], &["--allow=127.0.0.0/8", "--dial-timeout=1h"]);
    ready(&agent);
    let (_, link) = server.linked(2).await.remove(0);
    let address = hole.address().to_string();
    // A dial that is given up too early never reaches the agent.
    kit::wait::becomes(kit::wait::WAIT, "a dial's end", async || {
        let dial = open(&link, &address);
        assert!(tokio::time::timeout(Duration::from_millis(200), dial).await.is_err());
        metric(&agent, "tunnel_agent_dials_total{outcome=\"cancelled\"}").await > 0.0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destination_that_resets_is_heard_as_a_reset() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let agent = fixture.agent(&[&server], &[&format!("--allow={address}")]);
    ready(&agent);
    let (_, link) = server.linked(2).await.remove(0);
    let mut stream = open(&link, &address.to_string()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
    drop(socket);
    let error = kit::wait::within(kit::wait::WAIT, "a reset", stream.read_u8()).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_come_back_as_they_went_while_both_ways_are_busy() {
    let fixture = Fixture::new();
    let server = fixture.server(&["one"]).await;
    let address = echo().await;
    let agent = fixture.agent(&[&server], &[&format!("--allow={address}")]);
    ready(&agent);
    let (_, link) = server.linked(2).await.remove(0);
    for round in 0..8 {
        let sent: Vec<u8> = (0..1_000_003_u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
        let (mut read, mut write) = tokio::io::split(open(&link, &address.to_string()).await.unwrap());
        let expected = sent.clone();
        let writing = tokio::spawn(async move {
            // Pieces of all sizes, from short frames to more than a window's share.
            let (mut rest, mut size) = (&sent[..], 1 + round);
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(size.min(rest.len()));
                write.write_all(piece).await.unwrap();
                (rest, size) = (more, size * 7 % 40_009);
            }
            write.shutdown().await.unwrap();
        });
        let mut back = Vec::new();
        kit::wait::within(kit::wait::WAIT, "the echo", read.read_to_end(&mut back)).await.unwrap();
        writing.await.unwrap();
        let wrong = back.iter().zip(&expected).position(|(one, other)| one != other);
        assert_eq!((back.len(), wrong), (expected.len(), None), "round {round}");
    }
}
