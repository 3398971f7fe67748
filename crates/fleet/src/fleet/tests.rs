use std::sync::Arc;

use http::Request;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kit::member::{FakeMember, MemberOptions, Recorded, Reply};
use kube::api::{Api, ListParams, LogParams, Patch, PatchParams, WatchEvent, WatchParams};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::failure::Kind;

const PREFIX: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways";

/// A scripted server in the hub's place, and a fleet for it.
async fn hub() -> (FakeMember, Fleet) {
    let server = FakeMember::start(MemberOptions::default()).await;
    let fleet = Fleet::try_from(config(&server)).unwrap();
    (server, fleet)
}

fn config(server: &FakeMember) -> Config {
    let mut config = Config::new(server.url().parse().unwrap());
    config.root_cert = Some(vec![server.authority().certificate_der().to_vec()]);
    config
}

fn name(text: &str) -> ClusterName {
    ClusterName::parse(text).unwrap()
}

fn maps(fleet: &Fleet, cluster: &str) -> Api<ConfigMap> {
    Api::namespaced(fleet.client(&name(cluster)), "ns")
}

fn map_list() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "1"}, "items": []})
}

fn page(names: &[&str], next: &str) -> Reply {
    let items: Vec<_> = names.iter().map(|name| json!({"metadata": {"name": name}})).collect();
    Reply::json(200, &json!({"metadata": {"continue": next, "resourceVersion": "7"}, "items": items}))
}

#[tokio::test]
async fn all_clients_share_the_connections_of_one() {
    let (server, fleet) = hub().await;
    server.on_any(|_| Reply::json(200, &map_list()));
    for number in 0..50 {
        let cluster = format!("c-{number}");
        maps(&fleet, &cluster).list(&ListParams::default()).await.unwrap();
        assert_eq!(
            server.next_request().await.path(),
            format!("{PREFIX}/{cluster}/proxy/api/v1/namespaces/ns/configmaps")
        );
    }
    assert_eq!(server.connections_accepted(), 1);
}

#[tokio::test]
async fn each_request_says_what_kube_and_its_configuration_say() {
    let server = FakeMember::start(MemberOptions::default()).await;
    let mut config = config(&server);
    config.auth_info.token = Some("sesame".to_owned().into());
    config.auth_info.impersonate = Some("jane".to_owned());
    let fleet = Fleet::try_from(config).unwrap();
    server.on_any(|_| Reply::json(200, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})));
    let patch = Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}}));
    maps(&fleet, "berlin").patch("m", &PatchParams::apply("my manager/1").force(), &patch).await.unwrap();
    let request = server.next_request().await;
    assert_eq!(request.path(), format!("{PREFIX}/berlin/proxy/api/v1/namespaces/ns/configmaps/m"));
    let query = request.query().unwrap_or_default();
    assert!(query.contains("fieldManager=my+manager%2F1") && query.contains("force=true"), "{query}");
    assert_eq!(
        (request.header("authorization"), request.header("impersonate-user")),
        (Some("Bearer sesame"), Some("jane"))
    );
    assert_eq!(serde_json::from_slice::<Value>(&request.body()).unwrap()["data"], json!({"a": "b"}));
}

#[tokio::test]
async fn no_path_leads_out_of_its_cluster() {
    let (server, fleet) = hub().await;
    let client = fleet.client(&name("berlin"));
    for path in ["/../munich/proxy/version", "/a/%2e%2e/b", "/..", "*"] {
        let error = client.send(Request::get(path).body(Body::empty()).unwrap()).await.unwrap_err();
        let failure = Failure::from(error);
        assert_eq!(failure.kind, Kind::Own, "{path}: {failure}");
    }
    assert_eq!(server.request_count(), 0);
    server.on_any(|_| Reply::json(200, &json!({})));
    // A target that may pass keeps its bytes.
    client.send(Request::get("/a%2fb//c?d=..&e=%20").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(server.next_request().await.target, format!("{PREFIX}/berlin/proxy/a%2fb//c?d=..&e=%20"));
}

#[tokio::test]
async fn watches_and_logs_come_as_they_are_sent() {
    let (server, fleet) = hub().await;
    let mut watches = server.streams(&format!("{PREFIX}/berlin/proxy/api/v1/namespaces/ns/configmaps"));
    let mut logs = server.streams(&format!("{PREFIX}/munich/proxy/api/v1/namespaces/ns/pods/p/log"));
    let mut events = Box::pin(maps(&fleet, "berlin").watch(&WatchParams::default(), "0").await.unwrap());
    let (_, sender) = watches.next().await;
    let pods: Api<Pod> = Api::namespaced(fleet.client(&name("munich")), "ns");
    let mut log = Box::pin(pods.log_stream("p", &LogParams { follow: true, ..LogParams::default() }).await.unwrap());
    let (_, line) = logs.next().await;
    line.send("hello\n").await;
    let mut read = [0; 6];
    futures_util::AsyncReadExt::read_exact(&mut log, &mut read).await.unwrap();
    assert_eq!(&read, b"hello\n");
    let event =
        json!({"type": "ADDED", "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}});
    sender.send(format!("{event}\n")).await;
    let event = futures_util::StreamExt::next(&mut events).await.unwrap().unwrap();
    assert!(matches!(event, WatchEvent::Added(map) if map.metadata.name.as_deref() == Some("m")));
}

/// As `kube::Client::connect` does for exec, attach and port-forward.
#[tokio::test]
async fn an_upgraded_connection_becomes_the_callers() {
    let (server, fleet) = hub().await;
    server.on(&format!("{PREFIX}/berlin/proxy/exec"), |_| Reply::upgrade_echo("websocket"));
    let request = Request::get("/exec").header("connection", "Upgrade").header("upgrade", "websocket");
    let response = fleet.client(&name("berlin")).send(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 101);
    let mut stream = hyper_util::rt::TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    stream.write_all(b"ping").await.unwrap();
    let mut read = [0; 4];
    stream.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"ping");
}

#[tokio::test]
async fn what_may_be_repeated_is_known_of_errors_too() {
    let (server, fleet) = hub().await;
    server.on_any(|_| {
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "not yet", "code": 503,
            "details": {"causes": [{"reason": "Hub"}]}});
        Reply::full(503, &[("content-type", "application/json"), ("retry-after", "2")], status.to_string())
    });
    let error = maps(&fleet, "berlin").list(&ListParams::default()).await.unwrap_err();
    let failure = Failure::from(error);
    assert_eq!((failure.side, failure.retry_after), (Some(api::side::Side::Hub), Some(Duration::from_secs(2))));
    assert_eq!(server.request_count(), 1, "repeated without being asked to");
}

#[tokio::test]
async fn a_hub_that_is_away_is_told_from_everything_behind_it() {
    let (server, fleet) = hub().await;
    drop(server);
    let failure = Failure::from(maps(&fleet, "berlin").list(&ListParams::default()).await.unwrap_err());
    assert_eq!(
        (failure.side, failure.kind, failure.is_retryable()),
        (Some(api::side::Side::Hub), Kind::Unanswered, true)
    );
}

#[tokio::test]
async fn clusters_are_read_page_by_page() {
    let (server, fleet) = hub().await;
    server.on(PREFIX, |request: &Recorded| match request.query().unwrap_or_default() {
        query if query.contains("continue=t%2B1") => page(&["c"], ""),
        // A page of clusters that the gateway cannot use.
        query if query.contains("continue=t0") => page(&[], "t+1"),
        _ => page(&["a", "b"], "t0"),
    });
    let clusters = fleet.clusters("env in (prod)").await.unwrap();
    let names: Vec<_> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    for request in server.requests() {
        let query = request.query().unwrap_or_default().to_owned();
        assert!(query.contains("limit=500") && query.contains("labelSelector=env%20in%20%28prod%29"), "{query}");
    }
}

/// Answers like the Go cluster-gateway: it ignores the selector, and its lists have no version.
#[tokio::test]
async fn a_list_that_nobody_selected_from_is_narrowed_by_virtual_clusters() {
    let (server, fleet) = hub().await;
    let items = json!([{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]);
    server.on(PREFIX, move |_: &Recorded| Reply::json(200, &json!({"metadata": {}, "items": items})));
    let virtual_clusters = PREFIX.replace("clustergateways", "virtualclusters");
    server.on(&virtual_clusters, |request: &Recorded| {
        let known = ["labelSelector=env%3Dprod", "labelSelector=env%20in%20%28a%2Ccluster%2Ecore%2Eoam%2Edev%29"];
        assert!(request.query().is_some_and(|query| known.contains(&query)), "{:?}", request.query());
        let labelled_by_others = json!({"metadata": {"name": "a"}, "spec": {"credentialType": "ManagedCluster"}});
        let registered = json!({"metadata": {"name": "b"}, "spec": {"credentialType": "X509Certificate"}});
        Reply::json(200, &json!({"items": [{"metadata": {"name": "local"}}, labelled_by_others, registered]}))
    });
    let names = |clusters: Vec<Cluster>| clusters.iter().map(|cluster| cluster.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(fleet.clusters("env=prod").await.unwrap()), ["b"]);
    assert_eq!(names(fleet.clusters("").await.unwrap()), ["a", "b"]);
    // Selectors with which the Go cluster-gateway would match all clusters.
    for selector in ["env=prod, cluster.core.oam.dev/cluster-alias!=b", "!cluster.core.oam.dev/cluster-alias"] {
        let refused = fleet.clusters(selector).await.unwrap_err();
        assert!(refused.is_unselectable() && refused.next_step().contains("name the clusters"), "{refused}");
    }
    let value = fleet.clusters("env in (a,cluster.core.oam.dev)").await;
    assert!(value.is_ok(), "{value:?}");
    // On an error, no clusters rather than all.
    server.on(&virtual_clusters, |_: &Recorded| Reply::status(403, "no"));
    assert_eq!(fleet.clusters("env=prod").await.unwrap_err().kind, Kind::Answered(403));
}

#[tokio::test]
async fn a_page_that_does_not_come_is_not_waited_for() {
    let (server, fleet) = hub().await;
    let gate = kit::wait::Gate::default();
    let closed = gate.clone();
    server.on(PREFIX, move |_: &Recorded| page(&["a"], "").after(&closed));
    let within = Duration::from_millis(20);
    let failure = fleet.clone().listing_within(within).clusters("").await.unwrap_err();
    assert_eq!((failure.kind, &*failure.message), (Kind::Late, "no answer within 20ms"));
    gate.open();
    assert_eq!(fleet.clusters("").await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_list_that_expires_on_the_way_is_read_anew_once() {
    let (server, fleet) = hub().await;
    let expired =
        || Reply::json(410, &json!({"kind": "Status", "message": "too old", "reason": "Expired", "code": 410}));
    let left = Arc::new(std::sync::atomic::AtomicUsize::new(1));
    let count = Arc::clone(&left);
    server.on(PREFIX, move |request: &Recorded| {
        if !request.query().unwrap_or_default().contains("continue=") {
            return page(&["a"], "t");
        }
        let again =
            count.fetch_update(std::sync::atomic::Ordering::Relaxed, std::sync::atomic::Ordering::Relaxed, |left| {
                left.checked_sub(1)
            });
        if again.is_ok() { expired() } else { page(&["b"], "") }
    });
    let names = |clusters: Vec<Cluster>| clusters.iter().map(|cluster| cluster.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(fleet.clusters("").await.unwrap()), ["a", "b"]);
    left.store(2, std::sync::atomic::Ordering::Relaxed);
    assert!(fleet.clusters("").await.unwrap_err().is_expired());
}

#[tokio::test]
async fn each_cluster_is_asked_through_a_client_of_its_own() {
    let (server, fleet) = hub().await;
    server.on_any(|request| match request.path() {
        path if path.contains("/b/") => Reply::status(503, "away"),
        _ => Reply::json(200, &map_list()),
    });
    let limits = Limits { at_once: 1, ..Limits::default() };
    let all = fleet.each(["a", "b", "c"].map(name), limits, |_, client| async move {
        Api::<ConfigMap>::namespaced(client, "ns").list(&ListParams::default()).await
    });
    let outcomes = all.in_order(|_, _| ()).await;
    let failed: Vec<_> = outcomes.iter().map(|outcome| outcome.result.is_err()).collect();
    assert_eq!(failed, [false, true, false]);
    assert_eq!(outcomes[1].result.as_ref().unwrap_err().cluster, Some(name("b")));
    assert_eq!(server.connections_accepted(), 1);
}
