use std::net::Ipv4Addr;

use http_body_util::BodyExt as _;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

fn probes() -> Probes {
    let mut registry = Registry::default();
    registry.register("seen", "Things seen", Counter::<u64>::default());
    Probes { readiness: Readiness::default(), conditions: &["links", "shutdown"], metrics: Metrics::new(registry) }
}

fn get(target: &str) -> Request<()> {
    Request::get(target).body(()).unwrap()
}

async fn body(answer: Answer) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn readiness_tells_what_is_missing() {
    let probes = probes();
    let ready = probes.answer(&get("/readyz"), || unreachable!()).unwrap();
    assert_eq!((ready.status(), body(ready).await), (StatusCode::OK, "ok".to_owned()));
    let missing = probes.readiness.block("links");
    let answer = probes.answer(&get("/readyz"), || "0 of 2 links\n".to_owned()).unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let told = body(answer).await;
    assert_eq!(told, "[+]ping ok\n[-]links failed\n[+]shutdown ok\n0 of 2 links\nreadyz check failed\n");
    assert_eq!(probes.answer(&get("/livez"), String::new).unwrap().status(), StatusCode::OK);
    drop(missing);
    let told = body(probes.answer(&get("/readyz?verbose"), String::new).unwrap()).await;
    assert!(told.contains("[+]links ok") && told.ends_with("readyz check passed\n"), "{told}");
}

#[tokio::test]
async fn metrics_are_told_and_nothing_is_written() {
    let probes = probes();
    let answer = probes.answer(&get("/metrics"), String::new).unwrap();
    assert_eq!(answer.headers()[header::CONTENT_TYPE], CONTENT_TYPE);
    assert!(body(answer).await.contains("seen_total 0"));
    let post = Request::post("/metrics").body(()).unwrap();
    let refused = probes.answer(&post, String::new).unwrap();
    assert_eq!(
        (refused.status(), &refused.headers()[header::ALLOW]),
        (StatusCode::METHOD_NOT_ALLOWED, &"GET, HEAD".parse().unwrap())
    );
    assert!(probes.answer(&get("/debug"), String::new).is_none());
}

#[tokio::test]
async fn a_dropped_endpoint_ends_its_connections() {
    let handle = Handle::current();
    let endpoint =
        serve((Ipv4Addr::LOCALHOST, 0).into(), &handle, |_| async { text(StatusCode::OK, "hello") }).unwrap();
    let mut stream = TcpStream::connect(endpoint.address()).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let mut heard = [0; 12];
    stream.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"HTTP/1.1 200");
    drop(endpoint);
    let mut rest = Vec::new();
    timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&rest).ends_with("hello"), "{rest:?}");
}
