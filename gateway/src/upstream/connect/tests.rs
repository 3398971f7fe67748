use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kit::member::{BlackHole, FakeMember, MemberOptions};
use kit::wait::{becomes, free_port};
use net::tls::client;
use rustls_pki_types::ServerName;

use super::*;

const PATIENCE: Duration = Duration::from_secs(5);

/// The server at `address`, with trust in `ca`.
fn address(address: SocketAddr, ca: &str) -> MemberAddress {
    let config = client::config(client::Trust::Bundle(ca.as_bytes()), None).unwrap();
    let name = ServerName::try_from(address.ip().to_string()).unwrap();
    MemberAddress { host: address.ip().to_string(), port: address.port(), tls: Some((config, name)), advice: "" }
}

fn at(member: &FakeMember) -> MemberAddress {
    address(member.address(), &member.ca_pem())
}

fn target(addresses: MemberAddresses, dial_timeout: Duration) -> Target {
    Target { addresses, dial_timeout, ..Target::sample() }
}

fn with_circuit(target: Target, failures: u32) -> Target {
    let mut registry = prometheus_client::registry::Registry::default();
    let metrics = crate::metrics::Metrics::register(&mut registry).for_cluster("c1".into(), None);
    Target { circuit: Circuit::new(failures, metrics.circuit()), ..target }
}

/// A member that can restart on its port.
async fn member() -> FakeMember {
    let address = ([127, 0, 0, 1], free_port().await).into();
    FakeMember::start(MemberOptions { address, ..MemberOptions::default() }).await
}

/// The same member again, on its old port.
async fn back(address: SocketAddr, authority: &Arc<kit::pki::Authority>) -> FakeMember {
    let authority = Some(Arc::clone(authority));
    FakeMember::start(MemberOptions { address, authority, ..MemberOptions::default() }).await
}

#[tokio::test]
async fn another_place_is_dialled_when_one_is_away_and_kept_while_it_answers() {
    let (first, second) = (member().await, member().await);
    let target = target(MemberAddresses::new(at(&first), [at(&second)]), PATIENCE);
    let goes_to = async |expected: SocketAddr| {
        target.connect_any(&target.held(0), None).await.expect("one place answers");
        assert_eq!(target.address(), expected.to_string());
    };
    let (first_address, authority) = (first.address(), Arc::clone(first.authority()));
    goes_to(first_address).await;
    drop(first);
    goes_to(second.address()).await;
    let first = back(first_address, &authority).await;
    goes_to(second.address()).await;
    assert_eq!((first.connections_accepted(), second.connections_accepted()), (0, 2));
    drop(second);
    goes_to(first_address).await;
}

#[tokio::test]
async fn a_place_that_swallows_everything_costs_its_share_of_the_time_only() {
    let (hole, member) = (BlackHole::start().await, member().await);
    let timeout = Duration::from_secs(4);
    let target = target(MemberAddresses::new(address(hole.address(), &member.ca_pem()), [at(&member)]), timeout);
    let started = Instant::now();
    target.connect_any(&target.held(0), None).await.expect("the second place answers");
    assert!((timeout / 2..timeout).contains(&started.elapsed()), "{:?}", started.elapsed());
    let again = Instant::now();
    target.connect_any(&target.held(0), None).await.expect("and is dialled first now");
    assert!(again.elapsed() < timeout / 2);
}

#[tokio::test]
async fn when_no_place_answers_all_are_named() {
    let (hole, member) = (BlackHole::start().await, member().await);
    let closed: SocketAddr = ([127, 0, 0, 1], free_port().await).into();
    let addresses =
        MemberAddresses::new(address(closed, &member.ca_pem()), [address(hole.address(), &member.ca_pem())]);
    let target = target(addresses, Duration::from_millis(400));
    let error = target.connect_any(&target.held(0), None).await.err().expect("nobody is there");
    let text = error.to_string();
    assert!(text.starts_with(&format!("dial tcp {closed}: connect: ")), "{text}");
    assert!(text.contains(&format!("; dial tcp {}: i/o timeout", hole.address())), "{text}");
    assert!(!error.is_timeout(), "one of them refused");
}

#[tokio::test]
async fn failed_dials_open_the_circuit_and_a_success_closes_it() {
    let member = member().await;
    let (address, authority) = (member.address(), Arc::clone(member.authority()));
    let target = with_circuit(target(MemberAddresses::new(at(&member), []), PATIENCE), 3);
    drop(member);
    for _ in 0..3 {
        let error = target.connect_any(&target.held(0), None).await.err().expect("nobody is there");
        assert!(matches!(error, ConnectError::Dial(_)), "{error}");
    }
    let error = target.connect_http1(&target.held(0), None).await.err().expect("upgrades share the circuit");
    assert!(matches!(error, ConnectError::CircuitOpen(_)) && !error.is_timeout(), "{error}");
    assert!(error.to_string().starts_with(&format!("dial tcp {address}: connect: ")), "{error}");
    let member = back(address, &authority).await;
    becomes(PATIENCE, "the end of the pause", async || target.connect_any(&target.held(0), None).await.is_ok()).await;
    target.connect_any(&target.held(0), None).await.expect("the circuit is closed");
    assert_eq!(member.connections_accepted(), 2);
}

#[tokio::test]
async fn a_member_that_takes_no_upgrades_is_there_for_all_else() {
    let member = FakeMember::start(MemberOptions { alpn: &["h2"], ..MemberOptions::default() }).await;
    let nobody = address(([127, 0, 0, 1], free_port().await).into(), &member.ca_pem());
    for others in [vec![], vec![nobody]] {
        let target = with_circuit(target(MemberAddresses::new(at(&member), others), PATIENCE), 1);
        for _ in 0..3 {
            let error = target.connect_http1(&target.held(0), None).await.err().expect("it speaks HTTP/2 only");
            assert!(error.to_string().contains("does not support HTTP/1.1"), "{error}");
            target.connect_any(&target.held(0), None).await.expect("the circuit stays closed");
        }
    }
}
