//! Tests of the permissions that an impersonation needs, and of the resulting user.

use std::sync::Arc;

use super::*;
use crate::AuthenticationError;
use crate::testing::{ScriptedHub, auth, headers, strings, user};

/// The reviews, as `resource[/subresource].group namespace/name`, and the resulting user.
async fn impersonate(
    lines: &[(&'static str, &'static str)],
    allowed: impl Fn(&str) -> bool + Send + Sync + 'static,
) -> (Vec<String>, Result<User, AuthenticationError>) {
    let hub = ScriptedHub::new();
    hub.allow(move |spec| allowed(&describe(spec)));
    let auth = auth(&hub);
    let wanted = Impersonation::read(&headers(lines.iter().copied()));
    let outcome = wanted.apply(Arc::new(user("requestor", &["g"])), &auth.authorizer).await;
    let reviews = hub.access_attempts().iter().map(describe).collect();
    (reviews, outcome.map(Arc::unwrap_or_clone).map_err(AuthenticationError::from))
}

fn describe(spec: &k8s_openapi::api::authorization::v1::SubjectAccessReviewSpec) -> String {
    assert_eq!((spec.user.as_deref(), &spec.groups), (Some("requestor"), &Some(strings(&["g"]))));
    let it = spec.resource_attributes.clone().expect("impersonation is of resources");
    assert_eq!(it.verb.as_deref(), Some("impersonate"));
    let part = |prefix: &str, text: Option<String>| text.map_or(String::new(), |text| format!("{prefix}{text}"));
    format!(
        "{}{}{} {}{}",
        it.resource.unwrap_or_default(),
        part("/", it.subresource),
        part(".", it.group),
        part("", it.namespace.map(|namespace| namespace + "/")),
        it.name.unwrap_or_default()
    )
}

#[tokio::test]
async fn each_thing_impersonated_is_reviewed_by_itself() {
    let lines = [
        ("Impersonate-User", "jörg"),
        ("Impersonate-Group", "developers"),
        ("Impersonate-Group", "admins"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-Example.com%2fTeam", "blue"),
        ("Impersonate-Extra-Example.com%2fTeam", "green"),
    ];
    let (mut reviews, outcome) = impersonate(&lines, |_| true).await;
    let user = outcome.expect("all allowed");
    assert_eq!(user.name, "jörg");
    assert_eq!(user.uid.as_deref(), Some("7"));
    assert_eq!(user.groups, ["developers", "admins", "system:authenticated"]);
    assert_eq!(user.extra, BTreeMap::from([("example.com/team".to_owned(), strings(&["blue", "green"]))]));
    reviews.sort();
    let mut expected = [
        "users jörg",
        "groups developers",
        "groups admins",
        "uids.authentication.k8s.io 7",
        "userextras/example.com/team.authentication.k8s.io blue",
        "userextras/example.com/team.authentication.k8s.io green",
    ];
    expected.sort_unstable();
    assert_eq!(reviews, expected);

    for denied in expected {
        let (_, outcome) = impersonate(&lines, move |review| review != denied).await;
        assert!(matches!(outcome, Err(AuthenticationError::Forbidden { .. })), "{denied}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_service_account_brings_its_groups_unless_groups_are_named() {
    let name = ("Impersonate-User", "system:serviceaccount:ci:bot");
    let (reviews, outcome) = impersonate(&[name], |_| true).await;
    assert_eq!(reviews, ["serviceaccounts ci/bot"]);
    let groups = ["system:serviceaccounts", "system:serviceaccounts:ci", "system:authenticated"];
    assert_eq!(outcome.expect("allowed"), user(name.1, &groups));

    let (_, outcome) = impersonate(&[name, ("Impersonate-Group", "g")], |_| true).await;
    assert_eq!(outcome.expect("allowed").groups, ["g", "system:authenticated"]);
}

#[tokio::test]
async fn the_system_group_follows_the_hubs_rule() {
    for (name, named, groups) in [
        ("u", None, &["system:authenticated"][..]),
        ("u", Some("system:authenticated"), &["system:authenticated"]),
        ("u", Some("system:unauthenticated"), &["system:unauthenticated"]),
        ("system:anonymous", None, &["system:unauthenticated"]),
        ("system:anonymous", Some("g"), &["g", "system:unauthenticated"]),
    ] {
        let mut lines = vec![("Impersonate-User", name)];
        lines.extend(named.map(|group| ("Impersonate-Group", group)));
        let (_, outcome) = impersonate(&lines, |_| true).await;
        assert_eq!(outcome.expect("allowed").groups, groups, "{lines:?}");
    }
}

#[tokio::test]
async fn headers_that_make_no_sense_are_bad_requests_and_cost_no_review() {
    for lines in [
        &[("Impersonate-Group", "g")][..],
        &[("Impersonate-Uid", "1")],
        &[("Impersonate-Extra-A", "b")],
        &[("Impersonate-User", "")],
        &[("Impersonate-User", "u"), ("Impersonate-Groups", "g")],
    ] {
        let (reviews, outcome) = impersonate(lines, |_| true).await;
        assert!(matches!(outcome, Err(AuthenticationError::BadRequest(_))), "{lines:?}: {outcome:?}");
        assert!(reviews.is_empty(), "{lines:?}");
    }
    let many: Vec<_> = std::iter::once(("Impersonate-User", "u"))
        .chain(std::iter::repeat_n(("Impersonate-Group", "g"), MAX_VALUES + 1))
        .collect();
    let (_, outcome) = impersonate(&many, |_| true).await;
    assert!(matches!(outcome, Err(AuthenticationError::BadRequest(_))), "{outcome:?}");
}

#[tokio::test]
async fn masters_impersonate_without_a_review() {
    let hub = ScriptedHub::new();
    let auth = auth(&hub);
    let wanted = Impersonation::read(&headers([("Impersonate-User", "u")]));
    let outcome = wanted.apply(Arc::new(user("admin", &["system:masters"])), &auth.authorizer).await;
    assert_eq!(*outcome.expect("allowed"), user("u", &["system:authenticated"]));
    assert!(hub.access_attempts().is_empty());
}
