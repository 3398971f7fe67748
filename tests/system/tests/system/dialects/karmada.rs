//! Under Karmada's paths a member sees the caller and decides itself, and gets no group that its
//! credential may not claim.

use kit::member::Recorded;
use system_tests::prelude::*;

use super::{ALICE, hub};

const REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
const PODS: &str = "/api/v1/pods";

across_http!(
    the_member_sees_the_caller_and_nobody_elses_word,
    groups_that_the_credential_may_not_impersonate_are_left_out,
    what_is_known_is_not_asked_again,
);

/// A hub that knows alice, a member registered there that answers the question about its credential
/// with `rules`, and a gateway with `arguments`.
struct Fleet {
    hub: FakeHub,
    member: FakeMember,
    testbed: Testbed,
}

// === impl Fleet ===

impl Fleet {
    async fn with(http: Http, rules: Value, arguments: &[&str]) -> Self {
        let (hub, member) = (hub().await, http.member().await);
        let groups = ["devs", "ops", "system:authenticated"];
        let extra = [("scopes".to_owned(), vec!["a".to_owned(), "b".to_owned()])].into();
        hub.add_token(ALICE, TokenUser { uid: "7".to_owned(), extra, ..TokenUser::new("alice", &groups) });
        member.on_any(|_| Reply::json(200, &json!({"kind": "PodList"})));
        member.on(REVIEW, move |_| Reply::json(201, &rules));
        hub.put_secret(cluster(CLUSTER, &member));
        let builder = Testbed::builder().hub(&hub).arg("--karmada-dialect=standalone");
        let testbed = arguments.iter().fold(builder, |builder, argument| builder.arg(argument)).start().await;
        Self { hub, member, testbed }
    }

    async fn connect(&self, http: Http) -> Connection {
        self.testbed.anonymous(http).await.bearer(ALICE)
    }

    /// The requests that callers sent, without the questions about the credential.
    fn asked(&self) -> Vec<Recorded> {
        self.member.requests().into_iter().filter(|request| request.path() != REVIEW).collect()
    }

    fn reviews(&self) -> usize {
        self.member.requests().len() - self.asked().len()
    }
}

/// Rules of a credential that may impersonate all users, and `named` groups.
fn rules(named: &[&str], is_incomplete: bool) -> Value {
    let rule = |resource: &str, names: Value| json!({"verbs": ["impersonate"], "apiGroups": [""], "resources": [resource], "resourceNames": names});
    let rules = json!([rule("users", Value::Null), rule("groups", json!(named))]);
    json!({"kind": "SelfSubjectRulesReview", "status": {"resourceRules": rules, "incomplete": is_incomplete}})
}

fn everything() -> Value {
    let rule = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    json!({"kind": "SelfSubjectRulesReview", "status": {"resourceRules": [rule], "incomplete": false}})
}

/// The identity as which a member was asked to act.
fn acted_as(request: &Recorded) -> Vec<String> {
    let identity = request.headers.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-"));
    identity.map(|(name, value)| format!("{name}: {}", value.to_str().expect("text"))).collect()
}

fn karmada(rest: &str) -> String {
    Dialect::Karmada.path(rest)
}

const ALICE_IN_FULL: [&str; 6] = [
    "impersonate-user: alice",
    "impersonate-group: devs",
    "impersonate-group: ops",
    "impersonate-uid: 7",
    "impersonate-extra-scopes: a",
    "impersonate-extra-scopes: b",
];

const NARROW: [&str; 4] = [
    "impersonate-user: alice",
    "impersonate-group: devs",
    "impersonate-extra-scopes: a",
    "impersonate-extra-scopes: b",
];

async fn the_member_sees_the_caller_and_nobody_elses_word(http: Http) {
    let fleet = Fleet::with(http, everything(), &[]).await;
    let mut connection = fleet.connect(http).await;
    for query in ["", "?impersonate=true", "?impersonate=false"] {
        let forged = [("x-remote-user", "admin"), ("x-remote-group", "system:masters")];
        let answer = connection.call("GET", &karmada(&format!("{PODS}{query}")), &forged, b"").await;
        assert_eq!(answer.status, 200);
    }
    let asked = fleet.asked();
    assert_eq!(asked.len(), 3);
    for request in asked {
        assert_eq!(acted_as(&request), ALICE_IN_FULL, "{}", request.target);
        assert_eq!(request.headers["authorization"], format!("Bearer {MEMBER_TOKEN}"));
    }
    // On the native path it is the registered credential.
    assert_eq!(connection.get(&proxied(CLUSTER, PODS)).await.status, 200);
    assert_eq!(acted_as(&fleet.asked()[3]), [""; 0]);
}

async fn groups_that_the_credential_may_not_impersonate_are_left_out(http: Http) {
    let fleet = Fleet::with(http, rules(&["devs", "others"], false), &[]).await;
    assert_eq!(fleet.connect(http).await.get(&karmada(PODS)).await.status, 200);
    let [request] = &fleet.asked()[..] else { panic!("one request") };
    // Extra attributes may be there to restrict.
    assert_eq!(acted_as(request), NARROW);
    let question = &fleet.member.requests()[0];
    assert_eq!((question.method.as_str(), &*question.target), ("POST", REVIEW));
    assert_eq!(question.headers["authorization"], format!("Bearer {MEMBER_TOKEN}"));
    assert_eq!(acted_as(question), [""; 0], "it is of the credential itself");
}

async fn what_is_known_is_not_asked_again(http: Http) {
    let fleet = Fleet::with(http, rules(&["devs"], false), &[]).await;
    let mut connection = fleet.connect(http).await;
    for _ in 0..20 {
        assert_eq!(connection.get(&karmada(PODS)).await.status, 200);
    }
    assert_eq!((fleet.reviews(), fleet.asked().len()), (1, 20));
    // Another generation of the Secret is another credential.
    fleet.hub.put_secret(cluster(CLUSTER, &fleet.member).token("another-token"));
    becomes(WAIT, "the next credential", async || {
        assert_eq!(connection.get(&karmada(PODS)).await.status, 200);
        fleet.asked().last().is_some_and(|last| last.headers["authorization"] == "Bearer another-token")
    })
    .await;
    assert_eq!(fleet.reviews(), 2);
}

#[tokio::test]
async fn the_strict_way_asks_nothing_and_leaves_nothing_out() {
    let fleet = Fleet::with(Http::H2, rules(&[], false), &["--karmada-forward-all-groups"]).await;
    assert_eq!(fleet.connect(Http::H2).await.get(&karmada(PODS)).await.status, 200);
    assert_eq!((fleet.reviews(), acted_as(&fleet.asked()[0])), (0, ALICE_IN_FULL.map(str::to_owned).to_vec()));
}

#[tokio::test]
async fn the_flags_about_uids_and_extra_attributes_hold() {
    let flags = ["--impersonate-uid=false", "--impersonate-extra-filter=scop*"];
    let fleet = Fleet::with(Http::H2, everything(), &flags).await;
    assert_eq!(fleet.connect(Http::H2).await.get(&karmada(PODS)).await.status, 200);
    assert_eq!(acted_as(&fleet.asked()[0]), ALICE_IN_FULL[..3]);
}

/// Where it is not known which groups the member refuses, it is the member's to refuse them.
#[tokio::test]
async fn what_cannot_be_learnt_leaves_nothing_out() {
    for answer in [json!({"kind": "Status", "status": "Failure"}), json!([]), rules(&["devs"], true)] {
        let fleet = Fleet::with(Http::H2, answer.clone(), &[]).await;
        assert_eq!(fleet.connect(Http::H2).await.get(&karmada(PODS)).await.status, 200);
        assert_eq!(acted_as(&fleet.asked()[0]), ALICE_IN_FULL, "{answer}");
    }
}

/// The question has the cluster's credential.
#[tokio::test]
async fn a_redirected_question_is_not_asked_elsewhere() {
    let (fleet, elsewhere) = (Fleet::with(Http::H2, everything(), &[]).await, Http::H2.member().await);
    let location = elsewhere.url() + REVIEW;
    fleet.member.on(REVIEW, move |_| Reply::full(307, &[("location", &location)], ""));
    assert_eq!(fleet.connect(Http::H2).await.get(&karmada(PODS)).await.status, 200);
    assert_eq!(acted_as(&fleet.asked()[0]), ALICE_IN_FULL);
    assert_eq!((fleet.reviews(), elsewhere.connections_accepted()), (1, 0));
}

const REFUSAL: &str =
    "groups \"ops\" is forbidden: User \"gw\" cannot impersonate resource \"groups\" at the cluster scope";

/// A member with an authorizer that lists nothing, as webhooks do, and has no opinion: it refuses
/// what the incomplete list lacks.
async fn with_a_webhook() -> Fleet {
    let fleet = Fleet::with(Http::H2, rules(&["devs"], true), &[]).await;
    fleet.member.on(PODS, |request| {
        let claims = request.headers.get_all("impersonate-group").iter().any(|group| group == "ops");
        if claims { Reply::status(403, REFUSAL) } else { Reply::json(200, &json!({"kind": "PodList"})) }
    });
    fleet
}

#[tokio::test]
async fn a_refusal_shows_that_a_list_which_is_not_complete_is_right() {
    let fleet = with_a_webhook().await;
    let mut connection = fleet.connect(Http::H2).await;
    for _ in 0..2 {
        assert_eq!(connection.get(&karmada(PODS)).await.status, 200);
    }
    let seen: Vec<_> = fleet.asked().iter().map(acted_as).collect();
    assert_eq!(seen, [&ALICE_IN_FULL[..], &NARROW, &NARROW], "the refused one was sent again, once");
    assert_eq!(fleet.reviews(), 1);
}

/// Its body is gone with the first attempt.
#[tokio::test]
async fn a_refused_body_is_not_sent_again() {
    let fleet = with_a_webhook().await;
    let mut connection = fleet.connect(Http::H2).await;
    let answer = connection.call("POST", &karmada(PODS), &[], b"{}").await;
    assert_eq!((answer.status, answer.json()["message"].as_str()), (403, Some(REFUSAL)), "the member's own words");
    assert_eq!(connection.call("POST", &karmada(PODS), &[], b"{}").await.status, 200);
    let seen: Vec<_> = fleet.asked().iter().map(acted_as).collect();
    assert_eq!(seen, [&ALICE_IN_FULL[..], &NARROW]);
}

/// The narrower identity is the last attempt, and only a part that may be omitted makes one.
#[tokio::test]
async fn a_refusal_that_does_not_end_reaches_the_caller() {
    for (resource, attempts) in [("groups", 2), ("users", 1), ("userextras/scopes", 1)] {
        let fleet = Fleet::with(Http::H2, rules(&["devs"], true), &[]).await;
        let refusal = format!("{resource} \"x\" is forbidden: User \"gw\" cannot impersonate resource \"{resource}\"");
        fleet.member.on(PODS, move |_| Reply::status(403, &refusal));
        assert_eq!(fleet.connect(Http::H2).await.get(&karmada(PODS)).await.status, 403);
        assert_eq!(fleet.asked().len(), attempts, "{resource}");
    }
}

/// A name that says the same is only a name.
#[tokio::test]
async fn a_refusal_of_something_else_changes_nothing() {
    let fleet = Fleet::with(Http::H2, rules(&["devs"], true), &[]).await;
    let name = r#"x\" is forbidden: User \"gw\" cannot impersonate resource \"groups\" "#;
    let refusal = format!("pods \"{name}\" is forbidden: User \"alice\" cannot get resource \"pods\"");
    fleet.member.on(PODS, move |_| Reply::status(403, &refusal));
    let mut connection = fleet.connect(Http::H2).await;
    for number in 0..2 {
        assert_eq!(connection.get(&karmada(PODS)).await.status, 403);
        assert_eq!(acted_as(&fleet.asked()[number]), ALICE_IN_FULL);
    }
}

#[tokio::test]
async fn strangers_and_those_who_may_not_ask_no_member() {
    let fleet = Fleet::with(Http::H2, everything(), &[]).await;
    fleet.hub.on_access(|_| Decision::no_opinion(""));
    for token in [ALICE, "no-such-token"] {
        let mut connection = fleet.testbed.anonymous(Http::H2).await.bearer(token);
        assert!(matches!(connection.get(&karmada(PODS)).await.status, 401 | 403));
    }
    assert_eq!(fleet.member.connections_accepted(), 0);
}

/// The hub finds the API where an APIService says it is, by these.
#[tokio::test]
async fn the_group_tells_that_it_is_there() {
    let fleet = Fleet::with(Http::H2, everything(), &[]).await;
    let mut connection = fleet.testbed.aggregator_as_admin(&fleet.hub, Http::H2).await;
    let version = connection.get("/apis/cluster.karmada.io/v1alpha1").await.json();
    let expected = (&json!("APIResourceList"), &json!("cluster.karmada.io/v1alpha1"));
    assert_eq!((&version["kind"], &version["groupVersion"]), expected);
    let resources = version["resources"].as_array().expect("resources");
    let names: Vec<_> = resources.iter().filter_map(|resource| resource["name"].as_str()).collect();
    assert_eq!(names, ["clusters", "clusters/proxy", "clusters/status"]);
    assert_eq!(connection.get("/apis/cluster.karmada.io").await.json()["kind"], "APIGroup");
    connection.get("/apis/cluster.karmada.io/v1alpha1/workloads").await.status_message(404, "NotFound");
}
