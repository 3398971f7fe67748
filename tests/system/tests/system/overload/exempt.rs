//! Users that are never refused.

use system_tests::{CLUSTER, Http, proxied};

use super::{FAST, Fixture, assert_too_many};

const TIGHT: &[&str] = &["--max-requests-per-cluster=1", "--max-requests-per-user=1"];

#[tokio::test]
async fn masters_and_probes_get_through() {
    let fixture = Fixture::with(TIGHT).await;
    let _held = fixture.occupy("alice", 1).await;
    let mut alice = fixture.connect(Http::H2, "alice").await;
    assert_too_many(&alice.get(&proxied(CLUSTER, FAST)).await, "--max-requests-per-user");
    for probe in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(alice.get(probe).await.status, 200, "{probe}");
    }
    let mut root = fixture.connect(Http::H2, "root").await;
    assert_eq!(root.get(&proxied(CLUSTER, FAST)).await.status, 200);
}

#[tokio::test]
async fn masters_take_no_room_from_others() {
    let fixture = Fixture::with(TIGHT).await;
    let _held = fixture.occupy("root", 3).await;
    let mut bob = fixture.connect(Http::H2, "bob").await;
    assert_eq!(bob.get(&proxied(CLUSTER, FAST)).await.status, 200);
}

#[tokio::test]
async fn zero_is_no_limit() {
    let fixture = Fixture::with(&["--max-requests-per-cluster=0", "--max-requests-per-user=0"]).await;
    let _held = fixture.occupy("alice", 5).await;
    let mut alice = fixture.connect(Http::H2, "alice").await;
    assert_eq!(alice.get(&proxied(CLUSTER, FAST)).await.status, 200);
}
