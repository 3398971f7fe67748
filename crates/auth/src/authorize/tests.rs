//! Tests of permissions, of reviews sent to the hub, and of their cache.

mod strangers;

use std::borrow::Cow;
use std::time::Duration;

use api::access::{ResourceAttributes, Verb};
use k8s_openapi::api::authorization::v1::SubjectAccessReviewStatus;
use serde_json::{Value, json};
use tokio::time::advance;

use super::*;
use crate::testing::{ScriptedHub, auth, auth_with, denied, strings, user};
use crate::{AuthorizationConfig, Config, Retry, ReviewError};

fn proxy(verb: Verb, name: &str) -> ResourceAttributes {
    ResourceAttributes {
        verb,
        group: Cow::Borrowed(api::GROUP),
        version: Cow::Borrowed(api::VERSION),
        resource: "clustergateways".into(),
        subresource: "proxy".into(),
        namespace: None,
        name: Some(name.into()),
        field_selector: None,
        label_selector: None,
    }
}

fn get(name: &str) -> Attributes {
    Attributes::Resource(proxy(Verb::Get, name))
}

fn path(path: &str) -> Attributes {
    Attributes::NonResource { path: path.into(), verb: "get".into() }
}

fn alice() -> Arc<User> {
    Arc::new(user("alice", &["g"]))
}

async fn asked(user: User, attributes: Attributes) -> Value {
    let hub = ScriptedHub::new();
    hub.allow(|_| true);
    let permission =
        auth(&hub).authorizer.authorize(Arc::new(user.clone()), attributes.clone()).await.expect("allowed");
    assert_eq!((&**permission.user(), permission.attributes()), (&user, &attributes));
    serde_json::to_value(&hub.access_attempts()[0]).expect("serializable")
}

#[tokio::test]
async fn the_review_says_who_wants_what() {
    let bot = User {
        uid: Some("9c".to_owned()),
        extra: [("authentication.kubernetes.io/credential-id".to_owned(), strings(&["JTI=1"]))].into(),
        ..user("system:serviceaccount:ci:bot", &["system:serviceaccounts", "system:authenticated"])
    };
    assert_eq!(
        asked(bot, Attributes::Resource(proxy(Verb::Create, "c1"))).await,
        json!({
            "user": "system:serviceaccount:ci:bot", "uid": "9c", "groups": ["system:serviceaccounts", "system:authenticated"],
            "extra": { "authentication.kubernetes.io/credential-id": ["JTI=1"] },
            "resourceAttributes": { "verb": "create", "group": "cluster.core.oam.dev", "version": "v1alpha1",
                "resource": "clustergateways", "subresource": "proxy", "name": "c1" },
        })
    );
    assert_eq!(
        asked(user("u", &[]), path("/apis")).await,
        json!({ "user": "u", "nonResourceAttributes": { "path": "/apis", "verb": "get" } })
    );
}

#[tokio::test]
async fn selectors_go_with_lists_only() {
    let selected = |verb| ResourceAttributes {
        subresource: "".into(),
        name: None,
        field_selector: Some("metadata.name=x".into()),
        label_selector: Some("a in (b)".into()),
        ..proxy(verb, "")
    };
    let spec = asked(user("u", &[]), Attributes::Resource(selected(Verb::List))).await;
    assert_eq!(spec["resourceAttributes"]["fieldSelector"], json!({ "rawSelector": "metadata.name=x" }));
    assert_eq!(spec["resourceAttributes"]["labelSelector"], json!({ "rawSelector": "a in (b)" }));
    let spec = asked(user("u", &[]), Attributes::Resource(selected(Verb::Get))).await;
    assert_eq!(spec["resourceAttributes"].get("fieldSelector"), None);
}

#[tokio::test]
async fn only_a_plain_allowed_allows() {
    let allowed = SubjectAccessReviewStatus { allowed: true, ..SubjectAccessReviewStatus::default() };
    let evaluation_error = Some("role not found".to_owned());
    for (status, ok) in [
        (allowed.clone(), true),
        (SubjectAccessReviewStatus { denied: Some(false), ..allowed.clone() }, true),
        (SubjectAccessReviewStatus { evaluation_error: evaluation_error.clone(), ..allowed.clone() }, true),
        (SubjectAccessReviewStatus { denied: Some(true), ..allowed }, false),
        (SubjectAccessReviewStatus { evaluation_error, ..denied() }, false),
        (denied(), false),
    ] {
        let hub = ScriptedHub::new();
        let answer = status.clone();
        hub.judge(move |_| answer.clone());
        let outcome = auth(&hub).authorizer.authorize(alice(), get("c1")).await;
        match outcome {
            Ok(_) => assert!(ok, "{status:?}"),
            Err(AuthorizationError::Forbidden { user, attributes, reason }) => {
                assert!(!ok, "{status:?}");
                assert_eq!(
                    (user, attributes, Some(reason).filter(|r| !r.is_empty())),
                    (alice(), get("c1"), status.reason)
                );
            }
            Err(other) => panic!("{status:?}: {other}"),
        }
    }
}

#[tokio::test]
async fn a_hub_that_cannot_be_asked_allows_nothing() {
    let hub = ScriptedHub::new();
    hub.allow(|_| true);
    hub.fail_next([ReviewError::Hub { message: Arc::from("no answer from the hub"), retry: Retry::Never }]);
    let authorizer = auth(&hub).authorizer;
    let outcome = authorizer.authorize(alice(), get("c1")).await;
    assert!(
        matches!(&outcome, Err(AuthorizationError::Review(error)) if error.to_string().contains("no answer")),
        "{outcome:?}"
    );
    authorizer.authorize(alice(), get("c1")).await.expect("the failure is not kept");
}

#[tokio::test(start_paused = true)]
async fn decisions_are_kept_for_their_own_times() {
    let hub = ScriptedHub::new();
    hub.allow(|spec| spec.user.as_deref() == Some("alice"));
    let ttl = AuthorizationConfig {
        authorized_ttl: Duration::from_secs(10),
        unauthorized_ttl: Duration::from_secs(2),
        ..AuthorizationConfig::default()
    };
    let authorizer = auth_with(&hub, &Config { authorization: ttl, ..Config::default() }).authorizer;
    let ask = async |name: &str| authorizer.authorize(Arc::new(user(name, &[])), get("c1")).await.is_ok();
    for (wait, reviews) in [(0, 2), (1, 2), (1, 3), (7, 4), (1, 5)] {
        advance(Duration::from_secs(wait)).await;
        assert!(ask("alice").await);
        assert!(!ask("bob").await);
        assert_eq!(hub.access_attempts().len(), reviews);
    }
}

#[tokio::test]
async fn no_two_subjects_share_a_decision() {
    let hub = ScriptedHub::new();
    hub.allow(|_| true);
    let authorizer = auth(&hub).authorizer;
    let extra = |key: &str, values: &[&str]| User {
        extra: [(key.to_owned(), strings(values))].into(),
        ..user("alice", &["g"])
    };
    let resource = proxy(Verb::Get, "c1");
    let subjects = [
        (user("alice", &["g"]), get("c1")),
        (user("alice", &["g", ""]), get("c1")),
        (user("alice", &[]), get("c1")),
        (user("aliceg", &[]), get("c1")),
        (User { uid: Some("g".to_owned()), ..user("alice", &[]) }, get("c1")),
        (extra("a", &["b"]), get("c1")),
        (extra("a", &["b", "c"]), get("c1")),
        (extra("ab", &[]), get("c1")),
        (user("alice", &["g"]), get("c2")),
        (user("alice", &["g"]), Attributes::Resource(proxy(Verb::Create, "c1"))),
        (
            user("alice", &["g"]),
            Attributes::Resource(ResourceAttributes { subresource: "".into(), ..resource.clone() }),
        ),
        (user("alice", &["g"]), Attributes::Resource(ResourceAttributes { namespace: Some("n".into()), ..resource })),
        (user("alice", &["g"]), path("c1")),
    ];
    for _ in 0..2 {
        for (user, attributes) in &subjects {
            authorizer.authorize(Arc::new(user.clone()), attributes.clone()).await.expect("allowed");
        }
    }
    assert_eq!(hub.access_attempts().len(), subjects.len());
}

#[tokio::test(start_paused = true)]
async fn whoever_uses_ten_thousand_clusters_in_turn_is_reviewed_once_for_each() {
    let hub = ScriptedHub::new();
    hub.allow(|_| true);
    let authorizer = auth(&hub).authorizer;
    let groups: Vec<_> = (0..20).map(|number| format!("engineering:team-{number}")).collect();
    let user = Arc::new(User { groups, ..user("alice", &[]) });
    for _ in 0..2 {
        for number in 0..10_000 {
            authorizer.authorize(Arc::clone(&user), get(&format!("cluster-{number}"))).await.expect("allowed");
        }
    }
    assert_eq!(hub.access_attempts().len(), 10_000);
}

#[tokio::test]
async fn long_requests_are_not_kept() {
    let hub = ScriptedHub::new();
    hub.allow(|_| true);
    let authorizer = auth(&hub).authorizer;
    let long = format!("/{}", "a".repeat(10_000));
    for _ in 0..2 {
        authorizer.authorize(alice(), path(&long)).await.expect("allowed");
    }
    assert_eq!(hub.access_attempts().len(), 2);
}

#[tokio::test]
async fn decisions_about_users_with_too_many_groups_are_not_kept() {
    let hub = ScriptedHub::new();
    hub.allow(|_| true);
    let authorizer = auth(&hub).authorizer;
    for (groups, reviews) in [(900, 1), (9000, 3)] {
        let user = Arc::new(user("alice", &vec!["g"; groups]));
        for _ in 0..2 {
            authorizer.authorize(Arc::clone(&user), get("c1")).await.expect("allowed");
        }
        assert_eq!(hub.access_attempts().len(), reviews);
    }
}

#[tokio::test]
async fn masters_and_probe_paths_need_no_hub() {
    let hub = ScriptedHub::new();
    let authorizer = auth(&hub).authorizer;
    authorizer.authorize(Arc::new(user("m", &["system:masters"])), get("c1")).await.expect("masters may");
    authorizer.authorize(Arc::new(User::anonymous()), path("/readyz")).await.expect("probes may");
    assert!(hub.access_attempts().is_empty());
    authorizer.authorize(Arc::new(User::anonymous()), path("/readyz/etcd")).await.expect_err("not below");

    let strict = AuthorizationConfig { allow_masters: false, ..AuthorizationConfig::default() };
    let authorizer = auth_with(&hub, &Config { authorization: strict, ..Config::default() }).authorizer;
    let outcome = authorizer.authorize(Arc::new(user("m", &["system:masters"])), get("c1")).await;
    assert!(matches!(outcome, Err(AuthorizationError::Forbidden { .. })), "{outcome:?}");
}

#[tokio::test]
async fn what_a_request_is_on_a_member_is_reviewed_even_where_it_is_open_here() {
    let hub = ScriptedHub::new();
    hub.allow(|spec| spec.non_resource_attributes.is_none());
    let authorizer = auth(&hub).authorizer;
    assert!(authorizer.authorize(alice(), path("/healthz")).await.is_ok(), "open to everybody");
    assert!(authorizer.authorize_proxied(alice(), "c1", path("/healthz")).await.is_err());
    assert!(authorizer.authorize_proxied(alice(), "c1", get("x")).await.is_ok());
    let masters = Arc::new(user("root", &["system:masters"]));
    assert!(authorizer.authorize_proxied(masters, "c1", path("/healthz")).await.is_ok());
    assert_eq!(hub.access_attempts().len(), 2);
}

#[tokio::test]
async fn debugging_asks_nobody() {
    let hub = ScriptedHub::new();
    hub.allow(|_| false);
    let authorization = AuthorizationConfig { allow_everything: true, ..AuthorizationConfig::default() };
    let auth = auth_with(&hub, &Config { authorization, ..Config::default() });
    let anonymous = Arc::new(User::anonymous());
    assert!(auth.authorizer.authorize(Arc::clone(&anonymous), get("c1")).await.is_ok());
    assert!(auth.authorizer.authorize_proxied(anonymous, "c1", path("/metrics")).await.is_ok());
    assert!(hub.access_attempts().is_empty());
}
