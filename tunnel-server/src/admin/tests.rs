//! The endpoint as an operator uses it.

use kit::client::Client;
use kit::wait::{eventually, within};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tunnel::{ClusterName, Destination};

use super::*;
use crate::testing::{Bench, SOON};

async fn ask(admin: &Admin, request: &str) -> (u16, String) {
    let (method, path) = request.split_once(' ').expect("a method and a path");
    let mut connection = Client::plain(admin.address()).h1().await.expect("connected");
    let (head, body) = connection.call(method, path, &[("Connection", "close")], b"").await.expect("an answer");
    (head.status, String::from_utf8(body.to_vec()).expect("text"))
}

fn admin(bench: &Bench) -> Admin {
    start(([127, 0, 0, 1], 0).into(), bench.shared.clone(), &Handle::current()).expect("started")
}

#[tokio::test]
async fn probes_and_metrics_are_told() {
    let bench = Bench::start().await;
    let admin = admin(&bench);
    assert_eq!(ask(&admin, "GET /livez").await, (200, "ok".to_owned()));
    let (status, body) = ask(&admin, "GET /readyz?verbose").await;
    assert_eq!(status, 200);
    assert!(body.contains("[i]1 clusters linked, 0 streams open\n"), "{body}");
    let blocked = bench.shared.readiness.block("shutdown");
    let (status, body) = ask(&admin, "GET /readyz").await;
    assert_eq!(status, 503);
    assert!(body.contains("[-]shutdown failed"), "{body}");
    drop(blocked);
    let (_, body) = ask(&admin, "GET /metrics").await;
    assert!(
        body.contains("tunnel_server_links{cluster=\"east\"} 1") && body.contains("tunnel_server_sheds_total 0"),
        "{body}"
    );
    let (status, body) = ask(&admin, "GET /").await;
    assert!(status == 404 && body.contains("/debug/links"), "{body}");
}

#[tokio::test]
async fn what_is_open_is_listed_and_can_be_ended() {
    let bench = Bench::start().await;
    let admin = admin(&bench);
    let gateway = bench.gateway().await;
    let east = ClusterName::parse("east").expect("a name");
    let destination = Destination::new("a.member", 443).expect("a destination");
    let mut stream = gateway.open(&destination, Some(&east)).await.expect("opened");
    stream.write_all(b"hello").await.expect("sent");
    within(SOON, "an echo", stream.read_exact(&mut [0; 5])).await.expect("echoed");

    let (status, table) = ask(&admin, "GET /debug/links").await;
    assert!(status == 200 && table.contains("to a.member:443") && table.contains("agent fake"), "{table}");
    let (_, json) = ask(&admin, "GET /debug/links?format=json").await;
    let listing: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let link = &listing[0]["agents"][0]["links"][0];
    assert_eq!(listing[0]["cluster"], "east");
    assert_eq!(link["streams"][0]["bytesForth"], 5);
    assert_eq!(link["streams"][0]["bytesBack"], 5);

    let close = |kind: &str, id: &serde_json::Value| format!("POST /debug/{kind}/{id}/close");
    let close_stream = close("streams", &link["streams"][0]["id"]);
    assert_eq!(ask(&admin, &close_stream.replace("POST", "GET")).await.0, 405);
    assert_eq!(ask(&admin, &close_stream).await, (200, "reset\n".to_owned()));
    let error = within(SOON, "a reset", stream.read(&mut [0; 8])).await.expect_err("no clean end");
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    eventually(SOON, || bench.shared.registry.streams() == 0).await;
    assert_eq!(ask(&admin, &close_stream).await.0, 404);

    assert_eq!(ask(&admin, &close("links", &link["id"])).await, (200, "closed\n".to_owned()));
    eventually(SOON, || !bench.shared.registry.is_linked(&east)).await;
}
