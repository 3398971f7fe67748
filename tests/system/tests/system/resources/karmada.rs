//! Karmada's `clusters`: what is read from cluster Secrets, and what a write makes of them.

use system_tests::prelude::*;

use super::{Fixture, NAMESPACE, SECRETS, TABLE, names, readable, unreadable};

const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const KEPT: &str = "cluster.core.oam.dev/karmada-cluster";
const JSON: (&str, &str) = ("content-type", "application/json");
const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");
const CORDON: &[u8] = br#"{"spec":{"taints":[{"effect":"NoSchedule","key":"cluster.karmada.io/unschedulable"}]}}"#;

fn path(name: &str) -> String {
    format!("{CLUSTERS}/{name}")
}

async fn fixture(secrets: impl IntoIterator<Item = ClusterSecret>) -> Fixture {
    Fixture::with(secrets, |testbed| testbed.arg("--karmada-dialect=standalone")).await
}

/// A credential as `karmadactl join` puts it.
fn credential(name: &str, token: &str) -> Value {
    let data = json!({"token": base64(token)});
    json!({"metadata": {"namespace": "karmada-cluster", "name": name}, "type": "Opaque", "data": data})
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

/// A Cluster as `karmadactl join` creates it.
fn joined(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"syncMode": "Push", "apiEndpoint": "https://new.example:6443", "id": "7",
        "region": "eu", "secretRef": {"namespace": "karmada-cluster", "name": name}}})
}

fn secret(fixture: &Fixture, name: &str) -> Value {
    fixture.hub.get(SECRETS, NAMESPACE, name).expect("a Secret")
}

fn kept(fixture: &Fixture, name: &str) -> Value {
    let secret = secret(fixture, name);
    serde_json::from_str(secret["metadata"]["annotations"][KEPT].as_str().expect("the annotation")).expect("JSON")
}

async fn send(fixture: &Fixture, method: &str, target: &str, kind: (&str, &str), body: &Value) -> Answer {
    fixture.call(method, target, &[kind], body.to_string().as_bytes()).await
}

across_http!(what_is_read_is_what_the_secrets_say);

async fn what_is_read_is_what_the_secrets_say(http: Http) {
    let region = readable("a").label("topology.kubernetes.io/region", "eu").label("tier", "a");
    let fixture = fixture([region, readable("b"), unreadable("c")]).await;
    let mut connection = fixture.connect(http).await;
    assert_eq!(names(&connection.get(CLUSTERS).await), ["a", "b"]);
    assert_eq!(names(&connection.get(&format!("{CLUSTERS}?labelSelector=tier%3Da")).await), ["a"]);
    let object = connection.get(&path("a")).await.json();
    assert_eq!(object["apiVersion"], "cluster.karmada.io/v1alpha1");
    assert_eq!(
        object["spec"],
        json!({"syncMode": "Push", "apiEndpoint": "https://member.example:6443", "region": "eu"})
    );
    assert_eq!(object["metadata"]["resourceVersion"], secret(&fixture, "a")["metadata"]["resourceVersion"]);
    let table = connection.call("GET", CLUSTERS, &[TABLE], b"").await.json();
    let columns = table["columnDefinitions"].as_array().expect("columns");
    let columns: Vec<_> = columns.iter().map(|column| column["name"].as_str().expect("a name")).collect();
    let wide = ["Zones", "Region", "Provider", "API-Endpoint", "Proxy-URL"];
    assert_eq!(columns, [&["Name", "Version", "Mode", "Ready", "Age"][..], &wide].concat());
    assert_eq!(table["rows"][0]["cells"][6], "eu");
    for (target, code) in [(path("none"), 404), (path("c"), 500), (path("A"), 404)] {
        assert_eq!(connection.get(&target).await.status, code, "{target}");
    }
    let absent = connection.get(&path("none")).await.json();
    assert_eq!(absent["message"], "clusters.cluster.karmada.io \"none\" not found");
}

#[tokio::test]
async fn a_watch_tells_what_a_list_would_show() {
    let fixture = fixture([readable("a")]).await;
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=1")).await;
    assert_eq!(watch.next_summary().await, "ADDED a");
    fixture.hub.put_secret(readable("b"));
    assert_eq!(watch.next_summary().await, "ADDED b");
    fixture.hub.put_secret(unreadable("b"));
    let gone = watch.next().await.expect("an event");
    assert_eq!((gone.kind.as_str(), gone.object["kind"].as_str()), ("DELETED", Some("Cluster")));
    assert_eq!(fixture.call("PATCH", &path("a"), &[MERGE], CORDON).await.status, 200);
    let cordoned = watch.next().await.expect("an event");
    assert_eq!(cordoned.object["spec"]["taints"][0]["key"], "cluster.karmada.io/unschedulable");
}

#[tokio::test]
async fn a_cluster_that_joins_is_a_secret_and_one_that_leaves_is_none() {
    let fixture = fixture([]).await;
    fixture.hub.put_secret(credential("new", "canary-joined"));
    let answer = send(&fixture, "POST", CLUSTERS, JSON, &joined("new")).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert!(!answer.text().contains("canary"));
    let created = answer.json();
    assert_eq!(created["spec"]["secretRef"]["name"], "new");
    let written = secret(&fixture, "new");
    assert_eq!(written["data"]["token"], base64("canary-joined"));
    assert_eq!(written["data"]["endpoint"], base64("https://new.example:6443"));
    let labels = &written["metadata"]["labels"];
    assert_eq!(labels["cluster.core.oam.dev/cluster-credential-type"], "ServiceAccountToken");
    assert_eq!(labels["topology.kubernetes.io/region"], "eu");
    assert_eq!(
        kept(&fixture, "new"),
        json!({"spec": {"id": "7", "secretRef": {"namespace": "karmada-cluster", "name": "new"}}})
    );
    let again = send(&fixture, "POST", CLUSTERS, JSON, &joined("new")).await;
    assert_eq!(again.status, 409, "{}", again.text());
    let uid = created["metadata"]["uid"].clone();
    let wrong = json!({"preconditions": {"uid": "another"}});
    assert_eq!(send(&fixture, "DELETE", &path("new"), JSON, &wrong).await.status, 409);
    let dry = send(&fixture, "DELETE", &path("new"), JSON, &json!({"dryRun": ["All"]})).await;
    assert_eq!((dry.status, fixture.hub.get(SECRETS, NAMESPACE, "new").is_some()), (200, true));
    let gone = send(&fixture, "DELETE", &path("new"), JSON, &json!({"preconditions": {"uid": uid}})).await;
    assert_eq!((gone.status, &gone.json()["status"]), (200, &json!("Success")), "{}", gone.text());
    assert_eq!(fixture.hub.get(SECRETS, NAMESPACE, "new"), None);
    assert_eq!(send(&fixture, "DELETE", &path("new"), JSON, &json!({})).await.status, 404);
}

#[tokio::test]
async fn what_cannot_be_registered_is_refused_and_nothing_is_written() {
    let fixture = fixture([]).await;
    fixture.hub.put_secret(credential("new", "t"));
    let of_hub = json!({"metadata": {"namespace": "karmada-cluster", "name": "own"}, "data": {"token": base64("t")},
        "type": "kubernetes.io/service-account-token"});
    fixture.hub.put_secret(of_hub);
    let with = |pointer: &str, value: Value| {
        let mut body = joined("new");
        *body.pointer_mut(pointer).expect("a field") = value;
        body
    };
    for (body, words) in [
        (with("/spec/secretRef", json!({"namespace": "vela-system", "name": "new"})), "karmada-cluster"),
        (with("/spec/secretRef/name", json!("absent")), "does not exist yet"),
        (with("/spec/secretRef/name", json!("own")), "ServiceAccount of its own control plane"),
        (with("/spec/secretRef", Value::Null), "spec.secretRef"),
        (with("/spec/apiEndpoint", json!("http://new.example")), "spec.apiEndpoint"),
        (with("/spec/apiEndpoint", json!("https://169.254.169.254")), "--deny-endpoints"),
        (with("/metadata/name", json!("a.b")), "metadata.name"),
        (with("/metadata/name", json!("local")), "another Secret"),
        (with("/metadata/name", json!("tunnel-agent-berlin")), "another Secret"),
        (with("/metadata/name", json!("cluster-gateway")), "another Secret"),
    ] {
        let answer = send(&fixture, "POST", CLUSTERS, JSON, &body).await;
        assert_eq!(answer.status, 422, "{}", answer.text());
        assert!(answer.text().contains(words), "{words}: {}", answer.text());
    }
    let controllers = format!("{CLUSTERS}?fieldManager=cluster-gateway-controllers");
    assert_eq!(send(&fixture, "POST", &controllers, JSON, &joined("new")).await.status, 400);
    for kind in ["application/yaml", "application/apply-patch+yaml"] {
        let answer = fixture.call("POST", CLUSTERS, &[("content-type", kind)], b"{}").await;
        assert_eq!(answer.status, 415, "{kind}");
    }
    let large = with("/spec/id", json!("x".repeat(129 << 10)));
    assert_eq!(send(&fixture, "POST", CLUSTERS, JSON, &large).await.status, 413);
    assert_eq!(fixture.hub.get(SECRETS, NAMESPACE, "new"), None);
}

/// A user that may write Clusters and not read a Secret must not have its token sent anywhere.
#[tokio::test]
async fn a_secret_is_read_for_those_alone_who_may_read_it() {
    let hub = FakeHub::start().await;
    hub.add_token("alices-token", TokenUser::new("alice", &[]));
    hub.put_secret(credential("new", "canary"));
    hub.on_access(|spec| {
        let is_cluster = spec["resourceAttributes"]["resource"] == "clusters";
        if is_cluster { Decision::allow() } else { Decision::deny("no") }
    });
    let testbed = Testbed::builder().hub(&hub).arg("--karmada-dialect=standalone").start().await;
    let mut alice = testbed.anonymous(Http::H2).await.bearer("alices-token");
    let answer = alice.call("POST", CLUSTERS, &[JSON], joined("new").to_string().as_bytes()).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    assert!(answer.text().contains("secrets \\\"new\\\" is forbidden"), "{}", answer.text());
    assert_eq!(hub.get(SECRETS, NAMESPACE, "new"), None);
    assert!(!hub.requests().iter().any(|request| request.contains("namespaces/karmada-cluster")));
}

#[tokio::test]
async fn a_cordoned_cluster_keeps_its_secret() {
    let fixture = fixture([readable("a").annotation("other", "stays").label("tier", "a")]).await;
    let before = secret(&fixture, "a");
    let answer = fixture.call("PATCH", &path("a"), &[MERGE], CORDON).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let after = secret(&fixture, "a");
    assert_eq!((&after["data"], &after["metadata"]["labels"]), (&before["data"], &before["metadata"]["labels"]));
    assert_eq!(after["metadata"]["annotations"]["other"], "stays");
    let mut whole = fixture.get(&path("a")).await.json();
    whole["spec"]["taints"] = json!([]);
    whole["status"] = json!({"kubernetesVersion": "v9"});
    let answer = send(&fixture, "PUT", &path("a"), JSON, &whole).await;
    assert_eq!((answer.status, &answer.json()["spec"]["taints"]), (200, &Value::Null), "{}", answer.text());
    assert_eq!(kept(&fixture, "a"), json!({"spec": {}}), "a status is written by itself");
    // Its version is an old one now.
    assert_eq!(send(&fixture, "PUT", &path("a"), JSON, &whole).await.status, 409);
    let status = json!({"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    let answer = send(&fixture, "PUT", &format!("{}/status", path("a")), JSON, &status).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let table = fixture.call("GET", CLUSTERS, &[TABLE], b"").await.json();
    assert_eq!(table["rows"][0]["cells"][3], "True");
}

/// The Secret's token would go to another address.
#[tokio::test]
async fn the_way_to_a_member_is_changed_by_those_alone_who_name_its_credential() {
    let of_source = readable("sourced").label("cluster.core.oam.dev/source", "capi");
    let elsewhere = br#"[{"url": "https://fallback.example:6443"}]"#;
    let fixture = fixture([readable("a").data("fallback-endpoints", elsewhere), of_source]).await;
    let moved = json!({"spec": {"apiEndpoint": "https://elsewhere.example:6443"}});
    for (name, words) in [("a", "spec.secretRef"), ("sourced", "the source capi")] {
        let answer = send(&fixture, "PATCH", &path(name), MERGE, &moved).await;
        assert_eq!(answer.status, 422, "{}", answer.text());
        assert!(answer.text().contains(words), "{}", answer.text());
        assert_eq!(secret(&fixture, name)["data"]["endpoint"], base64("https://member.example:6443"));
    }
    fixture.hub.put_secret(credential("a", "another"));
    let moved = json!({"spec": {"apiEndpoint": "https://elsewhere.example:6443",
        "secretRef": {"namespace": "karmada-cluster", "name": "a"}}});
    let answer = send(&fixture, "PATCH", &path("a"), MERGE, &moved).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let data = secret(&fixture, "a")["data"].clone();
    assert_eq!(
        (&data["token"], &data["endpoint"]),
        (&json!(base64("another")), &json!(base64("https://elsewhere.example:6443")))
    );
    assert!(data.get("fallback-endpoints").is_none(), "the new credential would go to the old addresses: {data}");
}

/// Otherwise, a user that may only write Clusters could send callers of a cluster elsewhere.
#[tokio::test]
async fn a_cluster_that_was_registered_otherwise_is_moved_by_those_alone_who_may_write_its_secret() {
    let hub = FakeHub::start().await;
    hub.add_token("alices-token", TokenUser::new("alice", &[]));
    for secret in [credential("a", "another"), credential("new", "t")] {
        hub.put_secret(secret);
    }
    hub.put_secret(readable("a"));
    hub.on_access(|spec| {
        let is_update =
            spec["resourceAttributes"]["resource"] == "secrets" && spec["resourceAttributes"]["verb"] == "update";
        if is_update { Decision::deny("no") } else { Decision::allow() }
    });
    let testbed = Testbed::builder().hub(&hub).arg("--karmada-dialect=standalone").start().await;
    let mut alice = testbed.anonymous(Http::H2).await.bearer("alices-token");
    let moved = |name: &str| {
        let reference = json!({"namespace": "karmada-cluster", "name": name});
        json!({"spec": {"apiEndpoint": "https://elsewhere.example:6443", "secretRef": reference}}).to_string()
    };
    assert_eq!(alice.call("PATCH", &path("a"), &[MERGE], CORDON).await.status, 200, "that is no move");
    let answer = alice.call("PATCH", &path("a"), &[MERGE], moved("a").as_bytes()).await;
    assert_eq!(answer.status, 403, "{}", answer.text());
    let endpoint = |name: &str| hub.get(SECRETS, NAMESPACE, name).expect("a Secret")["data"]["endpoint"].clone();
    assert_eq!(endpoint("a"), base64("https://member.example:6443"));
    assert_eq!(alice.call("POST", CLUSTERS, &[JSON], joined("new").to_string().as_bytes()).await.status, 201);
    let answer = alice.call("PATCH", &path("new"), &[MERGE], moved("new").as_bytes()).await;
    assert_eq!((answer.status, endpoint("new")), (200, json!(base64("https://elsewhere.example:6443"))));
}

/// They say what a Secret is, and others select by them.
#[tokio::test]
async fn labels_that_others_trust_stay_and_labels_have_a_limit() {
    let secret_of_a = readable("a").label("argoproj.io/secret-type", "cluster").label("app.oam.dev/name", "shop");
    let fixture = fixture([secret_of_a.label("tier", "a")]).await;
    // Those that say how it is registered are not shown.
    let shown = fixture.get(&path("a")).await.json()["metadata"]["labels"].take();
    assert_eq!(shown, json!({"argoproj.io/secret-type": "cluster", "app.oam.dev/name": "shop", "tier": "a"}));
    let patch = |labels: Value| json!({"metadata": {"labels": labels}});
    let answer = send(&fixture, "PATCH", &path("a"), MERGE, &patch(json!({"argoproj.io/secret-type": null}))).await;
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(answer.text().contains("argoproj.io/secret-type cannot be removed here"), "{}", answer.text());
    for (labels, words) in [
        (json!({"app.oam.dev/name": null}), "app.oam.dev/name cannot be removed here"),
        (json!({"app.oam.dev/name": "other"}), "app.oam.dev/name cannot be set here"),
        (json!({"cluster.core.oam.dev/cluster-credential-type": "Dynamic"}), "say how the cluster is registered"),
    ] {
        let answer = send(&fixture, "PATCH", &path("a"), MERGE, &patch(labels)).await;
        assert_eq!(answer.status, 422, "{words}: {}", answer.text());
        assert!(answer.text().contains(words), "{words}: {}", answer.text());
    }
    assert_eq!(send(&fixture, "PATCH", &path("a"), MERGE, &patch(json!({"tier": null}))).await.status, 200);
    assert_eq!(secret(&fixture, "a")["metadata"]["labels"]["argoproj.io/secret-type"], "cluster");
    let many = |from: usize| (from..from + 40).map(|index| (format!("l{index}"), json!("x"))).collect::<Value>();
    assert_eq!(send(&fixture, "PATCH", &path("a"), MERGE, &patch(many(0))).await.status, 200);
    let answer = send(&fixture, "PATCH", &path("a"), MERGE, &patch(many(40))).await;
    assert_eq!(answer.status, 422, "{}", answer.text());
    assert!(answer.text().contains("at most 64 labels"), "{}", answer.text());
}

#[tokio::test]
async fn a_path_that_is_reviewed_as_another_is_none() {
    let fixture = fixture([readable("a")]).await;
    let status = json!({"metadata": {"name": "a"}, "status": {"kubernetesVersion": "v9"}});
    let answer = send(&fixture, "PUT", &format!("{}//status", path("a")), JSON, &status).await;
    assert_eq!(answer.status, 404, "{}", answer.text());
}

#[tokio::test]
async fn unknown_fields_are_told_or_refused() {
    let fixture = fixture([readable("a")]).await;
    let patch = json!({"spec": {"colour": "red"}});
    let answer = send(&fixture, "PATCH", &path("a"), MERGE, &patch).await;
    assert_eq!((answer.status, answer.header("warning")), (200, Some("299 - \"unknown field \\\"spec.colour\\\"\"")));
    let long = json!({"spec": {"x".repeat(9000): 1}});
    let answer = send(&fixture, "PATCH", &path("a"), MERGE, &long).await;
    assert!(answer.header("warning").is_some_and(|text| text.len() < 300), "{:?}", answer.header("warning"));
    let strict = format!("{}?fieldValidation=Strict", path("a"));
    let answer = send(&fixture, "PATCH", &strict, MERGE, &patch).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    let ignored = format!("{}?fieldValidation=Ignore&dryRun=All", path("a"));
    let answer = send(&fixture, "PATCH", &ignored, MERGE, &patch).await;
    assert_eq!((answer.status, answer.header("warning")), (200, None));
    for query in ["fieldValidation=Maybe", "dryRun=Some"] {
        assert_eq!(
            send(&fixture, "PATCH", &format!("{}?{query}", path("a")), MERGE, &patch).await.status,
            400,
            "{query}"
        );
    }
}

#[tokio::test]
async fn discovery_names_the_group_only_where_it_is_served() {
    let on = fixture([]).await;
    let off = Fixture::set([]).await;
    for (fixture, expected) in [(&on, 2), (&off, 1)] {
        let groups = fixture.get("/apis").await.json()["groups"].as_array().expect("groups").len();
        let documents = fixture.get("/openapi/v3").await.json()["paths"].as_object().expect("paths").len();
        assert_eq!((groups, documents), (expected, expected));
    }
    let document = "/openapi/v3/apis/cluster.karmada.io/v1alpha1";
    assert_eq!((on.get(document).await.status, off.get(document).await.status), (200, 404));
    assert_eq!(off.get(CLUSTERS).await.status, 404);
}

/// Each reads a Secret whole: no user's writes take all permits of the others.
#[tokio::test]
async fn a_delete_takes_a_permit_as_any_write() {
    let hub = FakeHub::start().await;
    hub.allow_all();
    let testbed = Testbed::builder().hub(&hub).arg("--karmada-dialect=standalone").start().await;
    let gate = Gate::new();
    let mut writing = tokio::task::JoinSet::new();
    let connect = |user: String| {
        hub.add_token(&user, TokenUser::new(&user, &[]));
        let testbed = &testbed;
        async move { testbed.anonymous(Http::H2).await.bearer(&user) }
    };
    for number in 0..8 {
        hub.put_secret(readable(&format!("c{number}")));
        hub.fail(Call::Write(SECRETS), Fault::Until(gate.clone()));
        let mut user = connect(format!("user-{}", number / 2)).await;
        writing.spawn(async move { user.call("PATCH", &path(&format!("c{number}")), &[MERGE], CORDON).await.status });
        hub.called(Call::Write(SECRETS), number + 1).await;
    }
    let mut last = connect("last".to_owned()).await;
    let refused = last.call("DELETE", &path("c0"), &[], b"").await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(hub.get(SECRETS, NAMESPACE, "c0").is_some());
    // Of one user, not even the permit is waited for.
    let third = connect("user-0".to_owned()).await.call("DELETE", &path("c0"), &[], b"").await;
    assert_eq!(third.status, 429, "{}", third.text());
    assert!(third.text().contains("writes of clusters of one user in flight (limit 2)"), "{}", third.text());
    let counted = |answer: &Answer| {
        let text = answer.text();
        let has = |reason| {
            let line = format!("cluster_gateway_requests_rejected_total{{reason=\"{reason}\"}} 1");
            text.lines().any(|counted| counted == line)
        };
        has("cluster_writes_busy") && has("cluster_writes_user")
    };
    testbed.aggregator_as_admin(&hub, Http::H2).await.until(WAIT, "/metrics", counted).await;
    gate.open();
    assert_eq!(writing.join_all().await, [200; 8]);
    assert_eq!(last.call("DELETE", &path("c0"), &[], b"").await.status, 200);
}
