use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use http_body_util::{BodyExt as _, StreamBody};
use k8s_openapi::api::core::v1::Secret;
use kit::member::{FakeMember, MemberOptions, StreamSender};
use kit::wait::within;
use kube::Api;
use kube::api::{ListParams, WatchParams};
use net::words::causes;
use tower::service_fn;

use super::*;

const SOON: Duration = Duration::from_mins(1);
const SECRETS: &str = "/api/v1/namespaces/vela-system/secrets";

/// The text read from `pieces` until the end or an error. The limits are five bytes for a response
/// and three for a line.
async fn read(target: &str, status: u16, pieces: &[&'static str]) -> Result<String, String> {
    let pieces = pieces.to_vec();
    let answer = move |_: Request<Body>| {
        let frames = pieces.clone().into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
        let body = StreamBody::new(futures_util::stream::iter(frames));
        async move { Ok::<_, BoxError>(Response::builder().status(status).body(body).unwrap()) }
    };
    let mut service = Bounded { whole: 5, line: 3 }.layer(service_fn(answer));
    let response = service.call(Request::get(target).body(Body::empty()).unwrap()).await.unwrap();
    let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(body.to_bytes().to_vec()).unwrap())
}

#[tokio::test]
async fn an_answer_has_so_many_bytes_and_each_line_of_a_watch_has() {
    assert_eq!(read("/pods", 200, &["abc", "de"]).await.as_deref(), Ok("abcde"));
    let told = read("/pods?limit=5", 200, &["abc", "d\n", "e"]).await.unwrap_err();
    assert_eq!(told, "the answer to /pods is too large: more than 5 bytes");
    let watch = "/pods?&watch=true&allowWatchBookmarks=true";
    for whole in [&["abc\n", "a", "bc", "\nabc\n\n\nabc\n"][..], &["ab", "c"], &["a\nb\nc\nd\n"]] {
        assert_eq!(read(watch, 200, whole).await, Ok(whole.concat()));
    }
    for long in [&["abc\n", "ab", "cd"][..], &["abcd"], &["abcd\n"], &["a\nabcd\na"], &["abc\nab", "c", "d\n"]] {
        let told = read(watch, 200, long).await.unwrap_err();
        assert_eq!(told, "an event of the watch of /pods is too large: more than 3 bytes", "{long:?}");
    }
    // An error response, and a request that only resembles a watch.
    assert!(read(watch, 500, &["abcde"]).await.is_ok() && read(watch, 500, &["a\nb\nc\n"]).await.is_err());
    assert!(read("/pods?watch=false", 200, &["a\nb\nc\n"]).await.is_err());
}

#[tokio::test]
async fn who_takes_less_or_as_much_is_told_alike() {
    let answer = |_: Request<Body>| async { Ok::<_, BoxError>(Response::new(Body::from(vec![b'x'; 6]))) };
    let client = Client::new(Bounded { whole: 5, line: 3 }.layer(service_fn(answer)), "default");
    let deadline = crate::calls::Deadline::after(SOON);
    for most in [4, 5, 6] {
        let response = client.send(Request::get("/pods").body(Body::empty()).unwrap()).await.unwrap();
        let cause = crate::calls::read(response, most, deadline, None).await.unwrap_err();
        let expected = format!("the answer is too large: more than {} bytes", most.min(5));
        assert_eq!(cause.to_string(), expected, "{most}");
    }
}

/// A client of `hub`, which starts to respond.
async fn answering(hub: &FakeMember) -> Api<Secret> {
    let directory = tempfile::tempdir().unwrap();
    let path = hub.write_kubeconfig(directory.path());
    let client = crate::client::client(Some(&path), "test").await.unwrap();
    Api::namespaced(client, "vela-system")
}

/// Sends an endless text. Returns how many MiB were accepted.
async fn endless(sender: StreamSender, begin: &'static str) -> usize {
    sender.send(begin).await;
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    let mut sent = 0;
    while sender.send(piece.clone()).await && sent < 256 {
        sent += 1;
    }
    sent
}

#[tokio::test]
async fn a_watch_event_without_an_end_is_given_up() {
    let hub = FakeMember::start(MemberOptions::default()).await;
    let mut streams = hub.streams(SECRETS);
    let secrets = answering(&hub).await;
    let watching = async {
        let mut events = pin!(secrets.watch(&WatchParams::default(), "0").await.unwrap());
        events.next().await.expect("an error").expect_err("it has no end")
    };
    let sending = async { endless(streams.next().await.1, r#"{"type":"ADDED","object":{""#).await };
    let (error, sent) = within(SOON, "the end of the watch", async { tokio::join!(watching, sending) }).await;
    let told = causes(&error);
    assert!(told.contains("an event of the watch of /api/v1/namespaces/vela-system/secrets is too large"), "{told}");
    assert!(sent < 48, "{sent} MiB were taken");
}

#[tokio::test]
async fn a_list_without_an_end_is_given_up() {
    let hub = FakeMember::start(MemberOptions::default()).await;
    let mut streams = hub.streams(SECRETS);
    let secrets = answering(&hub).await;
    let listing = async { secrets.list(&ListParams::default()).await.map(drop).expect_err("it has no end") };
    let sending = async { endless(streams.next().await.1, r#"{"kind":"SecretList","items":[{""#).await };
    let (error, sent) = within(SOON, "the end of the list", async { tokio::join!(listing, sending) }).await;
    let told = causes(&error);
    assert!(told.contains("the answer to /api/v1/namespaces/vela-system/secrets is too large"), "{told}");
    assert!(sent < 192, "{sent} MiB were taken");
}
