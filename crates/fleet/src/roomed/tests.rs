use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use http_body_util::StreamBody;
use hyper::body::Frame;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, ListParams, WatchParams};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::service_fn;

use super::*;

const WITHIN: Duration = Duration::from_secs(30);

#[derive(Clone)]
struct Two(Arc<Semaphore>, Arc<Semaphore>);

impl Room for Two {
    type Held = Option<OwnedSemaphorePermit>;
    const SMALL: usize = 1000;
    const SHORT: usize = 200;
    const LONG: usize = 1000;

    async fn small(&self) -> Self::Held {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }

    async fn large(&self) -> Self::Held {
        Arc::clone(&self.1).acquire_owned().await.ok()
    }

    async fn line(&self) -> Self::Held {
        self.large().await
    }
}

/// A server that takes a second for each answer, and counts how many it makes at a time.
fn server(padding: usize, most: &Arc<AtomicUsize>) -> Client {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::clone(most));
    let answer = move |_: Request<Body>| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            now.fetch_sub(1, Ordering::Relaxed);
            let metadata = json!({"resourceVersion": "1", "padding": "x".repeat(padding)});
            let list = json!({"kind": "NamespaceList", "apiVersion": "v1", "metadata": metadata,
                "items": []});
            Ok::<_, kube::Error>(Response::new(Body::from(list.to_string().into_bytes())))
        }
    };
    Client::new(service_fn(answer), "default")
}

fn two() -> Two {
    Two(Arc::new(Semaphore::new(2)), Arc::new(Semaphore::new(1)))
}

#[tokio::test(start_paused = true)]
async fn so_many_lists_are_made_at_a_time() {
    let most = Arc::new(AtomicUsize::new(0));
    let api = Api::<Namespace>::all(Sender::from(server(10, &most)).roomed(two(), WITHIN).client("default"));
    let lists = (0..10).map(|_| {
        let api = api.clone();
        tokio::spawn(async move { api.list(&ListParams::default()).await })
    });
    for list in lists.collect::<Vec<_>>() {
        list.await.unwrap().unwrap();
    }
    assert_eq!(most.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn what_is_large_waits_for_room_of_its_own_and_what_is_small_does_not() {
    let (room, most) = (two(), Arc::default());
    let large = room.large().await;
    let list = |padding| {
        let api =
            Api::<Namespace>::all(Sender::from(server(padding, &most)).roomed(room.clone(), WITHIN).client("default"));
        async move { api.list(&ListParams::default()).await }
    };
    list(10).await.unwrap();
    let failure = crate::Failure::from(list(2000).await.unwrap_err());
    assert!(failure.to_string().contains("no room"), "{failure}");
    drop(large);
    list(2000).await.unwrap();
    assert_eq!(room.0.available_permits() + room.1.available_permits(), 3, "it is given back");
}

#[tokio::test(start_paused = true)]
async fn who_never_answers_does_not_keep_its_room() {
    let never = |_: Request<Body>| std::future::pending::<Result<Response<Body>, kube::Error>>();
    let room = two();
    let api = Api::<Namespace>::all(Sender::new(service_fn(never)).roomed(room.clone(), WITHIN).client("default"));
    let failure = crate::Failure::from(api.list(&ListParams::default()).await.unwrap_err());
    assert!(failure.to_string().contains("no answer within 30s"), "{failure}");
    assert_eq!(room.0.available_permits(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_large_room_holds_no_small_one_and_is_asked_again_when_there_is_one() {
    let (room, most) = (two(), Arc::default());
    let large = room.large().await;
    let lists = (0..2).map(|_| {
        let api =
            Api::<Namespace>::all(Sender::from(server(2000, &most)).roomed(room.clone(), WITHIN).client("default"));
        tokio::spawn(async move { api.list(&ListParams::default()).await })
    });
    let lists: Vec<_> = lists.collect();
    tokio::time::sleep(WITHIN * 2).await;
    assert_eq!(room.0.available_permits(), 2, "small lists of others go on");
    drop(large);
    for list in lists {
        list.await.unwrap().unwrap();
    }
}

/// A member that sends these parts of a response, a second apart, and then nothing more.
fn parts(code: u16, parts: Vec<Vec<u8>>) -> Client {
    let answer = move |_: Request<Body>| {
        let parts = futures_util::stream::iter(parts.clone()).then(|part| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, Infallible>(Frame::data(Bytes::from(part)))
        });
        let body = StreamBody::new(parts.chain(futures_util::stream::pending()));
        let response = Response::builder().status(code).body(UnsyncBoxBody::new(body));
        async move { response.map_err(kube::Error::HttpError) }
    };
    Client::new(service_fn(answer), "default")
}

fn event(padding: usize) -> Vec<u8> {
    let metadata = json!({"name": "n", "resourceVersion": "2", "annotations": {"a": "x".repeat(padding)}});
    let object = json!({"kind": "Namespace", "apiVersion": "v1", "metadata": metadata});
    format!("{}\n", json!({"type": "ADDED", "object": object})).into_bytes()
}

/// Counts the events of a watch until it breaks off or ends, and says why. Takes two minutes at
/// most.
async fn watched(client: Client, room: &Two) -> (usize, Option<String>) {
    let api = Api::<Namespace>::all(Sender::from(client).roomed(room.clone(), WITHIN).client("default"));
    let mut events = match api.watch(&WatchParams::default(), "1").await {
        Ok(events) => events.boxed(),
        Err(error) => return (0, Some(net::words::causes(&error))),
    };
    let mut told = 0;
    let watching = async {
        while let Some(event) = events.next().await {
            match event {
                Ok(_) => told += 1,
                Err(error) => return Some(net::words::causes(&error)),
            }
        }
        None
    };
    let why = timeout(Duration::from_mins(2), watching).await.unwrap_or(Some("it goes on".to_owned()));
    (told, why)
}

#[tokio::test(start_paused = true)]
async fn a_watch_whose_answer_does_not_begin_or_whose_error_does_not_end_breaks_off() {
    let never = |_: Request<Body>| std::future::pending::<Result<Response<Body>, kube::Error>>();
    for client in [Client::new(service_fn(never), "default"), parts(500, vec![b"{".to_vec()])] {
        let (_, why) = watched(client, &two()).await;
        assert!(why.as_ref().is_some_and(|why| why.contains("no answer within 30s")), "{why:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_line_of_a_watch_has_an_end_and_a_length() {
    let broken = |why: &Option<String>, words: &str| why.as_ref().is_some_and(|why| why.contains(words));
    let (begun, short) = (event(10)[..50].to_vec(), event(1));
    let (told, why) = watched(parts(200, vec![short.clone(), begun]), &two()).await;
    assert!(told == 1 && broken(&why, "a line has no end within 30s"), "{told} {why:?}");
    let (told, why) = watched(parts(200, vec![event(2000)]), &two()).await;
    assert!(told == 0 && broken(&why, "a line of more than 1000 bytes"), "{told} {why:?}");
    let (told, why) = watched(parts(200, vec![short.clone(), short]), &two()).await;
    assert!(told == 2 && broken(&why, "it goes on"), "silence is no fault: {told} {why:?}");
}

#[tokio::test(start_paused = true)]
async fn a_long_line_of_a_watch_waits_for_room_and_gives_it_back() {
    let room = two();
    let large = room.large().await;
    let long = || event(500).chunks(100).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (told, why) = watched(parts(200, long()), &room).await;
    assert!(told == 0 && why.as_ref().is_some_and(|why| why.contains("no room for so long a line")), "{why:?}");
    drop(large);
    let more = [long(), vec![event(10)]].concat();
    assert_eq!(watched(parts(200, more), &room).await, (1, None), "told, the watch begins anew without its buffer");
    assert_eq!(room.1.available_permits(), 1);
}
