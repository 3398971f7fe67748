//! Watches of what the hub keeps: each takes a place there.

use kit::wait::{WAIT, becomes};
use system_tests::{Http, Streamed};

use super::Fixture;

const CLUSTERS: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways?watch=true";
const VIRTUAL: &str = "/apis/cluster.core.oam.dev/v1alpha1/virtualclusters?watch=true";
/// What one user may have open.
const MOST: usize = 128;
/// As many as the server takes on one connection, and less.
const ON_A_CONNECTION: usize = 64;

#[tokio::test]
async fn one_reader_cannot_take_the_watches_of_all() {
    let fixture = Fixture::with(&[]).await;
    let mut alices = Vec::new();
    let mut open: Vec<Streamed<'_>> = Vec::new();
    for _ in 0..MOST / ON_A_CONNECTION {
        let alice = fixture.connect(Http::H2, "alice").await;
        for _ in 0..ON_A_CONNECTION {
            let watch = alice.open_beside("GET", CLUSTERS).await.expect("a head");
            assert_eq!(watch.status, 200);
            open.push(watch);
        }
        alices.push(alice);
    }
    let mut alice = fixture.connect(Http::H2, "alice").await;
    for target in [CLUSTERS, VIRTUAL] {
        let answer = alice.get(target).await;
        let message = answer.status_message(429, "TooManyRequests");
        assert!(message.starts_with("too many watches open: this gateway serves 128 per user"), "{message}");
        assert_eq!(answer.header("retry-after"), Some("1"));
    }
    let metrics = fixture.connect(Http::H2, "root").await.get("/metrics").await.text();
    assert!(metrics.contains("cluster_gateway_requests_rejected_total{reason=\"watches_user\"} 2"), "{metrics}");
    let bob = fixture.connect(Http::H2, "bob").await;
    assert_eq!(bob.open_beside("GET", CLUSTERS).await.expect("a head").status, 200);
    open.pop();
    let is_open = async || alice.open_beside("GET", CLUSTERS).await.expect("a head").status == 200;
    becomes(WAIT, "room again", is_open).await;
}
