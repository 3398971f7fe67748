use kit::pki::{ALPN_H1, Authority, ClientAuth, Leaf, server_config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tunnel::Destination;

use super::*;

/// Sends `answer` for any request.
async fn server(authority: &Authority, answer: &'static [u8]) -> Destination {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap().to_string();
    let tls = TlsAcceptor::from(server_config(&authority.issue(&Leaf::server("api")), ClientAuth::None, ALPN_H1));
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let Ok(mut stream) = tls.accept(socket).await else { continue };
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            assert!(!head.to_ascii_lowercase().windows(14).any(|part| part == b"authorization:"));
            let _ = stream.write_all(answer).await;
            let _ = stream.shutdown().await;
        }
    });
    Destination::parse(&place).unwrap()
}

#[tokio::test]
async fn any_http_answer_counts() {
    let authority = Authority::new("members-ca");
    for (answer, counts) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"[..], true),
        (b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", true),
        (b"SSH-2.0-nothing\r\n", false),
        (b"", false),
    ] {
        let place = server(&authority, answer).await;
        let asked = ask(&ApiServer { place, ca: None }).await;
        assert_eq!(asked.is_ok(), counts, "{asked:?}");
    }
}

#[tokio::test]
async fn a_known_ca_is_insisted_on() {
    let directory = tempfile::tempdir().unwrap();
    let (own, other) = (Authority::new("own"), Authority::new("other"));
    let ca = own.write_to(directory.path(), "ca").unwrap();
    let answer = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    let good = ApiServer { place: server(&own, answer).await, ca: Some(ca.clone()) };
    ask(&good).await.unwrap();
    let strange = ApiServer { place: server(&other, answer).await, ca: Some(ca) };
    assert!(matches!(ask(&strange).await, Err(NotAnswering::Tls(_))));
}

#[tokio::test]
async fn readiness_waits_for_the_answer() {
    let readiness = Readiness::default();
    let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let place = Destination::parse(&address.to_string()).unwrap();
    let watching = tokio::spawn(watch(ApiServer { place, ca: None }, readiness.clone(), metrics.clone()));
    kit::wait::eventually(kit::wait::WAIT, || readiness.blocked_by() == [CONDITION]).await;
    assert_eq!(metrics.api_server_up.get(), 0);
    watching.abort();

    let place = server(&Authority::new("ca"), b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    let _watching = tokio::spawn(watch(ApiServer { place, ca: None }, readiness.clone(), metrics.clone()));
    kit::wait::eventually(kit::wait::WAIT, || metrics.api_server_up.get() == 1).await;
    assert!(readiness.blocked_by().is_empty());
}
