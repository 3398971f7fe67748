use kit::member::BlackHole;
use kit::wait::free_port;
use tokio::net::TcpListener;

use super::*;

const PLACE: HostPort<'static> = HostPort { host: "berlin.example", port: 6443 };

fn within(time: Duration) -> Instant {
    Instant::now() + time
}

async fn refusing() -> SocketAddr {
    ([127, 0, 0, 1], free_port().await).into()
}

#[tokio::test]
async fn a_silent_or_refusing_address_does_not_keep_from_the_next() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (hole, good) = (BlackHole::start().await, listener.local_addr().unwrap());
    for dead in [hole.address(), refusing().await] {
        let started = Instant::now();
        let stream = connect_to(PLACE, [dead, good], within(Duration::from_secs(10))).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), good);
        assert!(stream.nodelay().unwrap(), "it is tuned");
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn when_time_is_up_the_place_and_each_address_are_named() {
    let (hole, refusing) = (BlackHole::start().await, refusing().await);
    let error = connect_to(PLACE, [hole.address(), refusing], within(Duration::from_millis(100))).await.unwrap_err();
    let tried = format!("no answer from {}", hole.address());
    assert_eq!(
        error.to_string(),
        format!("dial tcp berlin.example:6443: i/o timeout: {tried}"),
        "the second had no turn"
    );
    let error = connect_to(PLACE, [refusing, hole.address()], within(Duration::from_millis(100))).await.unwrap_err();
    let tried = format!("{refusing}: connection refused, {tried}");
    assert_eq!(error.to_string(), format!("dial tcp berlin.example:6443: i/o timeout: {tried}"));
    assert!(error.is_timeout());
}

#[tokio::test]
async fn one_silent_address_is_named_alone() {
    let hole = BlackHole::start().await;
    let error = connect_to(PLACE, [hole.address()], within(Duration::from_millis(100))).await.unwrap_err();
    assert_eq!(error.to_string(), format!("dial tcp {}: i/o timeout", hole.address()));
}

#[tokio::test]
async fn when_all_refuse_it_is_told_of_the_first() {
    let (first, second) = (refusing().await, refusing().await);
    for addresses in [vec![first], vec![first, second]] {
        let error = connect_to(PLACE, addresses, within(Duration::from_secs(10))).await.unwrap_err();
        assert_eq!(error.to_string(), format!("dial tcp {first}: connect: connection refused"));
        assert!(!error.is_timeout());
    }
}

#[tokio::test]
async fn failures_are_worded_as_go_words_them() {
    let told = |source: std::io::Error| DialError::Connect { address: "a:1".into(), source }.to_string();
    for (number, words) in [(111, "connection refused"), (101, "network is unreachable"), (13, "permission denied")] {
        let source = std::io::Error::from_raw_os_error(number);
        assert_eq!(told(source), format!("dial tcp a:1: connect: {words}"));
    }
    let error = connect("no-such-host.invalid", 1, within(Duration::from_secs(10))).await.unwrap_err();
    assert!(error.to_string().starts_with("dial tcp: lookup no-such-host.invalid: "), "{error}");
}

#[tokio::test]
async fn a_name_is_resolved_to_each_of_its_addresses_once() {
    let soon = || within(Duration::from_secs(10));
    for host in ["192.0.2.1", "::1"] {
        assert_eq!(resolve(host, 7, soon()).await.unwrap(), [SocketAddr::new(host.parse().unwrap(), 7)]);
    }
    let local = resolve("localhost", 7, soon()).await.unwrap();
    let distinct: std::collections::HashSet<_> = local.iter().collect();
    assert!(local.iter().all(|address| address.ip().is_loopback()) && distinct.len() == local.len(), "{local:?}");
    let error = resolve("no-such-host.invalid", 7, soon()).await.unwrap_err();
    assert!(error.to_string().starts_with("dial tcp: lookup no-such-host.invalid"), "{error}");
}
