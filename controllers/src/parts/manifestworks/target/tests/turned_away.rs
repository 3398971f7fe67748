//! The source of a 429: for one object, or for all.

use delivery::manifests::{self, Lookup, Resource};
use delivery::work::ManifestWorkSpec;

use super::*;
use crate::parts::manifestworks::object::{Outcome, Remembered, Setting, settle};

const MAPS: &str = "/api/v1/namespaces/n/configmaps";
const MAP: &str = "/api/v1/namespaces/n/configmaps/a";
/// As a webhook or a quota refuses.
const TOO_MANY: &str = r#"{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 429,
    "reason": "TooManyRequests", "message": "admission webhook \"w\" denied the request: slowly",
    "details": {"retryAfterSeconds": 60}}"#;
/// As an overloaded API server refuses.
const OVERLOADED: &str = "Too many requests, please try again later.";

/// Processes one ConfigMap, on a member with these answers.
async fn settled(answers: &'static [(&'static str, u16, &'static str)]) -> Result<Outcome, MemberError> {
    let (target, owner, spec) = (target(answers), owner(), ManifestWorkSpec::default());
    let metrics = &target.member.metrics;
    let setting =
        Setting { target: &target, work: "w", spec: &spec, owner: &owner, executor: None, is_kept: true, metrics };
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}});
    let resource = Resource { name: "configmaps".into(), is_namespaced: true };
    let all = manifests::read(&[map], |_, _, _| Lookup::Found(resource.clone()));
    settle(setting, &all[0], Remembered::default(), false).await
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_has_too_much_to_do_speaks_of_its_object() {
    let outcome = settled(&[VERSION, (MAP, 404, MISSING), (MAPS, 429, TOO_MANY)]).await.unwrap();
    assert!(format!("{:?}", outcome.result).contains("denied the request: slowly"), "{:?}", outcome.result);
    let again = outcome.remembered.again.unwrap() - Instant::now();
    assert!(again >= Duration::from_mins(1), "it asked for a minute, and is asked again after {again:?}");
}

#[tokio::test(start_paused = true)]
async fn an_object_is_not_left_alone_for_ever() {
    let year = TOO_MANY.replace("60", "31536000").leak();
    let answers = vec![VERSION, (MAP, 404, MISSING), (MAPS, 429, &*year)].leak();
    let again = settled(answers).await.unwrap().remembered.again.unwrap() - Instant::now();
    assert_eq!(again, Duration::from_mins(4));
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_has_too_much_to_do_speaks_of_all() {
    let answer = settled(&[VERSION, (MAP, 404, MISSING), (MAPS, 429, OVERLOADED)]).await;
    assert!(matches!(answer, Err(MemberError::Away(_))), "{answer:?}");
    // Admission does not see reads: a server that refuses one has not read what it is about.
    for turned_away in [OVERLOADED, TOO_MANY] {
        let answers = vec![VERSION, (MAP, 429, turned_away)].leak();
        let answer = settled(answers).await;
        assert!(matches!(answer, Err(MemberError::Away(_))), "{answer:?}");
    }
}
