use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::transport::Transport;

fn proxy(port: u16) -> Proxy {
    let credentials = Some(Credentials { user: "jane".into(), password: "s3cret".into() });
    Proxy { protocol: Protocol::Http, host: "127.0.0.1".into(), port, credentials }
}

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

#[tokio::test]
async fn a_proxy_that_is_down_is_named_and_the_password_is_not() {
    let (listener, port) = listener().await;
    drop(listener);
    let error = proxy(port).connect("member.example", 6443, soon()).await.err().unwrap();
    let text = error.to_string();
    let expected = format!("dial tcp member.example:6443: through the proxy http://127.0.0.1:{port}: ");
    assert!(text.starts_with(&expected) && text.contains("unreachable"), "{text}");
    assert!(!error.is_timeout() && !format!("{error:?}{text}").contains("s3cret"));
}

#[tokio::test]
async fn a_proxy_that_never_answers_is_a_timeout() {
    let (_listener, port) = listener().await;
    let deadline = Instant::now() + Duration::from_millis(50);
    let error = proxy(port).connect("::1", 6443, deadline).await.err().unwrap();
    assert!(error.is_timeout(), "{error}");
    assert!(error.to_string().starts_with("dial tcp [::1]:6443: "), "{error}");
}

#[tokio::test]
async fn early_bytes_come_first_and_a_clean_answer_leaves_plain_tcp() {
    for early in ["", "early "] {
        let (listener, port) = listener().await;
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(format!("HTTP/1.1 200 OK\r\n\r\n{early}").as_bytes()).await.unwrap();
            stream.read_exact(&mut request[..4]).await.unwrap();
            stream.write_all(b"late").await.unwrap();
        });
        let opened = proxy(port).connect("member.example", 80, soon()).await.unwrap().plain();
        assert_eq!(matches!(opened, Transport::Plain(_)), early.is_empty());
        let mut opened = opened;
        opened.write_all(b"ping").await.unwrap();
        let mut got = Vec::new();
        opened.read_to_end(&mut got).await.unwrap();
        assert_eq!(got, format!("{early}late").as_bytes());
        serving.await.unwrap();
    }
}
