//! Direct callers that want to act as another user: allowed by review only, and never by the
//! member.

use system_tests::prelude::*;

use super::{Fixture, target};

/// The identity to impersonate.
const HEADERS: &[(&str, &str)] =
    &[("Impersonate-User", "bob"), ("Impersonate-Group", "testers"), ("Impersonate-Extra-Scopes", "read")];

fn is_impersonation(spec: &Value) -> bool {
    spec["resourceAttributes"]["verb"] == "impersonate"
}

across_http!(who_may_impersonate_acts_as_the_other);

async fn who_may_impersonate_acts_as_the_other(http: Http) {
    let fixture = Fixture::set().await;
    fixture.hub.add_token("alices-token", TokenUser::new("alice", &[]));
    fixture.hub.on_access(|spec| match (spec["user"].as_str(), is_impersonation(spec)) {
        (Some("alice"), true) | (Some("bob"), false) => Decision::allow(),
        _ => Decision::deny("not this one"),
    });
    let mut connection = fixture.connect(http, None).await.bearer("alices-token");
    assert_eq!(connection.call("GET", &target(), HEADERS, b"").await.status, 200);

    let reviews = fixture.hub.access_reviews();
    let asked: Vec<_> = reviews
        .iter()
        .filter(|spec| is_impersonation(spec))
        .map(|spec| {
            let attributes = &spec["resourceAttributes"];
            assert_eq!(spec["user"], "alice");
            (attributes["resource"].as_str().unwrap(), attributes["name"].as_str().unwrap())
        })
        .collect();
    assert_eq!(asked, [("users", "bob"), ("groups", "testers"), ("userextras", "read")]);
    let last = reviews.last().unwrap();
    assert_eq!((&last["user"], &last["extra"]), (&json!("bob"), &json!({"scopes": ["read"]})));
    assert_eq!(last["groups"], json!(["testers", "system:authenticated"]));

    let request = fixture.member.next_request().await;
    let crossed = request.headers.keys().find(|name| name.as_str().starts_with("impersonate"));
    assert_eq!(crossed, None, "the member knows the gateway alone");
}

across_http!(who_may_not_impersonate_reaches_nobody);

async fn who_may_not_impersonate_reaches_nobody(http: Http) {
    let fixture = Fixture::set().await;
    fixture.hub.add_token("alices-token", TokenUser::new("alice", &[]));
    fixture.hub.on_access(|spec| if is_impersonation(spec) { Decision::no_opinion("") } else { Decision::allow() });
    let mut connection = fixture.connect(http, None).await.bearer("alices-token");
    let message = connection.call("GET", &target(), HEADERS, b"").await.status_message(403, "Forbidden");
    assert!(message.contains("User \"alice\" cannot impersonate"), "{message}");
    // Nor by a header that names no user, nor by one hidden among hop-by-hop headers. A known user
    // keeps the connection.
    let headers = [("Impersonate-Group", "system:masters")];
    connection.call("GET", &target(), &headers, b"").await.status_message(400, "BadRequest");
    if http == Http::H1 {
        let headers = [("Impersonate-User", "bob"), ("Connection", "Impersonate-User")];
        connection.call("GET", &target(), &headers, b"").await.status_message(403, "Forbidden");
    }
    assert_eq!(fixture.member.request_count(), 0);
}

#[tokio::test]
async fn a_review_that_cannot_be_had_lets_nobody_pass() {
    let fixture = Fixture::set().await;
    fixture.hub.allow_all();
    fixture.hub.add_token("alices-token", TokenUser::new("alice", &[]));
    fixture.hub.fail(Call::AccessReview, Fault::Status(500));
    let mut connection = fixture.connect(Http::H2, None).await.bearer("alices-token");
    connection.get(&target()).await.status_message(500, "InternalError");
    fixture.hub.heal(Call::AccessReview);
    fixture.hub.fail(Call::TokenReview, Fault::Garbage);
    let mut connection = fixture.connect(Http::H2, None).await.bearer("bobs-token");
    connection.get(&target()).await.status_message(500, "InternalError");
    assert_eq!(fixture.member.request_count(), 0);

    fixture.hub.heal(Call::TokenReview);
    let mut connection = fixture.connect(Http::H2, None).await.bearer("alices-token");
    assert_eq!(connection.get(&target()).await.status, 200, "a failed review is not remembered");
}
