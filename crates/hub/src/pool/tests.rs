use futures_util::future::join_all;
use http_body_util::BodyExt as _;
use kit::member::{FakeMember, MemberOptions, Reply};
use kit::pki::ALPN_H1;

use super::*;

const KIB: usize = 1 << 10;

async fn client_of(server: &FakeMember) -> Client {
    let directory = tempfile::tempdir().unwrap();
    let path = server.write_kubeconfig(directory.path());
    pooled_client(Some(&path), None, "test/1").await.unwrap()
}

async fn begin(client: &Client, path: &str) -> Response<Body> {
    client.send(Request::get(path).body(Body::empty()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn streams_share_connections_and_a_place_is_free_when_its_stream_ends() {
    let server = FakeMember::start(MemberOptions::default()).await;
    let mut streams = server.streams("/watch");
    let client = client_of(&server).await;
    let open = join_all((0..250).map(|_| begin(&client, "/watch"))).await;
    assert_eq!(server.connections_accepted(), 3, "for 250 streams of a hundred each");
    let (first, _sender) = streams.next().await;
    assert_eq!(first.header("authorization"), Some("Bearer secret"));
    assert_eq!(first.header("user-agent"), Some("test/1"));
    drop(open);
    join_all((0..250).map(|_| begin(&client, "/watch"))).await;
    assert_eq!(server.connections_accepted(), 3, "those of before have room again");
}

#[tokio::test]
async fn a_stream_that_nobody_reads_stops_no_other() {
    let server = FakeMember::start(MemberOptions::default()).await;
    server.on("/long", |_| Reply::full(200, &[], vec![b'x'; 256 * KIB]));
    let client = client_of(&server).await;
    let paused = join_all((1..STREAMS).map(|_| begin(&client, "/long"))).await;
    let read = begin(&client, "/long").await.into_body().collect().await.unwrap().to_bytes();
    assert_eq!((read.len(), server.connections_accepted()), (256 * KIB, 1));
    for body in paused {
        assert_eq!(
            body.into_body().collect().await.unwrap().to_bytes().len(),
            256 * KIB,
            "they go on as they are read"
        );
    }
}

#[tokio::test]
async fn a_connection_that_is_lost_is_opened_again() {
    let server = FakeMember::start(MemberOptions::default()).await;
    let mut streams = server.streams("/watch");
    server.on("/get", |_| Reply::full(200, &[], "got"));
    let client = client_of(&server).await;
    let open = begin(&client, "/watch").await;
    let _sender = streams.next().await;
    server.close_connections();
    assert!(open.into_body().collect().await.is_err(), "it does not look as if it had ended well");
    assert_eq!(begin(&client, "/get").await.into_body().collect().await.unwrap().to_bytes(), "got");
    assert_eq!(server.connections_accepted(), 2);
}

#[tokio::test]
async fn a_server_that_is_asked_to_leave_answers_what_it_has_and_others_go_on_elsewhere() {
    let server = FakeMember::start(MemberOptions::default()).await;
    let mut streams = server.streams("/watch");
    server.on("/get", |_| Reply::full(200, &[], "got"));
    let client = client_of(&server).await;
    let mut open = begin(&client, "/watch").await.into_body();
    let (_, sender) = streams.next().await;
    server.goaway();
    while server.connections_accepted() < 2 {
        assert_eq!(begin(&client, "/get").await.into_body().collect().await.unwrap().to_bytes(), "got");
    }
    sender.send("line").await;
    assert_eq!(open.frame().await.unwrap().unwrap().into_data().unwrap(), "line");
}

#[tokio::test]
async fn a_server_without_http2_is_asked_as_it_speaks() {
    let server = FakeMember::start(MemberOptions { alpn: ALPN_H1, ..MemberOptions::default() }).await;
    server.on("/get", |_| Reply::full(200, &[], "got"));
    let client = client_of(&server).await;
    let post = || Request::post("/get").body(Body::empty()).unwrap();
    let first = client.send(post()).await.unwrap_err();
    assert!(NoHttp2::is_why(&first), "it is not sent twice: {first:?}");
    client.send(post()).await.unwrap();
    let client = client_of(&server).await;
    let got = begin(&client, "/get").await;
    assert_eq!(got.into_body().collect().await.unwrap().to_bytes(), "got", "a GET goes on as the server speaks");
}

#[tokio::test(start_paused = true)]
async fn http2_is_tried_again_by_a_request_that_can_be_sent_once_more() {
    let server = FakeMember::start(MemberOptions::default()).await;
    let kubeconfig = kube::Config::new(server.url().parse().unwrap());
    let http1 = Pool::new(&kubeconfig).unwrap().http1;
    assert!(!http1.takes(true) && http1.begins() && !http1.begins());
    assert!(http1.takes(true) && http1.takes(false));
    tokio::time::advance(Duration::from_mins(10)).await;
    assert!(http1.takes(false), "it would fail");
    assert!(!http1.takes(true) && http1.takes(true), "one is enough to find out");
    http1.ends();
    assert!(!http1.takes(true) && !http1.takes(false));
}
