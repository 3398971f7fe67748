use std::sync::atomic::Ordering;

use delivery::identity::Identity;
use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::sync::Semaphore;
use tower::service_fn;

use super::*;
use crate::metrics::Delivery;
use crate::parts::manifestworks::failure::Failure;
use crate::parts::manifestworks::member::{At, Limits, MemberError};

/// A member that answers by path; anything else is a group that it has not.
fn place(answers: &'static [(&'static str, u16, &'static str)]) -> Place {
    let answer = move |request: Request<Body>| async move {
        let found = answers.iter().find(|(path, ..)| *path == request.uri().path());
        let (code, body) = found.map_or((404, "404 page not found"), |(_, code, body)| (*code, *body));
        let mut response = Response::new(Body::from(body.as_bytes().to_vec()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        Ok::<_, tower::BoxError>(response)
    };
    let limits = Limits { all: Arc::new(Semaphore::new(4)), of_one: 4, within: Duration::from_secs(5) };
    let client = Client::new(service_fn(answer), "default");
    let name = ClusterName::parse("c1").unwrap();
    let metrics = Delivery::register(&mut Registry::default());
    Place::new(Member::new(&name, client, limits, Arc::new(|| Duration::from_secs(5)), metrics))
}

const VERSION: (&str, u16, &str) = ("/version", 200, "{}");
const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/appliedmanifestworks.work.open-cluster-management.io";
const MISSING: &str = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404,
    "reason": "NotFound", "message": "not found", "details": {"name": "x", "kind": "y"}}"#;

#[tokio::test]
async fn a_broken_server_of_one_group_is_not_the_member() {
    let broken = place(&[VERSION, ("/apis/broken.io/v1", 503, "service unavailable")]);
    let answer = broken.member.read("/apis/broken.io/v1").await;
    assert!(matches!(answer, Err(MemberError::Refused(_))), "{answer:?}");
    let away = place(&[("/version", 503, "down"), ("/apis/broken.io/v1", 503, "down")]);
    let answer = away.member.read("/apis/broken.io/v1").await;
    assert!(matches!(answer, Err(MemberError::Away(_))), "{answer:?}");
}

#[tokio::test]
async fn that_nothing_is_listed_is_known_only_for_certain() {
    let none = place(&[VERSION, (DEFINITION, 404, MISSING)]);
    assert!(none.applied_for_certain("x").await.unwrap().is_none());
    let unserved = place(&[VERSION, (DEFINITION, 200, "{}")]);
    assert!(matches!(unserved.applied_for_certain("x").await, Err(Failure::Defined)));
    let unknown = place(&[VERSION, (DEFINITION, 500, "broken")]);
    assert!(unknown.applied_for_certain("x").await.is_err());
    let empty = place(&[VERSION, ("/apis", 200, r#"{"groups": []}"#)]);
    assert!(empty.kinds.serves(&empty.member, "g", "v1").await.is_err(), "no member has no group");
}

#[tokio::test]
async fn nothing_is_written_to_a_cluster_that_is_left() {
    let place = place(&[VERSION, ("/api/v1/namespaces/n/configmaps", 201, "{}")]);
    let identity = Identity { resource: "configmaps".into(), namespace: "n".into(), ..Identity::default() };
    let at = At { identity: &identity, version: "v1" };
    place.member.create(at, &json!({})).await.unwrap();
    place.member.close();
    let answer = place.member.create(at, &json!({})).await;
    assert!(matches!(answer, Err(MemberError::NotLeading(_))), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn those_that_fail_at_once_count_once_and_who_calls_often_is_not_heard_often() {
    let place = place(&[]);
    let (first, is_news) = place.is_away(Duration::ZERO, "down");
    assert!(is_news);
    for _ in 0..3 {
        assert_eq!(place.is_away(Duration::ZERO, "down"), (first, false));
    }
    assert_eq!(place.away.lock().failures, 1);
    assert!(place.try_now() && place.rest().is_none());
    place.is_away(Duration::ZERO, "down");
    assert!(!place.try_now() && place.rest().is_some());
    tokio::time::advance(BETWEEN_TRIES).await;
    assert!(place.try_now());
}

#[tokio::test]
async fn what_waits_for_a_cluster_that_is_left_waits_no_longer() {
    let place = place(&[]);
    let metrics = place.member.metrics.clone();
    place.at_work.store(MOST, Ordering::Relaxed);
    assert!(place.turn("w").is_none());
    assert_eq!(metrics.waiting(), 1);
    drop(place);
    assert_eq!(metrics.waiting(), 0);
}
