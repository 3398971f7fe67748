use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tower::service_fn;

use super::*;
use crate::parts::manifestworks::sights::Lists;
use crate::wakes::Wakes;

const RESYNC: Duration = Duration::from_mins(4);

/// When the member was asked for a watch, and for a list.
#[derive(Default)]
struct Asked {
    watches: Vec<Instant>,
    lists: Vec<Instant>,
}

/// Follows a member that answers watches with `code`.
async fn follow_for(time: Duration, code: u16) -> Asked {
    follow_telling(time, code, &Wakes::default()).await
}

async fn follow_telling(time: Duration, code: u16, answered: &Wakes) -> Asked {
    let asked = Arc::<Mutex<Asked>>::default();
    let theirs = Arc::clone(&asked);
    let answer = move |request: Request<Body>| {
        let asked = Arc::clone(&theirs);
        async move {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            if !is_watch {
                asked.lock().lists.push(Instant::now());
                let list = json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                    "metadata": {"resourceVersion": "5"}, "items": []});
                return Ok::<_, tower::BoxError>(response(200, &list));
            }
            asked.lock().watches.push(Instant::now());
            Ok(response(code, &json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code})))
        }
    };
    let sights = Arc::<Mutex<Seen>>::default();
    let way = Way {
        cluster: "c".to_owned(),
        sender: Client::new(service_fn(answer), "default").into(),
        lists: Lists::default().of_one(),
        wakes: Wakes::default(),
        answered: answered.clone(),
        resync: RESYNC,
    };
    let scope = Scope {
        group: String::new(),
        version: "v1".to_owned(),
        resource: "configmaps".to_owned(),
        namespace: "n".to_owned(),
    };
    let is_seeing = Arc::default();
    let one = Follow { way, scope, is_watch: true, is_seeing, sights: Arc::downgrade(&sights) };
    assert!(timeout(time, follow(one)).await.is_err(), "it never ends");
    std::mem::take(&mut *asked.lock())
}

fn response(code: u16, body: &serde_json::Value) -> Response<Body> {
    let response = Response::builder().status(code).body(Body::from(body.to_string().into_bytes()));
    response.expect("a response")
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_is_tried_again_after_an_hour_and_lists_come_meanwhile() {
    for code in [403, 405] {
        let asked = follow_for(REFUSED * 5 / 2, code).await;
        let between: Vec<Duration> = asked.watches.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(between.len(), 2, "{code}: {between:?}");
        assert!(between.iter().all(|time| *time >= REFUSED && *time < REFUSED + RESYNC), "{code}: {between:?}");
        // None is late. Early are the one before each try of a watch, when the hour has ended, and
        // the one after it, in place of the watch.
        let between: Vec<Duration> = asked.lists.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(between.len() >= 30, "{code}: {between:?}");
        assert!(between.iter().all(|time| *time < RESYNC + BETWEEN_REQUESTS), "{code}: {between:?}");
        let early = between.iter().filter(|time| **time < RESYNC.mul_f64(1.0 - CHANCE)).count();
        assert!(early < 2 * asked.watches.len(), "{code}: {between:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_breaks_is_tried_again_at_once() {
    let asked = follow_for(Duration::from_secs(20), 500).await;
    assert!(asked.watches.len() >= 3, "{}", asked.watches.len());
}

#[tokio::test(start_paused = true)]
async fn the_first_list_that_succeeds_says_that_the_member_answers() {
    let answered = Wakes::default();
    follow_telling(Duration::from_secs(5), 403, &answered).await;
    assert_eq!(answered.waiting(), 1, "nobody is told");
    assert_eq!(answered.next().await, (String::new(), "c".to_owned()));
}
