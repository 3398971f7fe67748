//! An admin endpoint beside hundreds of silent connections. In a process of its own, as they take
//! as many file descriptors twice.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use http::StatusCode;
use telemetry::admin::{serve, text};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::time::timeout;

/// How long a kubelet waits for an answer.
const WITHIN: Duration = Duration::from_secs(1);

async fn livez(address: SocketAddr) -> String {
    let ask = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).await.unwrap();
        String::from_utf8(heard).unwrap()
    };
    timeout(WITHIN, ask).await.expect("an answer in time")
}

#[tokio::test]
async fn silent_connections_keep_no_probe_waiting() {
    let handler = |_| async { text(StatusCode::OK, "ok") };
    let endpoint = serve((Ipv4Addr::LOCALHOST, 0).into(), &Handle::current(), handler).unwrap();
    let mut silent = Vec::new();
    for _ in 0..500 {
        silent.push(TcpStream::connect(endpoint.address()).await.unwrap());
    }
    let answer = livez(endpoint.address()).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
    let oldest = timeout(WITHIN, silent[0].read(&mut [0])).await.expect("closed at once");
    assert!(matches!(oldest, Ok(0) | Err(_)), "{oldest:?}");
    let newest = timeout(Duration::from_millis(20), silent[499].read(&mut [0])).await;
    assert!(newest.is_err(), "the newest was closed: {newest:?}");
}
