//! The hub answers as a real one would, as far as a gateway can tell.

use http::Method;
use serde_json::json;

use super::*;
use crate::client::{Client, H2Body, H2Connection, H2Response};
use crate::pki::Trust;
use crate::wait::Gate;

const SECRETS: &str = "/api/v1/namespaces/vela-system/secrets";
const CLUSTERS: &str = "labelSelector=cluster.core.oam.dev%2Fcluster-credential-type";
const BEARER: (&str, &str) = ("authorization", "Bearer gateway-hub-token");

/// A watch being read.
struct Events(H2Body, Vec<u8>);

impl Events {
    async fn next(&mut self) -> Option<(String, Value)> {
        let line = self.0.line(&mut self.1).await?.expect("a whole watch");
        let event: Value = serde_json::from_str(&line).expect("an event");
        Some((event["type"].as_str().expect("a type").to_owned(), event["object"].clone()))
    }

    async fn named(&mut self) -> (String, String) {
        let (kind, object) = self.next().await.expect("an event");
        (kind, object["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    }
}

async fn connect(hub: &FakeHub) -> H2Connection {
    Client::new(hub.address(), Trust::Authority(&hub.authority), None).h2().await.expect("h2")
}

async fn get(client: &H2Connection, target: &str) -> H2Response {
    client.get(target, &[BEARER]).await.expect("an answer")
}

async fn post(client: &H2Connection, target: &str, body: Value) -> (u16, Value) {
    let answer = client.call(Method::POST, target, &[BEARER], body.to_string()).await.expect("an answer");
    (answer.status(), answer.json().await)
}

async fn watch(client: &H2Connection, target: &str) -> Events {
    let answer = get(client, target).await;
    assert_eq!(answer.status(), 200);
    Events(answer.body, Vec::new())
}

fn secret(name: &str) -> ClusterSecret {
    ClusterSecret::new("vela-system", name).endpoint("https://member").token("secret")
}

fn pair(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_list_is_filtered_and_paged_and_a_watch_goes_on_from_it() {
    let hub = FakeHub::start().await;
    let client = connect(&hub).await;
    for name in ["a", "b", "c"] {
        hub.put_secret(secret(name));
    }
    hub.put(Resource::Secrets, json!({"metadata": {"namespace": "vela-system", "name": "unrelated"}}));
    hub.put_secret(ClusterSecret::new("elsewhere", "d").token("t"));

    let page = get(&client, &format!("{SECRETS}?{CLUSTERS}&limit=2")).await.json().await;
    let (version, next) = (page["metadata"]["resourceVersion"].clone(), page["metadata"]["continue"].clone());
    assert_eq!((&page["kind"], page["items"].as_array().expect("items").len()), (&json!("SecretList"), 2));
    let next = next.as_str().expect("another page");
    let page = get(&client, &format!("{SECRETS}?{CLUSTERS}&limit=2&continue={next}")).await.json().await;
    assert_eq!(page["items"][0]["metadata"]["name"], "c");
    assert_eq!(page["metadata"].get("continue"), None);

    let version = version.as_str().expect("a version");
    let target = format!("{SECRETS}?watch=true&{CLUSTERS}&allowWatchBookmarks=true&resourceVersion={version}");
    let mut events = watch(&client, &target).await;
    hub.watching(Resource::Secrets, 1).await;
    hub.put_secret(secret("a").label("x", "y"));
    hub.put_secret(secret("e"));
    hub.put(Resource::Secrets, json!({"metadata": {"namespace": "vela-system", "name": "b"}}));
    assert!(hub.delete_secret("vela-system", "c") && !hub.delete_secret("vela-system", "c"));
    hub.put(Resource::Secrets, json!({"metadata": {"namespace": "vela-system", "name": "unrelated"}, "type": "x"}));
    assert_eq!(events.named().await, pair("MODIFIED", "a"));
    assert_eq!(events.named().await, pair("ADDED", "e"));
    assert_eq!(events.named().await, pair("DELETED", "b"), "it left the selection");
    assert_eq!(events.named().await, pair("DELETED", "c"));
    hub.bookmark();
    let (kind, object) = events.next().await.expect("a bookmark");
    let current = get(&client, SECRETS).await.json().await["metadata"]["resourceVersion"].clone();
    assert_eq!((kind.as_str(), &object["metadata"]["resourceVersion"]), ("BOOKMARK", &current));
    hub.end_watches();
    assert_eq!(events.next().await, None);
    hub.watching(Resource::Secrets, 0).await;
}

#[tokio::test]
async fn a_watch_can_begin_with_what_there_is() {
    let hub = FakeHub::start().await;
    let client = connect(&hub).await;
    hub.put_secret(secret("a"));
    let mut events = watch(&client, &format!("{SECRETS}?watch=true")).await;
    assert_eq!(events.named().await, pair("ADDED", "a"));

    let streaming = "watch=true&allowWatchBookmarks=true&sendInitialEvents=true";
    let target = format!("{SECRETS}?{streaming}&resourceVersionMatch=NotOlderThan&resourceVersion=0");
    let mut events = watch(&client, &target).await;
    assert_eq!(events.named().await, pair("ADDED", "a"));
    let (kind, object) = events.next().await.expect("a bookmark");
    let end = &object["metadata"]["annotations"]["k8s.io/initial-events-end"];
    assert_eq!((kind.as_str(), end), ("BOOKMARK", &json!("true")));
    hub.put_secret(secret("b"));
    assert_eq!(events.named().await, pair("ADDED", "b"));
    assert_eq!(get(&client, &format!("{SECRETS}?{streaming}")).await.status(), 422, "without resourceVersionMatch");
}

#[tokio::test]
async fn a_watch_from_a_forgotten_version_expires_and_a_broken_one_breaks() {
    let hub = FakeHub::start().await;
    let client = connect(&hub).await;
    let version = hub.put_secret(secret("a"));
    hub.compact();
    let mut events = watch(&client, &format!("{SECRETS}?watch=true&resourceVersion={version}")).await;
    let (kind, status) = events.next().await.expect("an error");
    assert_eq!((kind.as_str(), &status["code"], &status["reason"]), ("ERROR", &json!(410), &json!("Expired")));
    assert_eq!(events.next().await, None);

    let mut events = watch(&client, &format!("{SECRETS}?watch=true")).await;
    assert_eq!(events.named().await, pair("ADDED", "a"));
    hub.break_watches();
    events.0.chunk().await.expect("not a proper end").expect_err("broken");

    let mut events = watch(&client, &format!("{SECRETS}?watch=true&timeoutSeconds=0")).await;
    while events.next().await.is_some() {}
}

#[tokio::test]
async fn the_authentication_config_map_is_reached_by_its_name_only() {
    let hub = FakeHub::start().await;
    let client = connect(&hub).await;
    let maps = "/api/v1/namespaces/kube-system/configmaps";
    assert_eq!(get(&client, maps).await.status(), 403);
    let by_name = format!("{maps}?fieldSelector=metadata.name%3Dextension-apiserver-authentication");
    let list = get(&client, &by_name).await.json().await;
    let data = &list["items"][0]["data"];
    assert_eq!(data["requestheader-allowed-names"], r#"["front-proxy-client"]"#);
    assert_eq!(data["requestheader-client-ca-file"], hub.front_proxy().root_pem());

    let version = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    let mut events = watch(&client, &format!("{by_name}&watch=1&resourceVersion={version}")).await;
    hub.change_authentication(|data| {
        data.insert("requestheader-allowed-names".to_owned(), "[]".to_owned());
        data.remove("requestheader-uid-headers");
    });
    let (kind, object) = events.next().await.expect("an event");
    assert_eq!((kind.as_str(), &object["data"]["requestheader-allowed-names"]), ("MODIFIED", &json!("[]")));
    assert_eq!(object["data"].get("requestheader-uid-headers"), None);
    assert!(hub.delete_authentication());
    assert_eq!(events.next().await.expect("an event").0, "DELETED");
    let one = get(&client, &format!("{maps}/extension-apiserver-authentication")).await;
    assert_eq!((one.status(), hub.calls(Call::Get(Resource::ConfigMaps))), (404, 1));
}

#[tokio::test]
async fn reviews_answer_what_the_test_decided_and_are_remembered() {
    let hub = FakeHub::start().await;
    let client = connect(&hub).await;
    hub.add_token("good", TokenUser { uid: "7".to_owned(), ..TokenUser::new("alice", &["dev"]) });
    let target = "/apis/authentication.k8s.io/v1/tokenreviews";
    let (status, review) = post(&client, target, json!({"spec": {"token": "good", "audiences": ["a"]}})).await;
    assert_eq!(status, 201);
    let user = json!({"username": "alice", "uid": "7", "groups": ["dev"]});
    assert_eq!(review["status"], json!({"authenticated": true, "user": user, "audiences": ["a"]}));
    let (status, review) = post(&client, target, json!({"spec": {"token": "bad"}})).await;
    assert_eq!((status, review["status"].get("authenticated")), (201, None), "201 does not mean authenticated");
    assert_eq!(hub.token_reviews()[1], json!({"token": "bad"}));

    let target = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let ask = |user: &str| json!({"spec": {"user": user, "nonResourceAttributes": {"path": "/", "verb": "get"}}});
    assert_eq!(post(&client, target, ask("alice")).await.1["status"], json!({"allowed": false}));
    hub.on_access(|spec| match spec["user"].as_str() {
        Some("alice") => Decision::allow(),
        Some("bob") => Decision::no_opinion("no rule"),
        _ => Decision::deny("banned"),
    });
    assert_eq!(post(&client, target, ask("alice")).await.1["status"], json!({"allowed": true}));
    assert_eq!(post(&client, target, ask("bob")).await.1["status"], json!({"allowed": false, "reason": "no rule"}));
    let denied = json!({"allowed": false, "denied": true, "reason": "banned"});
    assert_eq!(post(&client, target, ask("eve")).await.1["status"], denied);
    assert_eq!((hub.calls(Call::AccessReview), hub.access_reviews().len()), (4, 4));
}

#[tokio::test]
async fn calls_fail_as_ordered_and_only_those() {
    let hub = FakeHub::start().await;
    let client = connect(&hub).await;
    let list = Call::List(Resource::Secrets);
    hub.fail_next(list, 1, Fault::Status(500));
    let failed = get(&client, SECRETS).await;
    assert_eq!(failed.json().await["reason"], "InternalError");
    assert_eq!(get(&client, SECRETS).await.status(), 200);

    hub.fail(list, Fault::Hang);
    let mut hanging = client.send(Method::GET, SECRETS, &[BEARER], true).await.expect("sent");
    hub.called(list, 3).await;
    let answer = tokio::time::timeout(std::time::Duration::from_millis(100), hanging.response_unbounded()).await;
    assert!(answer.is_err());
    let gate = Gate::new();
    hub.fail(list, Fault::Until(gate.clone()));
    let waiting = client.send(Method::GET, SECRETS, &[BEARER], true).await.expect("sent");
    hub.called(list, 4).await;
    gate.open();
    assert_eq!(waiting.response().await.expect("an answer").status(), 200);
    hub.fail(list, Fault::Garbage);
    assert_eq!(get(&client, SECRETS).await.text().await.expect("whole"), "<html>");
    hub.heal(list);
    assert_eq!(get(&client, "/version").await.json().await["major"], "1");
    assert_eq!(hub.requests().last().map(String::as_str), Some("GET /version"));
}

#[tokio::test]
async fn strangers_are_unauthorized_and_the_kubeconfig_is_not_a_stranger() {
    let hub = FakeHub::start().await;
    let client = connect(&hub).await;
    for headers in [&[][..], &[("authorization", "Bearer other")]] {
        let answer = client.get(SECRETS, headers).await.expect("an answer");
        assert_eq!(answer.json().await["reason"], "Unauthorized");
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = hub.write_kubeconfig(directory.path()).expect("written");
    let text = std::fs::read_to_string(path).expect("readable");
    assert!(text.contains(&format!("server: {}", hub.url())) && text.contains(hub.token()), "{text}");
}

#[tokio::test]
async fn objects_can_be_written_with_the_checks_of_a_real_hub() {
    let hub = FakeHub::start().await;
    let client = connect(&hub).await;
    let (status, created) =
        post(&client, SECRETS, json!({"metadata": {"name": "n"}, "data": {"a": "MQ==", "b": "Mg=="}})).await;
    assert_eq!((status, &created["metadata"]["namespace"]), (201, &json!("vela-system")));
    assert_eq!(post(&client, SECRETS, json!({"metadata": {"name": "n"}})).await.0, 409);

    let one = format!("{SECRETS}/n");
    let patch = json!({"data": {"a": null, "c": "Mw=="}}).to_string();
    let answer = client.call(Method::PATCH, &one, &[BEARER], patch).await.expect("an answer");
    assert_eq!(answer.json().await["data"], json!({"b": "Mg==", "c": "Mw=="}));
    let answer = client.call(Method::PUT, &one, &[BEARER], created.to_string()).await.expect("an answer");
    assert_eq!(answer.status(), 409, "an outdated resourceVersion");
    let answer = client.call(Method::DELETE, &one, &[BEARER], "").await.expect("an answer");
    assert_eq!((answer.status(), hub.get(Resource::Secrets, "vela-system", "n")), (200, None));

    hub.put(Resource::ApiServices, json!({"metadata": {"name": "v1.group"}}));
    let answer = get(&client, "/apis/apiregistration.k8s.io/v1/apiservices/v1.group").await;
    assert_eq!(answer.json().await["kind"], "APIService");
    assert_eq!(get(&client, "/api/v1/pods").await.status(), 404);
}

#[tokio::test]
async fn discovery_names_the_groups_there_are() {
    let hub = FakeHub::start().await;
    let client = connect(&hub).await;
    let groups = async || {
        let list = get(&client, "/apis").await.json().await;
        assert_eq!(list["kind"], "APIGroupList");
        let groups = list["groups"].as_array().expect("groups");
        groups.iter().map(|group| group["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    let built_in =
        ["apiregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "rbac.authorization.k8s.io"];
    assert_eq!(groups().await, built_in);
    hub.install(Resource::ManagedClusters);
    assert_eq!(groups().await[3..], ["cluster.open-cluster-management.io", "rbac.authorization.k8s.io"]);
    hub.uninstall(Resource::ManagedClusters);
    assert_eq!(groups().await, built_in);
}
