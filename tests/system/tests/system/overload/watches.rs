//! Watches of objects that the hub keeps: each takes a place there.

use system_tests::Streamed;
use system_tests::prelude::*;

use super::Fixture;

const CLUSTERS: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways?watch=true";
const VIRTUAL: &str = "/apis/cluster.core.oam.dev/v1alpha1/virtualclusters?watch=true";
/// Watches that one user may have open.
const MOST: usize = 128;
/// As many as the server takes on one connection, and less.
const ON_A_CONNECTION: usize = 64;

#[tokio::test]
async fn one_reader_cannot_take_the_watches_of_all() {
    one_cannot_take_all(["alice", "alice", "alice"], "bob").await;
}

#[tokio::test]
async fn the_service_accounts_of_one_namespace_cannot_either() {
    let account = |name| format!("system:serviceaccount:tenant:{name}");
    let [one, two, three] = ["one", "two", "three"].map(account);
    one_cannot_take_all([&one, &two, &three], "system:serviceaccount:other:one").await;
}

/// Those of `readers` who count together have the watches of one.
async fn one_cannot_take_all(readers: [&str; 3], other: &str) {
    let fixture = Fixture::with(&[]).await;
    for user in readers.iter().chain([&other]) {
        fixture.hub.add_token(user, TokenUser::new(user, &[]));
    }
    let mut connections = Vec::new();
    let mut open: Vec<Streamed<'_>> = Vec::new();
    for reader in &readers[..MOST / ON_A_CONNECTION] {
        let connection = fixture.connect(Http::H2, reader).await;
        for _ in 0..ON_A_CONNECTION {
            let watch = connection.open_beside("GET", CLUSTERS).await.expect("a head");
            assert_eq!(watch.status, 200);
            open.push(watch);
        }
        connections.push(connection);
    }
    let mut connection = fixture.connect(Http::H2, readers[2]).await;
    for target in [CLUSTERS, VIRTUAL] {
        let answer = connection.get(target).await;
        let message = answer.status_message(429, "TooManyRequests");
        assert!(message.starts_with("too many watches open: this gateway serves 128 per user"), "{message}");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let metrics = fixture.connect(Http::H2, "root").await.get("/metrics").await.text();
    assert!(metrics.contains("cluster_gateway_requests_rejected_total{reason=\"watches_user\"} 2"), "{metrics}");
    let another = fixture.connect(Http::H2, other).await;
    assert_eq!(another.open_beside("GET", CLUSTERS).await.expect("a head").status, 200);
    open.pop();
    let is_open = async || connection.open_beside("GET", CLUSTERS).await.expect("a head").status == 200;
    becomes(WAIT, "room again", is_open).await;
}
