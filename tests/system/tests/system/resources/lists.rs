//! Reads of `clustergateways` are reads of the hub's Secrets, with the reader's own parameters.

use system_tests::prelude::*;

use super::{CLUSTERS, Fixture, NAMESPACE, SECRETS, TABLE, names, readable, unreadable};

across_http!(objects_are_their_secrets_without_what_is_secret);

async fn objects_are_their_secrets_without_what_is_secret(http: Http) {
    let fixture = Fixture::set([readable("a"), readable("b").label("tier", "gold")]).await;
    let mut connection = fixture.connect(http).await;
    let secret = fixture.hub.get(SECRETS, NAMESPACE, "a").expect("a Secret");
    let answer = connection.get(&format!("{CLUSTERS}/a")).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
    let object = answer.json();
    for field in ["name", "uid", "resourceVersion", "creationTimestamp"] {
        assert_eq!(object["metadata"][field], secret["metadata"][field], "{field}");
    }
    assert_eq!(object["spec"]["access"]["endpoint"]["const"]["address"], "https://member.example:6443");
    assert_eq!(object["spec"]["access"]["credential"], json!({"type": "ServiceAccountToken"}));
    assert!(!answer.text().contains("canary"));

    let list = connection.get(CLUSTERS).await;
    assert_eq!(names(&list), ["a", "b"]);
    let version: u64 =
        list.json()["metadata"]["resourceVersion"].as_str().expect("a version").parse().expect("a number");
    assert!(version >= secret["metadata"]["resourceVersion"].as_str().expect("a version").parse().expect("a number"));
    assert!(!list.text().contains("canary"));
    let head = connection.call("HEAD", CLUSTERS, &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test]
async fn a_change_is_read_at_once() {
    let fixture = Fixture::set([readable("a")]).await;
    for number in 0..20 {
        let version = fixture.hub.put_secret(readable("a").label("turn", &number.to_string()));
        let object = fixture.get(&format!("{CLUSTERS}/a")).await.json();
        assert_eq!(object["metadata"]["resourceVersion"], version.to_string());
    }
}

#[tokio::test]
async fn pages_selectors_and_versions_are_the_hubs() {
    let gold = |name| readable(name).label("tier", "gold");
    let fixture = Fixture::set([gold("a"), readable("b"), gold("c"), gold("d")]).await;
    let page = fixture.get(&format!("{CLUSTERS}?limit=2&labelSelector=tier%3Dgold")).await;
    assert_eq!(names(&page), ["a", "c"]);
    let next = page.json()["metadata"]["continue"].as_str().expect("another page").to_owned();
    let next = next.replace('/', "%2F");
    let page = fixture.get(&format!("{CLUSTERS}?limit=2&labelSelector=tier%3Dgold&continue={next}")).await;
    assert_eq!((names(&page), page.json()["metadata"].get("continue").cloned()), (vec!["d".to_owned()], None));

    assert_eq!(names(&fixture.get(&format!("{CLUSTERS}?fieldSelector=metadata.name%3Db")).await), ["b"]);
    let nowhere = fixture.get(&format!("{CLUSTERS}?fieldSelector=metadata.namespace%3D{NAMESPACE}")).await;
    assert!(names(&nowhere).is_empty() && nowhere.json()["metadata"]["resourceVersion"].is_string());

    fixture.get(&format!("{CLUSTERS}?resourceVersion=1001&resourceVersionMatch=Exact&timeoutSeconds=9")).await;
    let asked = fixture.asked();
    for part in ["resourceVersion=1001", "resourceVersionMatch=Exact", "timeoutSeconds=9"] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
}

#[tokio::test]
async fn what_is_no_readable_cluster_is_left_out_or_says_why() {
    let unlabelled = ClusterSecret::new(NAMESPACE, "other").endpoint("https://m").data("token", "t");
    let fixture = Fixture::set([readable("a"), unreadable("b"), unlabelled]).await;
    assert_eq!(names(&fixture.get(CLUSTERS).await), ["a"]);
    let message = fixture.get(&format!("{CLUSTERS}/b")).await.status_message(500, "InternalError");
    assert!(message.contains("cluster b") && message.contains("endpoint"), "{message}");
    assert!(!message.contains("canary") && !message.contains("no such cluster"), "{message}");
    for name in ["other", "absent"] {
        let answer = fixture.get(&format!("{CLUSTERS}/{name}")).await;
        let expected = format!("clustergateways.cluster.core.oam.dev \"{name}\" not found");
        assert_eq!(answer.status_message(404, "NotFound"), expected);
        assert_eq!(answer.json()["details"]["kind"], "clustergateways");
    }
}

#[tokio::test]
async fn tables_and_bare_metadata() {
    let fixture = Fixture::set([readable("a"), unreadable("b")]).await;
    let mut connection = fixture.connect(Http::H2).await;
    let answer = connection.call("GET", &format!("{CLUSTERS}?limit=500"), &[TABLE], b"").await;
    let table = answer.json();
    assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
    assert_eq!(table["rows"][0]["cells"], json!(["a", "", "ServiceAccountToken", "Const", "Unknown"]));
    assert_eq!(
        (table["rows"].as_array().map(Vec::len), table["rows"][0]["object"]["kind"].as_str()),
        (Some(1), Some("PartialObjectMetadata"))
    );
    let accept = ("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io");
    let metadata = connection.call("GET", CLUSTERS, &[accept], b"").await.json();
    assert_eq!(
        (&metadata["kind"], metadata["items"].as_array().map(Vec::len)),
        (&json!("PartialObjectMetadataList"), Some(1))
    );
    let refused = connection.call("GET", CLUSTERS, &[("accept", "text/html")], b"").await;
    refused.status_message(406, "NotAcceptable");
}

#[tokio::test]
async fn what_cannot_be_meant_never_reaches_the_hub() {
    let fixture = Fixture::set([readable("a")]).await;
    let before = (fixture.hub.calls(Call::List(SECRETS)), fixture.hub.calls(Call::Watch(SECRETS)));
    for (query, code, reason) in [
        ("labelSelector=a%20b", 400, "BadRequest"),
        ("fieldSelector=spec.provider%3Dx", 400, "BadRequest"),
        ("limit=many", 400, "BadRequest"),
        ("resourceVersion=abc", 400, "BadRequest"),
        ("includeObject=Some", 400, "BadRequest"),
        ("sendInitialEvents=true", 422, "Invalid"),
        ("resourceVersionMatch=Exact", 422, "Invalid"),
        ("watch=true&sendInitialEvents=true", 422, "Invalid"),
        ("watch=true&resourceVersion=5&resourceVersionMatch=NotOlderThan", 422, "Invalid"),
        ("watch=true&fieldSelector=status.healthy%3Dtrue", 400, "BadRequest"),
    ] {
        let answer = fixture.get(&format!("{CLUSTERS}?{query}")).await;
        assert_eq!(answer.status, code, "{query}: {}", answer.text());
        answer.status_message(code, reason);
    }
    assert_eq!((fixture.hub.calls(Call::List(SECRETS)), fixture.hub.calls(Call::Watch(SECRETS))), before);
}
