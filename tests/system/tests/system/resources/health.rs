//! `clustergateways/health`: reported by PUT or PATCH, kept in the Secret, shown again behind a
//! gate.

use system_tests::prelude::*;
use tokio::task::JoinSet;

use super::{CLUSTERS, Fixture, NAMESPACE, SECRETS, TABLE, readable, unreadable};

const GATE: &str = "--feature-gates=HealthinessCheck=true";
const HEALTHY: &str = "status.cluster.core.oam.dev/healthy";
const REASON: &str = "status.cluster.core.oam.dev/healthy-reason";
const JSON: (&str, &str) = ("content-type", "application/json");
const MERGE: (&str, &str) = ("content-type", "application/merge-patch+json");

fn path(name: &str) -> String {
    format!("{CLUSTERS}/{name}/health")
}

fn object(metadata: &Value, healthy: bool, reason: &str) -> Vec<u8> {
    let status = json!({"healthy": healthy, "healthyReason": reason});
    json!({"kind": "ClusterGateway", "apiVersion": "cluster.core.oam.dev/v1alpha1", "metadata": metadata, "status": status})
        .to_string()
        .into_bytes()
}

fn annotations(fixture: &Fixture, name: &str) -> (Value, Value) {
    let secret = fixture.hub.get(SECRETS, NAMESPACE, name).expect("a Secret");
    let annotations = &secret["metadata"]["annotations"];
    (annotations[HEALTHY].clone(), annotations[REASON].clone())
}

fn version(fixture: &Fixture, name: &str) -> String {
    let secret = fixture.hub.get(SECRETS, NAMESPACE, name).expect("a Secret");
    secret["metadata"]["resourceVersion"].as_str().expect("a version").to_owned()
}

async fn gated(secrets: impl IntoIterator<Item = ClusterSecret>) -> Fixture {
    Fixture::with(secrets, |testbed| testbed.arg(GATE)).await
}

async fn put(fixture: &Fixture, target: &str, body: &[u8]) -> Answer {
    fixture.call("PUT", target, &[JSON], body).await
}

across_http!(what_is_put_is_kept_and_told);

async fn what_is_put_is_kept_and_told(http: Http) {
    let fixture = gated([readable("a").annotation("other", "stays")]).await;
    let mut connection = fixture.connect(http).await;
    assert_eq!(connection.get(&path("a")).await.json()["status"], json!({"healthy": false}));
    let body = object(&json!({"name": "a"}), true, "Fine");
    let answer = connection.call("PUT", &path("a"), &[JSON], &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let written = answer.json();
    assert_eq!(written["status"], json!({"healthy": true, "healthyReason": "Fine"}));
    assert_eq!(written["metadata"]["resourceVersion"], version(&fixture, "a"));
    assert_eq!(annotations(&fixture, "a"), (json!("true"), json!("Fine")));
    let secret = fixture.hub.get(SECRETS, NAMESPACE, "a").expect("a Secret");
    assert_eq!(
        (&secret["metadata"]["annotations"]["other"], &secret["data"]["token"]),
        (&json!("stays"), &json!("Y2FuYXJ5LXRva2Vu"))
    );
    for target in [path("a"), format!("{CLUSTERS}/a")] {
        assert_eq!(connection.get(&target).await.json()["status"], written["status"], "{target}");
    }
    assert_eq!(connection.get(CLUSTERS).await.json()["items"][0]["status"], written["status"]);
    let table = connection.call("GET", CLUSTERS, &[TABLE], b"").await.json();
    assert_eq!(table["rows"][0]["cells"][4], "true");
}

#[tokio::test]
async fn without_the_gate_health_is_written_and_not_told() {
    let fixture = Fixture::set([readable("a")]).await;
    let answer = put(&fixture, &path("a"), &object(&json!({"name": "a"}), true, "Fine")).await;
    assert_eq!((answer.status, &answer.json()["status"]), (200, &json!({"healthy": false})));
    assert_eq!(annotations(&fixture, "a"), (json!("true"), json!("Fine")));
}

#[tokio::test]
async fn annotations_are_read_as_go_does_and_a_bad_one_hides_nothing() {
    let fixture = gated([readable("a").annotation(HEALTHY, "T"), readable("b").annotation(HEALTHY, "perhaps")]).await;
    let list = fixture.get(CLUSTERS).await.json();
    assert_eq!(list["items"][0]["status"], json!({"healthy": true}));
    assert_eq!(list["items"][1]["status"]["healthy"], false);
    let reason = list["items"][1]["status"]["healthyReason"].as_str().expect("a reason");
    assert!(reason.contains(HEALTHY), "{reason}");
}

#[tokio::test]
async fn a_watcher_sees_health_change() {
    let fixture = gated([readable("a")]).await;
    let mut watch = fixture.watch(&format!("{CLUSTERS}?watch=true")).await;
    assert_eq!(watch.next_summary().await, "ADDED a");
    put(&fixture, &path("a"), &object(&json!({"name": "a"}), true, "Fine")).await;
    let event = watch.next().await.expect("an event");
    assert_eq!((event.kind.as_str(), &event.object["status"]["healthy"]), ("MODIFIED", &json!(true)));
}

#[tokio::test]
async fn patches_change_what_they_name() {
    let fixture = gated([readable("a").annotation(HEALTHY, "true").annotation(REASON, "Fine")]).await;
    let patch = async |kind: &str, body: Value| {
        let answer = fixture.call("PATCH", &path("a"), &[("content-type", kind)], body.to_string().as_bytes()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()["status"].clone()
    };
    let status = patch("application/merge-patch+json", json!({"status": {"healthyReason": "Better"}})).await;
    assert_eq!(status, json!({"healthy": true, "healthyReason": "Better"}));
    let status = patch("application/strategic-merge-patch+json", json!({"status": {"healthy": false}})).await;
    assert_eq!(status, json!({"healthy": false, "healthyReason": "Better"}));
    let operations = json!([{"op": "replace", "path": "/status/healthy", "value": true}, {"op": "remove", "path": "/status/healthyReason"}]);
    assert_eq!(patch("application/json-patch+json; charset=utf-8", operations).await, json!({"healthy": true}));
    assert_eq!(annotations(&fixture, "a"), (json!("true"), json!("")));
}

#[tokio::test]
async fn nothing_is_written_over_somebody_elses_change() {
    let fixture = gated([readable("a")]).await;
    let old = version(&fixture, "a");
    fixture.hub.put_secret(readable("a").label("x", "y"));
    let message = put(&fixture, &path("a"), &object(&json!({"name": "a", "resourceVersion": old}), true, "")).await;
    assert!(message.status_message(409, "Conflict").contains("the object has been modified"));
    let uid = put(&fixture, &path("a"), &object(&json!({"name": "a", "uid": "another"}), true, "")).await;
    uid.status_message(409, "Conflict");
    let patch = json!({"metadata": {"resourceVersion": old}, "status": {"healthy": true}});
    fixture.call("PATCH", &path("a"), &[MERGE], patch.to_string().as_bytes()).await.status_message(409, "Conflict");
    assert_eq!(annotations(&fixture, "a"), (Value::Null, Value::Null));

    // With the current version, a write in between is reported at once; without one, the report is
    // tried again.
    fixture.hub.fail_next(Call::Write(SECRETS), 1, Fault::Status(409));
    let current = json!({"name": "a", "resourceVersion": version(&fixture, "a")});
    put(&fixture, &path("a"), &object(&current, true, "")).await.status_message(409, "Conflict");
    fixture.hub.fail_next(Call::Write(SECRETS), 5, Fault::Status(409));
    let answer = put(&fixture, &path("a"), &object(&json!({"name": "a"}), true, "")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    fixture.hub.fail(Call::Write(SECRETS), Fault::Status(409));
    put(&fixture, &path("a"), &object(&json!({"name": "a"}), true, "")).await.status_message(409, "Conflict");
}

#[tokio::test]
async fn a_dry_run_changes_nothing() {
    let fixture = gated([readable("a")]).await;
    let before = version(&fixture, "a");
    let body = object(&json!({"name": "a"}), true, "Fine");
    let answer = put(&fixture, &format!("{}?dryRun=All&fieldManager=me%20too", path("a")), &body).await;
    assert_eq!((answer.status, &answer.json()["status"]["healthy"]), (200, &json!(true)));
    assert_eq!(version(&fixture, "a"), before);
    let asked = fixture.asked();
    assert!(asked.contains("dryRun=All") && asked.contains("fieldManager=me%20too"), "{asked}");
    for query in ["dryRun=Some", "dryRun=", "dryRun=All&dryRun=None"] {
        put(&fixture, &format!("{}?{query}", path("a")), &body).await.status_message(400, "BadRequest");
    }
}

#[tokio::test]
async fn bodies_that_make_no_sense_are_refused() {
    let fixture = gated([readable("a")]).await;
    let good = object(&json!({"name": "a"}), true, "");
    for (body, text) in [
        (b"{".to_vec(), "JSON"),
        (object(&json!({}), true, ""), "name must be provided"),
        (object(&json!({"name": "b"}), true, ""), "does not match the name on the URL"),
        (
            json!({"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "a"}}).to_string().into_bytes(),
            "ClusterGateway",
        ),
    ] {
        let message = put(&fixture, &path("a"), &body).await.status_message(400, "BadRequest");
        assert!(message.contains(text), "{message}");
    }
    for kind in ["application/yaml", "application/vnd.kubernetes.protobuf", "application/cbor", "text/plain"] {
        let answer = fixture.call("PUT", &path("a"), &[("content-type", kind)], &good).await;
        answer.status_message(415, "UnsupportedMediaType");
    }
    for kind in ["application/apply-patch+yaml", "application/json"] {
        let answer = fixture.call("PATCH", &path("a"), &[("content-type", kind)], &good).await;
        answer.status_message(415, "UnsupportedMediaType");
    }
    let large = vec![b' '; (3 << 20) + 1];
    put(&fixture, &path("a"), &large).await.status_message(413, "RequestEntityTooLarge");
    let large = json!({"status": {"healthyReason": "x".repeat(64 << 10)}}).to_string();
    let answer = fixture.call("PATCH", &path("a"), &[MERGE], large.as_bytes()).await;
    assert!(answer.status_message(413, "RequestEntityTooLarge").contains("65536"));
    let failing = json!([{"op": "test", "path": "/status/healthy", "value": true}]).to_string();
    let patch = ("content-type", "application/json-patch+json");
    fixture.call("PATCH", &path("a"), &[patch], failing.as_bytes()).await.status_message(422, "Invalid");
    assert_eq!(fixture.hub.calls(Call::Write(SECRETS)), 0);
    // Nothing said about the body means JSON.
    assert_eq!(fixture.call("PUT", &path("a"), &[], &good).await.status, 200);
}

#[tokio::test]
async fn long_bodies_that_do_not_end_turn_away_long_ones_alone() {
    let fixture = gated([readable("a")]).await;
    let short = object(&json!({"name": "a"}), true, "Fine");
    let long = [vec![b' '; 80 << 10], short.clone()].concat();
    assert_eq!(put(&fixture, &path("a"), &long).await.status, 200);
    let connection = fixture.connect(Http::H2).await;
    let mut unfinished = Vec::new();
    for _ in 0..4 {
        let mut upload = connection.upload_beside("PUT", &path("a")).await.expect("sent");
        upload.send(long.clone()).await.expect("the gateway reads");
        unfinished.push(upload);
    }
    let refused = async {
        loop {
            let answer = put(&fixture, &path("a"), &long).await;
            if answer.status != 200 {
                return answer;
            }
        }
    };
    let message = within(WAIT, "a refusal", refused).await.status_message(429, "TooManyRequests");
    assert!(message.contains("retry shortly"), "{message}");
    assert_eq!(put(&fixture, &path("a"), &short).await.status, 200);
    for upload in unfinished {
        assert_eq!(upload.answer().await.expect("an answer").status, 200);
    }
    assert_eq!(put(&fixture, &path("a"), &long).await.status, 200);
}

#[tokio::test]
async fn a_hub_that_writes_slowly_is_not_overrun() {
    let names: Vec<_> = (0..20).map(|number| format!("c{number}")).collect();
    let fixture = gated(names.iter().map(|name| readable(name))).await;
    let gate = Gate::new();
    fixture.hub.fail(Call::Write(SECRETS), Fault::Until(gate.clone()));
    let mut reports = JoinSet::new();
    for name in &names {
        let mut connection = fixture.connect(Http::H2).await;
        let (target, body) = (path(name), object(&json!({"name": name}), true, "Fine"));
        reports.spawn(async move { connection.call("PUT", &target, &[JSON], &body).await.status });
    }
    // Those that get no place are refused after a while.
    for _ in 0..12 {
        let refused = within(WAIT, "a refusal", reports.join_next()).await;
        assert_eq!(refused.expect("a report").expect("an answer"), 429);
    }
    assert_eq!(fixture.hub.calls(Call::Write(SECRETS)), 8);
    gate.open();
    while let Some(written) = within(WAIT, "an answer", reports.join_next()).await {
        assert_eq!(written.expect("an answer"), 200);
    }
}

#[tokio::test]
async fn what_is_no_readable_cluster_has_no_health() {
    let fixture = gated([unreadable("b"), ClusterSecret::new(NAMESPACE, "other").endpoint("https://m")]).await;
    for name in ["absent", "other"] {
        fixture.get(&path(name)).await.status_message(404, "NotFound");
        put(&fixture, &path(name), &object(&json!({"name": name}), true, "")).await.status_message(404, "NotFound");
    }
    let message = put(&fixture, &path("b"), &object(&json!({"name": "b"}), true, "")).await;
    let message = message.status_message(500, "InternalError");
    assert!(message.contains("endpoint") && !message.contains("no such cluster"), "{message}");
    assert_eq!(fixture.hub.calls(Call::Write(SECRETS)), 0);
    fixture.call("DELETE", &path("b"), &[], b"").await.status_message(405, "MethodNotAllowed");
}

#[tokio::test]
async fn a_missing_right_to_write_is_told_as_ours() {
    let fixture = gated([readable("a")]).await;
    fixture.hub.fail_next(Call::Write(SECRETS), 1, Fault::Status(403));
    let answer = put(&fixture, &path("a"), &object(&json!({"name": "a"}), true, "")).await;
    assert!(answer.status_message(500, "InternalError").contains("update on secrets"));
}

#[tokio::test]
async fn without_a_hub_health_is_read_only() {
    let testbed = Testbed::builder().cluster("a", readable("a").annotation(HEALTHY, "true")).arg(GATE).start().await;
    assert_eq!(testbed.get(&path("a")).await.json()["status"]["healthy"], true);
    let mut connection = testbed.connect(Http::H2).await;
    for method in ["PUT", "PATCH"] {
        let body = object(&json!({"name": "a"}), true, "");
        let answer = connection.call(method, &path("a"), &[MERGE], &body).await;
        assert!(answer.status_message(405, "MethodNotAllowed").contains("files"));
    }
}
