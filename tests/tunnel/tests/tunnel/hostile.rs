//! Requests other than `CONNECT` are answered or cut off, in bounded time, and leave nothing
//! behind.

mod agents;

use std::time::Duration;

use kit::wait::{becomes, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tunnel_tests::testbed::REST;
use tunnel_tests::{AgentSpec, Caller, Frontend, Site, Testbed, measure, testbed::CLUSTER};

/// Longer than a slow head may take.
const PATIENCE: Duration = Duration::from_secs(15);

/// The server's answer to `text`, up to its end.
async fn said(caller: &Caller, text: &[u8]) -> String {
    let mut io = caller.connect().await.expect("connected");
    // The server may answer and close before it has read everything.
    let _ = io.write_all(text).await;
    let _ = io.flush().await;
    let mut answer = Vec::new();
    let read = within(PATIENCE, "the server's answer", io.read_to_end(&mut answer)).await;
    if let Err(error) = read {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
    }
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_requests_get_a_status_and_an_end() {
    let testbed = Testbed::simple().await;
    let large = format!("CONNECT a:1 HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(200 << 10));
    let cases: [(&str, &[&str]); 9] = [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", &["405"]),
        ("POST /tunnel/v1/links HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", &["405"]),
        ("\0\u{1}\u{2}nonsense\r\n\r\n", &["400"]),
        ("CONNECT\r\n\r\n", &["400"]),
        ("CONNECT a:1 HTTP/1.1\r\nbad header\r\n\r\n", &["400"]),
        ("CONNECT a:1 HTTP/1.1\r\nTunnel-Cluster: No/Name\r\n\r\n", &["400", "404"]),
        ("CONNECT a:1 HTTP/1.1\r\nTunnel-Cluster: a\r\nTunnel-Cluster: b\r\n\r\n", &["400", "404"]),
        ("CONNECT a:1 HTTP/3.7\r\n\r\n", &["400", "505"]),
        (&large, &["431"]),
    ];
    for kind in [Frontend::Uds, Frontend::Tls] {
        let caller = testbed.caller(kind);
        for (text, statuses) in cases {
            let answer = said(&caller, text.as_bytes()).await;
            let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split(' ').next()).unwrap_or_default();
            let sent = &text[..text.len().min(60)];
            assert!(statuses.contains(&status), "{kind:?}: {sent:?} was answered {answer:?}");
            if status == "405" {
                assert!(answer.to_ascii_lowercase().contains("\r\nallow: connect\r\n"), "{answer}");
            }
        }
    }
    testbed.wait_idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorities_are_read_strictly() {
    let long = ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(61)].join(".");
    let agent = AgentSpec::new(CLUSTER).allow("::1").allow(&long);
    let testbed = Testbed::builder().agent(agent).start().await;
    let long = format!("{long}:443");
    let too_long = format!("{}:443", ["a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(63)].join("."));
    for kind in [Frontend::Uds, Frontend::Tls] {
        let caller = testbed.caller(kind);
        let bad =
            ["127.0.0.1:0", "127.0.0.1:65536", ":443", "127.0.0.1", "127.0.0.1:", "user@127.0.0.1:443", "::1:443"];
        let bad = bad.into_iter().chain(["[::1%25eth0]:443", "[127.0.0.1]:443", "a b:443", "http://a:443/", &too_long]);
        for authority in bad {
            let answer = caller.refused(authority).await;
            assert_eq!(answer.status, 400, "{kind:?}: CONNECT {authority} was answered {answer:?}");
        }
        // The longest name there can be gets as far as the agent's resolver.
        let answer = caller.refused(&long).await;
        assert_eq!((answer.status, answer.hop.as_str()), (502, "agent"), "{answer:?}");
        // An IPv6 literal gets as far as the agent's own connect.
        let answer = caller.refused("[::1]:1").await;
        assert_eq!((answer.status, answer.hop.as_str()), (502, "agent"), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_ipv6_literal_leads_to_an_ipv6_address() {
    let Ok(listener) = tokio::net::TcpListener::bind(("::1", 0)).await else {
        println!("this machine has no IPv6");
        return;
    };
    let testbed = Testbed::builder().agent(AgentSpec::new(CLUSTER).allow("::1")).start().await;
    let echo = Site::on(listener, |mut socket| async move {
        let (mut reader, mut writer) = socket.split();
        tokio::io::copy(&mut reader, &mut writer).await
    });
    for caller in testbed.callers() {
        let mut tunnel = caller.must(&echo.authority()).await;
        measure::echo_p99(&mut tunnel, 1).await.expect("an echo");
    }
}

/// Heads that never end, in drips or not at all, and TLS that never begins: cut off, and nothing of
/// them is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_heads_are_cut_off_and_leave_nothing() {
    const EACH: usize = 50;
    let testbed = Testbed::builder().agent(AgentSpec::new(CLUSTER)).waiting().start().await;
    let start = Instant::now();
    let mut slow = tokio::task::JoinSet::new();
    let tls = testbed.server(0).frontend_address().expect("a TLS frontend");
    let agents = testbed.server(0).agent_address();
    for _ in 0..EACH {
        for address in [tls, agents] {
            slow.spawn(async move {
                let mut socket = TcpStream::connect(address).await.expect("connected");
                let _ = socket.read(&mut [0]).await; // the end, whichever
            });
        }
        for kind in [Frontend::Uds, Frontend::Tls] {
            let caller = testbed.caller(kind);
            slow.spawn(async move {
                let mut io = caller.connect().await.expect("connected");
                let drip = async {
                    while io.write_all(b"C").await.is_ok() && io.flush().await.is_ok() {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                };
                drip.await;
            });
        }
    }
    let echo = Site::echo().await;
    for caller in testbed.callers() {
        measure::echo_p99(&mut caller.must(&echo.authority()).await, 10).await.expect("others are served meanwhile");
    }
    within(PATIENCE, "all slow ones to be cut off", async { while slow.join_next().await.is_some() {} }).await;
    println!("{} slow connections were cut off within {:?}", EACH * 4, start.elapsed());
    drop(echo);
    let series = "tunnel_server_frontend_connections";
    becomes(REST, format!("{series} at 0"), async || testbed.metric(series).await == 0.0).await;
    testbed.wait_idle().await;
}
