//! All members at once, in Karmada's spelling: their objects are one answer, and a caller that may
//! not reach one of them does not learn of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use system_tests::prelude::*;
use tokio::sync::Notify;

use super::ALICE;

const PREFIX: &str = "/apis/cluster.karmada.io/v1alpha1/clusters/*/proxy";
const PODS: &str = "/api/v1/namespaces/ns/pods";
const MARK: &str = "resource.karmada.io/cached-from-cluster";
/// A cluster that alice may not know of.
const HIDDEN: &str = "rome";

/// The members of these names, and a gateway before them.
struct Fleet {
    hub: FakeHub,
    members: Vec<FakeMember>,
    testbed: Testbed,
}

// === impl Fleet ===

impl Fleet {
    async fn set(names: &[&str]) -> Self {
        Self::flagged(names, &[]).await
    }

    async fn flagged(names: &[&str], more: &[&str]) -> Self {
        let hub = FakeHub::start().await;
        hub.add_token(ALICE, TokenUser::new("alice", &["devs"]));
        hub.on_access(|spec| {
            let is_hidden = spec["resourceAttributes"]["name"] == HIDDEN;
            if is_hidden { Decision::deny("not there") } else { Decision::allow() }
        });
        let mut members = Vec::new();
        for name in names {
            let member = Http::H2.member().await;
            hub.put_secret(cluster(name, &member));
            members.push(member);
        }
        let flags = ["--karmada-dialect=standalone", "--karmada-forward-all-groups"];
        let testbed = flags
            .iter()
            .chain(more)
            .fold(Testbed::builder().hub(&hub), |builder, flag| builder.arg(flag))
            .start()
            .await;
        Self { hub, members, testbed }
    }

    /// Every member has a pod of its own name, and one that all have.
    async fn with_pods(names: &[&str]) -> Self {
        let fleet = Self::set(names).await;
        for (member, name) in fleet.members.iter().zip(names) {
            let items = json!([{"metadata": {"name": format!("of-{name}")}}, {"metadata": {"name": "shared"}}]);
            let list =
                json!({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}, "items": items});
            let one = json!({"kind": "Pod", "metadata": {"name": format!("of-{name}")}, "on": name});
            member.on_any(|_| Reply::not_found());
            member.on(PODS, move |_| Reply::json(200, &list));
            member.on(&format!("{PODS}/of-{name}"), move |_| Reply::json(200, &one));
            member.on(&format!("{PODS}/shared"), |_| Reply::json(200, &json!({"kind": "Pod"})));
        }
        fleet
    }

    async fn call(&self, method: &str, rest: &str, headers: &[(&str, &str)]) -> Answer {
        let mut connection = self.testbed.anonymous(Http::H2).await.bearer(ALICE);
        connection.call(method, &format!("{PREFIX}{rest}"), headers, b"").await
    }

    async fn get(&self, rest: &str) -> Answer {
        self.call("GET", rest, &[]).await
    }

    /// `answer`, the only failure, names `hop`, and counts there.
    async fn failed_at(&self, answer: &Answer, hop: &str) {
        assert_eq!(answer.json()["details"]["causes"][0]["reason"], hop, "{}", answer.text());
        self.counted(&hop.to_lowercase(), 1).await;
    }

    async fn counted(&self, side: &str, failures: u32) {
        let counted = format!("cluster_gateway_failures_total{{side=\"{side}\"}} {failures}");
        let mut admin = self.testbed.aggregator_as_admin(&self.hub, Http::H2).await;
        admin.until(WAIT, "/metrics", |answer| answer.text().lines().any(|line| line == counted)).await;
    }
}

/// `name@cluster` of each item.
fn items(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let list = answer.json();
    let items = list["items"].as_array().expect("items").iter();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    items
        .map(|item| format!("{}@{}", text(&item["metadata"]["name"]), text(&item["metadata"]["annotations"][MARK])))
        .collect()
}

#[tokio::test]
async fn lists_are_one_by_cluster_and_each_member_sees_the_caller() {
    let fleet = Fleet::with_pods(&["paris", "berlin", HIDDEN]).await;
    let answer = fleet.get(&format!("{PODS}?limit=500&resourceVersion=0&labelSelector=a")).await;
    assert_eq!(items(&answer), ["of-berlin@berlin", "shared@berlin", "of-paris@paris", "shared@paris"]);
    assert_eq!(answer.header("warning"), None, "nothing is said of what alice may not know");
    for member in &fleet.members[..2] {
        let asked = &member.requests()[0];
        assert_eq!(asked.target, format!("{PODS}?labelSelector=a"));
        assert_eq!(asked.headers["impersonate-user"], "alice");
        assert_eq!(asked.headers["accept"], "application/json");
    }
    assert_eq!(fleet.members[2].connections_accepted(), 0);
    let reviewed = fleet.hub.access_reviews();
    let mut names: Vec<_> =
        reviewed.iter().map(|spec| spec["resourceAttributes"]["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    assert_eq!(names, ["*", "berlin", "paris", HIDDEN]);
}

#[tokio::test]
async fn one_object_is_where_it_is_and_nowhere_twice() {
    let fleet = Fleet::with_pods(&["berlin", "paris", HIDDEN]).await;
    let found = fleet.get(&format!("{PODS}/of-paris")).await;
    assert_eq!((found.status, &found.json()["on"]), (200, &json!("paris")));
    let conflict = fleet.get(&format!("{PODS}/shared")).await;
    assert_eq!(conflict.status, 409);
    let message = conflict.json()["message"].as_str().expect("a message").to_owned();
    assert_eq!(message, "conflict resource, exist in more than one cluster: berlin,paris");
    for name in ["none", &format!("of-{HIDDEN}")] {
        let absent = fleet.get(&format!("{PODS}/{name}")).await;
        assert_eq!((absent.status, absent.text().contains(HIDDEN)), (404, false), "{}", absent.text());
    }
}

#[tokio::test]
async fn members_that_do_not_answer_are_named() {
    let fleet = Fleet::with_pods(&["berlin", "paris", "oslo", "lima"]).await;
    fleet.members[1].on(PODS, |_| Reply::json(403, &json!({"kind": "Status", "code": 403})));
    fleet.members[2].on(PODS, |_| Reply::json(200, &json!({"kind": "ServiceList", "apiVersion": "v1", "items": []})));
    fleet.members[3].on(PODS, |_| Reply::not_found());
    let answer = fleet.get(PODS).await;
    assert_eq!(items(&answer), ["of-berlin@berlin", "shared@berlin"]);
    let warnings: Vec<_> =
        answer.headers.get_all("warning").iter().map(|value| value.to_str().expect("text")).collect();
    assert_eq!(
        warnings,
        [
            "299 - \"cluster oslo is missing: its answer is not a list like the others\\'\"",
            "299 - \"cluster paris is missing: it answered 403 Forbidden\"",
        ]
    );
    let nobody = Fleet::set(&["berlin"]).await;
    nobody.members[0].on_any(|_| Reply::json(500, &json!({})));
    let answer = nobody.get(PODS).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(answer.text().contains("no cluster served this request; missing: berlin"), "{}", answer.text());
    nobody.failed_at(&answer, "Member").await;
}

/// A load balancer without its API server says 404, too. An API server says so in plain text, if it
/// does not serve the group.
#[tokio::test]
async fn only_an_api_servers_404_says_that_a_member_has_none() {
    let fleet = Fleet::with_pods(&["berlin", "lima", "oslo"]).await;
    let plain = ("content-type", "text/plain; charset=utf-8");
    fleet.members[1].on(PODS, move |_| Reply::full(404, &[plain], "404 page not found\n"));
    fleet.members[2].on(PODS, move |_| Reply::full(404, &[plain, ("audit-id", "5e2c")], "404 page not found\n"));
    let answer = fleet.get(PODS).await;
    assert_eq!(items(&answer), ["of-berlin@berlin", "shared@berlin"]);
    let warnings: Vec<_> = answer.headers.get_all("warning").iter().collect();
    assert_eq!(warnings, ["299 - \"cluster lima is missing: its 404 is not that of an API server\""]);
    let fleet = Fleet::with_pods(&["berlin", "paris"]).await;
    fleet.members[1].on_any(|_| Reply::full(404, &[("content-type", "text/html")], "<h1>no such backend</h1>"));
    let answer = fleet.get(&format!("{PODS}/none")).await;
    let message = answer.status_message(503, "ServiceUnavailable");
    assert!(message.contains("missing: paris (its 404 is not that of an API server)"), "{message}");
    fleet.failed_at(&answer, "Member").await;
}

/// Else a user without rights would make operators look for a failing member.
#[tokio::test]
async fn what_members_refuse_the_caller_is_the_callers() {
    let fleet = Fleet::with_pods(&["berlin", "paris"]).await;
    for member in &fleet.members {
        member.on(PODS, |_| Reply::json(403, &json!({"kind": "Status", "code": 403})));
    }
    let answer = fleet.get(PODS).await;
    assert_eq!(answer.json()["details"]["causes"], Value::Null, "{}", answer.text());
    let message = answer.status_message(403, "Forbidden");
    assert!(message.contains("berlin (it answered 403 Forbidden)"), "{message}");
    fleet.members[0].on(PODS, |_| Reply::json(405, &json!({"kind": "Status", "code": 405})));
    fleet.get(PODS).await.status_message(400, "BadRequest");
    fleet.counted("caller", 2).await;
    fleet.members[0].on(PODS, |_| Reply::json(500, &json!({})));
    let answer = fleet.get(PODS).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    fleet.failed_at(&answer, "Member").await;
}

/// Clients forget an object that gets 404.
#[tokio::test]
async fn one_object_is_absent_only_if_each_member_says_so() {
    let fleet = Fleet::with_pods(&["berlin", "paris"]).await;
    let absent = fleet.get(&format!("{PODS}/none")).await.status_message(404, "NotFound");
    assert_eq!(absent, "no cluster that you may reach has this object");
    fleet.members[1].on_any(|_| Reply::json(500, &json!({})));
    let answer = fleet.get(&format!("{PODS}/none")).await;
    let message = answer.status_message(503, "ServiceUnavailable");
    let words = "not found in the clusters that served this request; missing: paris (it answered 500";
    assert!(message.starts_with(words), "{message}");
    fleet.failed_at(&answer, "Member").await;
    let found = fleet.get(&format!("{PODS}/of-berlin")).await;
    assert_eq!((found.status, &found.json()["on"]), (200, &json!("berlin")));
}

#[tokio::test]
async fn tables_are_merged_as_tables() {
    const TABLE: (&str, &str) = ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json");
    let fleet = Fleet::set(&["berlin", "paris"]).await;
    for member in &fleet.members {
        let row = json!({"cells": ["a"], "object": {"kind": "PartialObjectMetadata", "metadata": {"name": "a"}}});
        let table = json!({"kind": "Table", "apiVersion": "meta.k8s.io/v1", "columnDefinitions": [{"name": "Name"}], "rows": [row]});
        member.on_any(move |_| Reply::json(200, &table));
    }
    let table = fleet.call("GET", PODS, &[TABLE]).await.json();
    assert_eq!((&table["kind"], table["rows"].as_array().map(Vec::len)), (&json!("Table"), Some(2)));
    assert_eq!(table["rows"][1]["object"]["metadata"]["annotations"][MARK], "paris");
    assert_eq!(fleet.members[0].requests()[0].headers["accept"], "application/json;as=Table;v=v1;g=meta.k8s.io");
}

#[tokio::test]
async fn what_is_no_read_of_a_resource_is_refused_before_any_member_is_asked() {
    let fleet = Fleet::with_pods(&["berlin"]).await;
    for (method, rest, code) in [
        ("GET", "", 404),
        ("GET", "/version", 404),
        ("GET", "/apis", 404),
        ("GET", "/api/v1/namespaces/ns/pods?watch=1", 405),
        ("GET", "/api/v1/namespaces/ns/pods/p/log?follow=1", 405),
        ("GET", "/api/v1/namespaces/ns/pods/p/exec?command=sh", 405),
        ("GET", "/api/v1/namespaces/ns/services/s/proxy/x", 405),
        ("HEAD", "/api/v1/namespaces/ns/pods", 405),
        ("POST", "/api/v1/namespaces/ns/pods", 405),
        ("DELETE", "/api/v1/namespaces/ns/pods/p", 405),
        ("GET", "/api/v1/namespaces/ns/pods?continue=x", 400),
        ("GET", "/api/v1/namespaces/../pods", 400),
        ("GET", "/api/v1//pods", 400),
    ] {
        assert_eq!(fleet.call(method, rest, &[]).await.status, code, "{method} {rest}");
    }
    let upgrade = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "AAAAAAAAAAAAAAAAAAAAAA=="),
    ];
    let mut connection = fleet.testbed.anonymous(Http::H1).await.bearer(ALICE);
    let answer = connection.call("GET", &format!("{PREFIX}{PODS}"), &upgrade, b"").await;
    assert_eq!(answer.status, 405, "{}", answer.text());
    assert_eq!(fleet.members[0].connections_accepted(), 0);
}

#[tokio::test]
async fn who_may_not_ask_all_asks_nobody() {
    let fleet = Fleet::with_pods(&["berlin"]).await;
    let mut stranger = fleet.testbed.anonymous(Http::H2).await.bearer("no-such-token");
    let encoded = format!("{}{PODS}", PREFIX.replace('*', "%2A"));
    assert_eq!(stranger.get(&encoded).await.status, 401);
    let mut alice = fleet.testbed.anonymous(Http::H2).await.bearer(ALICE);
    assert_eq!(alice.get(&encoded).await.status, 200);
    let fleet = Fleet::with_pods(&["berlin"]).await;
    fleet.hub.on_access(|spec| {
        let is_all = spec["resourceAttributes"]["name"] == "*";
        if is_all { Decision::deny("no") } else { Decision::allow() }
    });
    assert_eq!(fleet.get(PODS).await.status, 403);
    assert_eq!(fleet.members[0].connections_accepted(), 0);
}

/// A body announced by its headers would make a member wait for one, or take the next request for
/// it.
#[tokio::test]
async fn a_request_with_a_body_is_refused_and_headers_of_one_reach_no_member() {
    let fleet = Fleet::with_pods(&["berlin"]).await;
    let path = format!("{PREFIX}{PODS}");
    for http in [Http::H1, Http::H2] {
        let mut connection = fleet.testbed.anonymous(http).await.bearer(ALICE);
        let answer = connection.call("GET", &path, &[], b"GET /api/v1/secrets HTTP/1.1").await;
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    assert_eq!(fleet.members[0].connections_accepted(), 0);
    let headers = [
        ("content-type", "application/json"),
        ("if-none-match", "*"),
        ("if-modified-since", "x"),
        ("range", "bytes=0-1"),
        ("x-other", "y"),
        ("user-agent", "kubectl/v1"),
    ];
    assert_eq!(fleet.call("GET", PODS, &headers).await.status, 200);
    let asked = &fleet.members[0].requests()[0];
    for (name, _) in &headers[..5] {
        assert!(!asked.headers.contains_key(*name), "{name}");
    }
    assert!(!asked.headers.contains_key("content-length"));
    assert_eq!(asked.headers["user-agent"], "kubectl/v1");
}

#[tokio::test]
async fn one_object_says_whose_it_is() {
    let fleet = Fleet::with_pods(&["berlin", "paris"]).await;
    let found = fleet.get(&format!("{PODS}/of-paris")).await.json();
    assert_eq!(found["metadata"]["annotations"], json!({MARK: "paris"}));
    fleet.members[0]
        .on(&format!("{PODS}/of-berlin/log"), |_| Reply::full(200, &[("content-type", "text/plain")], "a line"));
    let log = fleet.get(&format!("{PODS}/of-berlin/log")).await;
    assert_eq!((log.status, log.text()), (200, "a line".to_owned()));
}

/// One member's answer must not take the others' place.
#[tokio::test]
async fn a_member_with_too_large_an_answer_is_itself_missing() {
    let fleet = Fleet::with_pods(&["berlin", "paris"]).await;
    let large = json!({"kind": "PodList", "apiVersion": "v1", "items": [], "x": "x".repeat(33 << 20)});
    fleet.members[0].on(PODS, move |_| Reply::json(200, &large));
    let answer = fleet.get(PODS).await;
    assert_eq!(items(&answer), ["of-paris@paris", "shared@paris"]);
    let warning = answer.header("warning").expect("a warning").to_owned();
    assert_eq!(warning, "299 - \"cluster berlin is missing: its answer is too large beside the others\\'\"");
    fleet.members[1].on(PODS, |_| Reply::not_found());
    let answer = fleet.get(PODS).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    fleet.failed_at(&answer, "Gateway").await;
}

#[tokio::test]
async fn one_member_does_not_decide_what_the_list_is() {
    let fleet = Fleet::with_pods(&["berlin", "paris", "oslo"]).await;
    let other = json!({"kind": "EvilList", "apiVersion": "v1", "items": []});
    fleet.members[0].on(PODS, move |_| Reply::json(200, &other));
    assert_eq!(items(&fleet.get(PODS).await), ["of-oslo@oslo", "shared@oslo", "of-paris@paris", "shared@paris"]);
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")];
    fleet.call("GET", &format!("{PODS}?includeObject=None"), &table).await;
    let asked = fleet.members[1].requests().last().expect("a request").target.clone();
    assert_eq!(asked, format!("{PODS}?includeObject=Metadata"), "else no row could say whose it is");
}

/// It takes the ten seconds that it has.
#[tokio::test]
async fn a_member_that_never_answers_is_missing_and_counted() {
    let fleet = Fleet::with_pods(&["berlin", "paris"]).await;
    fleet.members[0].on(PODS, |_| Reply::Never);
    let answer = fleet.get(PODS).await;
    assert_eq!(items(&answer), ["of-paris@paris", "shared@paris"]);
    let warning = answer.header("warning").expect("a warning").to_owned();
    assert_eq!(warning, "299 - \"cluster berlin is missing: it did not answer within 10 s\"");
    let counted = "cluster_gateway_requests_total{cluster=\"berlin\",verb=\"GET\",code=\"504\",dialect=\"karmada\"} 1";
    let mut admin = fleet.testbed.aggregator_as_admin(&fleet.hub, Http::H2).await;
    let text = admin.until(WAIT, "/metrics", |answer| answer.text().lines().any(|line| line == counted)).await.text();
    assert!(text.contains("cluster_gateway_requests_in_flight{cluster=\"berlin\"} 0"), "{text}");
}

/// In the cluster's metrics too, with the code of its own refusal.
#[tokio::test]
async fn a_member_at_its_limit_is_missing_and_counted() {
    let fleet = Fleet::flagged(&["berlin"], &["--max-requests-per-cluster=1"]).await;
    let gate = Gate::new();
    let held = gate.clone();
    fleet.members[0].on(PODS, move |_| Reply::not_found().after(&held));
    let path = format!("{PREFIX}{PODS}");
    let mut first = fleet.testbed.anonymous(Http::H2).await.bearer(ALICE);
    let second = async {
        fleet.members[0].next_request().await;
        let refused = fleet.get(PODS).await;
        gate.open();
        refused
    };
    let (_, refused) = tokio::join!(first.get(&path), second);
    assert_eq!(refused.status, 503, "{}", refused.text());
    assert!(refused.text().contains("too many requests in flight for cluster berlin"), "{}", refused.text());
    let counted = "cluster_gateway_requests_total{cluster=\"berlin\",verb=\"GET\",code=\"429\",dialect=\"karmada\"} 1";
    let mut admin = fleet.testbed.aggregator_as_admin(&fleet.hub, Http::H2).await;
    admin.until(WAIT, "/metrics", |answer| answer.text().lines().any(|line| line == counted)).await;
}

/// 32 are asked at once; when one has answered, the review for the last fails.
#[tokio::test]
async fn members_do_not_count_as_left_by_the_client_when_the_gateway_gave_up() {
    let names: Vec<_> = (0..33).map(|number| format!("c{number}")).collect();
    let fleet = Fleet::set(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let (asked, all, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()), Gate::new());
    for member in &fleet.members {
        let (asked, all, held) = (Arc::clone(&asked), Arc::clone(&all), gate.clone());
        member.on(PODS, move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Reply::not_found().after(&held),
            31 => {
                all.notify_one();
                Reply::Never
            }
            _ => Reply::Never,
        });
    }
    let failing = async {
        all.notified().await;
        fleet.hub.fail(Call::AccessReview, Fault::Status(500));
        gate.open();
    };
    let (answer, ()) = tokio::join!(fleet.get(PODS), failing);
    assert_eq!(answer.status, 500, "{}", answer.text());
    fleet.hub.heal(Call::AccessReview);
    let mut admin = fleet.testbed.aggregator_as_admin(&fleet.hub, Http::H2).await;
    let of = |answer: &Answer, code: u16| {
        let code = format!("verb=\"GET\",code=\"{code}\",dialect=\"karmada\"}} 1");
        answer
            .text()
            .lines()
            .filter(|line| line.starts_with("cluster_gateway_requests_total{cluster=\"c") && line.ends_with(&code))
            .count()
    };
    let counted = |answer: &Answer| of(answer, 503) == 31 && of(answer, 404) == 1 && of(answer, 499) == 0;
    admin.until(WAIT, "/metrics", counted).await;
}

/// Each takes memory, and a request of every member.
#[tokio::test]
async fn one_user_has_two_of_them_at_once() {
    let fleet = Fleet::with_pods(&["berlin"]).await;
    let gate = Gate::new();
    let held = gate.clone();
    fleet.members[0].on(PODS, move |_| Reply::not_found().after(&held));
    let path = format!("{PREFIX}{PODS}");
    let mut first = fleet.testbed.anonymous(Http::H2).await.bearer(ALICE);
    let mut second = fleet.testbed.anonymous(Http::H2).await.bearer(ALICE);
    let both = async { tokio::join!(first.get(&path), second.get(&path)) };
    let third = async {
        for _ in 0..2 {
            fleet.members[0].next_request().await;
        }
        fleet.get(PODS).await
    };
    let third = tokio::select! {
        _ = both => panic!("nobody answered them"),
        third = third => third,
    };
    assert_eq!(third.status, 429, "{}", third.text());
    assert_eq!(third.header("retry-after"), Some("1"));
    fleet.failed_at(&third, "Gateway").await;
    // Those two have left: that counts for the member as with any other request.
    drop((first, second));
    let counted = |answer: &Answer| {
        let text = answer.text();
        let has = |line: &str| text.lines().any(|counted| counted == line);
        has("cluster_gateway_requests_rejected_total{reason=\"all_clusters_user\"} 1")
            && has("cluster_gateway_requests_total{cluster=\"berlin\",verb=\"GET\",code=\"499\",dialect=\"karmada\"} 2")
    };
    let mut admin = fleet.testbed.aggregator_as_admin(&fleet.hub, Http::H2).await;
    admin.until(WAIT, "/metrics", counted).await;
}
