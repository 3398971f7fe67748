use serde_json::json;

use super::*;
use crate::samples::{base64, read_secret, with};
use crate::service_account_token::ServiceAccountToken;

const NOW: i64 = 1_800_000_000;
const ISSUED: i64 = NOW - 1000;
const LIFE: i64 = 10_000;

/// The object on the hub after upstream's defaults.
fn object() -> Value {
    json!({
        "apiVersion": "authentication.open-cluster-management.io/v1beta1", "kind": "ManagedServiceAccount",
        "metadata": {"namespace": "c1", "name": "reader", "uid": "m-1", "resourceVersion": "7",
            "creationTimestamp": "2027-01-15T07:00:00Z", "finalizers": ["example.com/mine", FINALIZER]},
        "spec": {"rotation": {"enabled": true, "validity": "8640h0m0s"}},
    })
}

fn account(object: &Value) -> Account {
    Account::read(object).unwrap()
}

fn claims() -> Value {
    json!({"aud": ["https://member.local"], "iss": "https://member.local", "iat": ISSUED, "nbf": ISSUED,
        "exp": ISSUED + LIFE, "sub": "system:serviceaccount:open-cluster-management-agent-addon:reader",
        "kubernetes.io": {"namespace": MEMBER_NAMESPACE, "serviceaccount": {"name": "reader", "uid": "s-1"}}})
}

fn token(claims: &Value) -> String {
    use base64::Engine as _;
    format!("head.{}.signature", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// As upstream's agent writes it.
fn secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"namespace": "c1", "name": "reader", "uid": "x-1", "labels": {LABEL: "true"},
            "ownerReferences": [{"apiVersion": "authentication.open-cluster-management.io/v1beta1",
                "kind": "ManagedServiceAccount", "name": "reader", "uid": "m-1"}]},
        "data": {"ca.crt": base64("CA"), "token": base64(token(&claims()))},
    })
}

fn on_member() -> MemberAccount {
    MemberAccount { uid: "s-1".to_owned(), is_managed: true }
}

fn judged(secret: &Value, now: i64) -> Judgement {
    account(&object()).judge(Some(&read_secret(secret)), Some(&on_member()), now)
}

fn with_token(claims: &Value) -> Value {
    with(secret(), "/data/token", base64(token(claims)))
}

#[test]
fn the_first_step_is_decided_by_the_object_alone() {
    let plain = with(object(), "/metadata/finalizers", json!([]));
    let gone = |object: Value| with(object, "/metadata/deletionTimestamp", "2027-01-15T07:30:00Z");
    let ending = |seconds: i64| with(object(), "/spec/ttlSecondsAfterCreation", seconds);
    let created = "2027-01-15T07:00:00Z".parse::<Timestamp>().unwrap().as_second();
    for (what, object, is_upstreams, now, expected) in [
        ("as usual", object(), false, NOW, Step::Keep),
        ("new", plain.clone(), false, NOW, Step::Keep),
        ("deleted", gone(object()), false, NOW, Step::Clean),
        ("deleted, and never filled by us", gone(plain.clone()), false, NOW, Step::Leave),
        ("the add-on's", plain.clone(), true, NOW, Step::Leave),
        ("ours until the add-on came", object(), true, NOW, Step::HandOver),
        ("deleted with the add-on there", gone(object()), true, NOW, Step::HandOver),
        ("its time is not over", ending(60), false, created + 60, Step::Keep),
        ("its time is over", ending(60), false, created + 61, Step::End),
        (
            "its time is over, and it is the add-on's",
            with(plain, "/spec/ttlSecondsAfterCreation", 60),
            true,
            created + 61,
            Step::Leave,
        ),
        ("its time is over, and it goes", gone(ending(60)), false, created + 61, Step::Clean),
    ] {
        assert_eq!(account(&object).step(is_upstreams, now), expected, "{what}");
    }
    assert_eq!(account(&ending(60)).end(), Some(created + 60));
}

#[test]
fn a_finalizer_of_ours_leaves_others_alone() {
    let account = account(&object());
    assert!(account.is_held());
    assert_eq!(account.finalizers(false), ["example.com/mine"]);
    assert_eq!(account.finalizers(true), ["example.com/mine", FINALIZER]);
}

#[test]
fn a_token_is_asked_for_when_there_is_none_that_is_good() {
    let four_fifths = ISSUED + LIFE / 5 * 4;
    let changed = |pointer: &str, value: Value| with_token(&with(claims(), pointer, value));
    let due = |why| Judgement::Due(why);
    for (what, secret, expected) in [
        ("no token", with(secret(), "/data", json!({"ca.crt": "Q0E="})), due(Why::Unreadable)),
        ("no CA", with(secret(), "/data/ca.crt", ""), due(Why::Unreadable)),
        ("no JWT", with(secret(), "/data/token", base64("opaque")), due(Why::Unreadable)),
        (
            "of another account",
            changed("/sub", json!("system:serviceaccount:kube-system:reader")),
            due(Why::OtherSubject),
        ),
        ("of one before", changed("/kubernetes.io/serviceaccount/uid", json!("s-0")), due(Why::OtherAccount)),
        ("ended", changed("/exp", json!(NOW - 1)), due(Why::Old)),
    ] {
        assert_eq!(judged(&secret, NOW), expected, "{what}");
    }
    assert!(matches!(judged(&secret(), four_fifths), Judgement::Good { due, .. } if due == four_fifths));
    assert_eq!(judged(&secret(), four_fifths + 1), due(Why::Old), "after four fifths of its life");
    let account = account(&object());
    assert_eq!(account.judge(None, Some(&on_member()), NOW), due(Why::NoSecret));
    assert_eq!(account.judge(Some(&read_secret(&secret())), None, NOW), due(Why::NoAccount));
}

#[test]
fn the_life_granted_counts_and_not_the_one_asked_for() {
    let short = with(claims(), "/exp", ISSUED + 1000);
    assert_eq!(judged(&with_token(&short), ISSUED + 801), Judgement::Due(Why::Old), "8640 h were asked for");
    assert!(matches!(judged(&with_token(&short), ISSUED + 800), Judgement::Good { .. }));
}

#[test]
fn a_secret_that_is_not_its_own_is_refused_whatever_is_in_it() {
    let owner = |field: &str, value: &str| with(secret(), &format!("/metadata/ownerReferences/0/{field}"), value);
    for (what, other) in [
        ("without the label", with(secret(), "/metadata/labels", json!({}))),
        ("with another label", with(secret(), "/metadata/labels", json!({LABEL: "false"}))),
        ("without an owner", with(secret(), "/metadata/ownerReferences", json!([]))),
        ("of another account", owner("name", "writer")),
        ("of another kind", owner("kind", "ConfigMap")),
        ("of another group", owner("apiVersion", "example.com/v1beta1")),
        ("of another type", with(secret(), "/type", "kubernetes.io/tls")),
    ] {
        let Judgement::Refused(refusal) = judged(&other, NOW) else { panic!("{what}") };
        assert!(refusal.to_string().starts_with("Secret c1/reader exists"), "{what}: {refusal}");
    }
    assert_eq!(judged(&owner("uid", "m-0"), NOW), Judgement::Predecessor);
}

#[test]
fn an_account_of_the_member_that_is_not_its_own_is_refused() {
    let foreign = MemberAccount { is_managed: false, ..on_member() };
    for secret in [None, Some(read_secret(&secret()))] {
        let judgement = account(&object()).judge(secret.as_ref(), Some(&foreign), NOW);
        let Judgement::Refused(refusal) = judgement else { panic!("{judgement:?}") };
        assert!(refusal.to_string().contains("on cluster c1 without the label"), "{refusal}");
    }
}

#[test]
fn a_token_that_would_be_due_at_once_is_not_taken() {
    let account = account(&object());
    let check = |claims: &Value| account.check_issued(token(claims).as_bytes(), &on_member(), ISSUED);
    let (read, due) = check(&claims()).unwrap();
    assert_eq!((read.ends, due), (ISSUED + LIFE, ISSUED + LIFE / 5 * 4));
    let of = |pointer: &str, value: Value| check(&with(claims(), pointer, value)).unwrap_err();
    assert_eq!(of("/sub", json!("system:serviceaccount:a:b")), Refusal::OtherAccount("c1".into()));
    assert_eq!(of("/kubernetes.io/serviceaccount/uid", json!("s-2")), Refusal::OtherAccount("c1".into()));
    assert_eq!(
        of("/exp", json!(ISSUED + SHORTEST - 1)),
        Refusal::TooShort { cluster: "c1".into(), life: SHORTEST - 1 }
    );
    // Issued by a clock that is behind, or so short that we would ask again and again.
    let old = with(with(claims(), "/iat", ISSUED - 10 * SHORTEST), "/exp", ISSUED + SHORTEST);
    assert_eq!(check(&old).err(), Some(Refusal::Stale("c1".into())));
    assert_eq!(of("/exp", Value::Null), Refusal::Unreadable("c1".into()));
    let validity = |text: &str| self::account(&with(object(), "/spec/rotation/validity", text)).validity();
    assert_eq!((validity("720h"), validity("soon")), (Ok(2_592_000), Err(Refusal::Validity)));
}

/// The content of the token.
fn good() -> ServiceAccountToken {
    ServiceAccountToken::read(token(&claims()).as_bytes()).unwrap()
}

#[test]
fn the_status_is_upstreams_field_by_field() {
    let status = account(&object()).reported(&good(), true, NOW).unwrap();
    let now = "2027-01-15T08:00:00Z";
    let conditions = ["SecretCreated", "TokenReported"]
        .map(|kind| json!({"lastTransitionTime": now, "message": "", "reason": kind, "status": "True", "type": kind}));
    let expected = json!({
        "conditions": conditions,
        "expirationTimestamp": "2027-01-15T10:30:00Z",
        "tokenSecretRef": {"lastRefreshTimestamp": "2027-01-15T07:43:20Z", "name": "reader"},
    });
    assert_eq!(status, expected);
    // With the status in place, nothing is written.
    let told = with(object(), "/status", status.clone());
    assert_eq!(account(&told).reported(&good(), false, NOW + 500), None);
    assert_eq!(account(&told).reported(&good(), true, NOW + 500), None);
    // Upstream's agent reports the time of its write by its own clock: a moment after the token was
    // issued.
    let theirs = with(told.clone(), "/status/tokenSecretRef/lastRefreshTimestamp", "2027-01-15T07:43:22Z");
    assert_eq!(account(&theirs).reported(&good(), false, NOW), None);
    assert!(account(&theirs).reported(&good(), true, NOW).is_some());
    for (pointer, value) in [
        ("/status/expirationTimestamp", json!("2027-01-16T10:30:00Z")),
        ("/status/tokenSecretRef/lastRefreshTimestamp", json!("2026-01-15T07:43:20Z")),
        ("/status/tokenSecretRef/name", json!("writer")),
        ("/status/tokenSecretRef", Value::Null),
    ] {
        let again = account(&with(told.clone(), pointer, value)).reported(&good(), false, NOW + 500);
        assert_eq!(again, Some(expected.clone()), "{pointer}");
    }
}

#[test]
fn a_failure_changes_its_condition_and_nothing_else() {
    let good = account(&object()).reported(&good(), true, NOW).unwrap();
    let told = with(object(), "/status", good.clone());
    let failed = account(&told).failed("cluster c1: serviceaccounts is forbidden", NOW + 5).unwrap();
    let expected = with(
        good.clone(),
        "/conditions/1",
        json!({"lastTransitionTime": "2027-01-15T08:00:05Z",
        "message": "cluster c1: serviceaccounts is forbidden", "reason": "TokenReportFailed", "status": "False",
        "type": "TokenReported"}),
    );
    assert_eq!(failed, expected);
    let told = with(object(), "/status", failed);
    assert_eq!(account(&told).failed("cluster c1: serviceaccounts is forbidden", NOW + 9), None, "the same again");
    // Another cause is another message, but no transition.
    let other = account(&told).failed(&"é".repeat(2000), NOW + 9).unwrap();
    let condition = &other["conditions"][1];
    assert_eq!(condition["lastTransitionTime"], "2027-01-15T08:00:05Z");
    assert_eq!(condition["message"].as_str().map(str::len), Some(1024));
    // And the recovery.
    let healed = account(&with(object(), "/status", other)).reported(&self::good(), false, NOW + 20).unwrap();
    assert_eq!(healed, with(good, "/conditions/1/lastTransitionTime", "2027-01-15T08:00:20Z"));
}

#[test]
fn conditions_of_others_stay() {
    let others = json!([{"type": "Mine", "status": "True"}, 7, {"type": "TokenReported", "status": "True",
        "lastTransitionTime": "2027-01-01T00:00:00Z", "observedGeneration": 3}]);
    let account = account(&with(object(), "/status", json!({"conditions": others, "mine": 1})));
    let status = account.reported(&good(), true, NOW).unwrap();
    let conditions = status["conditions"].as_array().unwrap();
    assert_eq!((conditions.len(), &conditions[0], &conditions[1]), (4, &others[0], &others[1]));
    assert_eq!(conditions[2]["lastTransitionTime"], "2027-01-01T00:00:00Z");
    assert_eq!((&conditions[2]["observedGeneration"], &status["mine"]), (&json!(3), &json!(1)));
    for status in [json!("text"), json!([1]), Value::Null, json!({"conditions": {}})] {
        assert!(self::account(&with(object(), "/status", status)).reported(&good(), false, NOW).is_some());
    }
}

#[test]
fn what_is_no_managed_service_account_is_refused() {
    for (pointer, value) in [
        ("/kind", json!("Secret")),
        ("/apiVersion", json!("authentication.open-cluster-management.io/v1alpha1")),
        ("/metadata/namespace", json!("")),
        ("/metadata/uid", Value::Null),
        ("/spec/rotation/validity", json!(7)),
        ("/spec/ttlSecondsAfterCreation", json!("7")),
        ("/metadata/finalizers", json!("all")),
    ] {
        assert!(Account::read(&with(object(), pointer, value)).is_err(), "{pointer}");
    }
    // No field of its spec is required, even though upstream's definition requires some.
    assert!(Account::read(&with(object(), "/spec", json!({}))).unwrap().validity().is_ok());
}
