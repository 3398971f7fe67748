//! Bytes that wait in the gateway for the hub, or for watchers of clusters, count like those for
//! members: beyond what may be held, the user with the most is refused, and others do not notice.

use kit::client::{H2Connection, H2Response};
use kit::frames::{INITIAL_WINDOW_SIZE, Places, SETTINGS, Wire, encode, setting};
use kit::pki::ALPN_H2;
use system_tests::prelude::*;
use tokio::task::JoinSet;

use super::held::{Narrow, metric};

/// More than any test takes: a known user stays known.
const KNOWN: [&str; 2] =
    ["--authentication-token-webhook-cache-ttl=10m", "--authorization-webhook-cache-authorized-ttl=10m"];
/// Size of each head of a request that waits for a review. It counts as received and as sent.
const HEAD: usize = 110 << 10;
/// Together more than the limit, and as many as the hub is asked about at a time of one user.
const WAITING: usize = 25;
/// Together less than the limit.
const LEAST: usize = 16;
/// `ENHANCE_YOUR_CALM`.
const CALM: u32 = 11;
const CLUSTERS: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways?watch=true";
const VIRTUAL: &str = "/apis/cluster.core.oam.dev/v1alpha1/virtualclusters?watch=true";
/// Watches of one user, which may have 128; each of `virtualclusters` counts twice.
const WATCHES: usize = 60;
/// Window of each of these: less than an event of a large cluster, and more than the others.
const WINDOW: u32 = 32 << 10;
/// Bytes of an event of a large cluster, at least.
const EVENT: usize = 120 << 10;

/// Sends requests of `user` one by one, each when the hub was asked `call` about the one before and
/// did not answer, until one of them ends, which is returned with how many wait.
async fn waiting_for(hub: &FakeHub, call: Call, client: &H2Connection, user: impl Fn(usize) -> User) -> Outcome {
    let (padding, mut answers) = ("X".repeat(HEAD), JoinSet::new());
    for number in 0..WAITING {
        let asked = hub.calls(call);
        let (name, value) = user(number);
        let headers = [(name, value.as_str()), ("x-long", &padding)];
        let target = proxied(&format!("cluster-{number}"), "/x");
        match client.send(Method::GET, &target, &headers, true).await {
            Ok(request) => drop(answers.spawn(request.response())),
            Err(error) => return (Err(error), number),
        }
        tokio::select! {
            told = answers.join_next() => return (told.expect("a request").expect("no panic"), number),
            () = hub.called(call, asked + 1) => {}
        }
    }
    panic!("all of them wait");
}

type Outcome = (Result<H2Response, h2::Error>, usize);
/// The header line that says who sends a request.
type User = (&'static str, String);

/// On the connection that the hub has for all its users, which goes on.
#[tokio::test]
async fn requests_that_wait_for_access_reviews_give_way() {
    let mut narrow = Narrow::with(&KNOWN).await;
    let hub = Arc::clone(&narrow.fixture.hub);
    let aggregator = narrow.fixture.testbed.client_with(&hub.front_proxy_identity()).h2().await.expect("a connection");
    let greed = async {
        hub.fail(Call::AccessReview, Fault::Hang);
        waiting_for(&hub, Call::AccessReview, &aggregator, |_| ("x-remote-user", "alice".to_owned())).await
    };
    let (told, waiting) = Box::pin(narrow.beside(greed)).await;
    assert!(waiting >= LEAST, "{waiting} wait");
    let told = told.expect("a head");
    assert_eq!(told.status(), 429);
    let body = told.body.to_end().await.expect("a body");
    let message = String::from_utf8_lossy(&body).into_owned();
    assert!(message.contains("--max-held-bytes") && message.contains("TooManyRequests"), "{message}");
    hub.heal(Call::AccessReview);
    narrow.assert_within_limit().await;
}

/// They get the answer that all strangers get: their connection ends.
#[tokio::test]
async fn strangers_who_wait_for_token_reviews_give_way() {
    let mut narrow = Narrow::with(&KNOWN).await;
    let hub = Arc::clone(&narrow.fixture.hub);
    let stranger = narrow.fixture.testbed.client().h2().await.expect("a connection");
    let greed = async {
        hub.fail(Call::TokenReview, Fault::Hang);
        waiting_for(&hub, Call::TokenReview, &stranger, |number| ("authorization", format!("Bearer {number}"))).await
    };
    let (told, waiting) = Box::pin(narrow.beside(greed)).await;
    assert!(waiting >= LEAST, "{waiting} wait");
    assert!(told.is_err(), "{told:?}");
    hub.heal(Call::TokenReview);
    narrow.assert_within_limit().await;
}

/// They keep each `ManagedCluster`, for when no Secret hides one, however fast their events are
/// read.
#[tokio::test]
async fn watches_of_virtual_clusters_count_for_what_they_keep() {
    const OPEN: usize = 10;
    /// The labels of an accepted cluster are kept up to 64 KiB.
    const KEPT: usize = 60 << 10;
    let narrow = Narrow::with(&KNOWN).await;
    let (hub, mut root) = (Arc::clone(&narrow.fixture.hub), narrow.fixture.connect(Http::H2, "root").await);
    hub.install(Resource::ManagedClusters);
    hub.put(
        Resource::ManagedClusters,
        json!({"metadata": {"name": "large", "labels": {"large": "x".repeat(KEPT)}},
            "spec": {"hubAcceptsClient": true, "managedClusterClientConfigs": [{"url": "https://m"}]}}),
    );
    let alice = narrow.fixture.connect(Http::H2, "alice").await;
    let before = metric(&mut root, "cluster_gateway_held_bytes").await;
    let mut watches = Vec::new();
    for _ in 0..OPEN {
        let mut watch = alice.open_beside("GET", VIRTUAL).await.expect("a head");
        while !watch.event().await.contains("\"large\"") {}
        watches.push(watch);
    }
    let least = before + u64::try_from(OPEN * KEPT).expect("small");
    becomes(WAIT, "they count", async || metric(&mut root, "cluster_gateway_held_bytes").await >= least).await;
    drop((watches, alice));
    becomes(WAIT, "nothing to count", async || {
        metric(&mut root, "cluster_gateway_held_bytes").await < before + (64 << 10)
    })
    .await;
}

#[tokio::test]
async fn watches_of_virtual_clusters_that_nobody_reads_give_way() {
    unread_watches_give_way(VIRTUAL).await;
}

#[tokio::test]
async fn watches_of_clusters_that_nobody_reads_give_way() {
    unread_watches_give_way(CLUSTERS).await;
}

/// A change goes to all watchers; some of alice's, which read nothing, lose theirs.
async fn unread_watches_give_way(target: &str) {
    let mut narrow = Narrow::with(&KNOWN).await;
    let (fixture, hub) = (&narrow.fixture, Arc::clone(&narrow.fixture.hub));
    let ca = fixture.member.ca_pem();
    // Virtual clusters show the label, and the others the authorities.
    let large =
        cluster("large", &fixture.member).label("large", &"x".repeat(EVENT)).ca(&ca.repeat(EVENT.div_ceil(ca.len())));
    let client = fixture.testbed.client();
    let bob = fixture.connect(Http::H2, "bob").await;
    let mut seen = bob.open_beside("GET", target).await.expect("a head");
    let greed = async {
        let io = client.raw(ALPN_H2).await.expect("a connection");
        let mut alice =
            Wire::over(io, Places::default(), &[("authorization", "Bearer alice")]).await.expect("a connection");
        alice.send(&encode(SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, WINDOW))).await;
        let mut streams = Vec::new();
        for _ in 0..WATCHES {
            streams.push(alice.request("GET", target, &[], true).await);
        }
        let have = |wire: &Wire, what: fn(&kit::frames::Seen) -> bool| {
            streams.iter().filter(|stream| wire.seen(**stream).is_some_and(what)).count()
        };
        alice.until("all are open", |wire| have(wire, |seen| seen.status == Some(200)) == WATCHES).await;
        hub.put_secret(large);
        alice.until("one is reset", |wire| have(wire, |seen| seen.reset == Some(CALM)) > 0).await;
        assert!(alice.answers_ping().await, "the others are open");
        assert!(have(&alice, |seen| seen.reset.is_some()) < WATCHES);
        while !seen.event().await.contains("\"large\"") {}
        alice
    };
    let _alice = Box::pin(narrow.beside(greed)).await;
    narrow.assert_within_limit().await;
}
