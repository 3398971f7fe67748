//! `--ocm-integration` and a hub that does not show its `ManagedCluster`s: no credential goes
//! anywhere else for it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use system_tests::prelude::*;

use super::Fixture;

const FLAG: &str = "--ocm-integration";
const MANAGED: Resource = Resource::ManagedClusters;
const CONDITION: &str = "/readyz/managedclusters";

/// A cluster whose Secret names `own`, and whose `ManagedCluster` names `other`.
struct Moved {
    hub: FakeHub,
    own: FakeMember,
    other: FakeMember,
}

async fn member(name: &'static str) -> FakeMember {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on_any(move |_| Reply::full(200, &[], name));
    member
}

// === impl Moved ===

impl Moved {
    async fn set() -> Self {
        let (hub, own, other) = (FakeHub::start().await, member("own").await, member("other").await);
        hub.put_secret(cluster("a", &own));
        Self { hub, own, other }
    }

    fn install(&self) {
        let config = json!({"url": self.other.url(), "caBundle": STANDARD.encode(self.other.ca_pem())});
        let spec = json!({"hubAcceptsClient": true, "managedClusterClientConfigs": [config]});
        self.hub.install(MANAGED);
        self.hub.put(MANAGED, json!({"metadata": {"name": "a"}, "spec": spec}));
    }
}

/// Every read of them is answered so.
fn fail(hub: &FakeHub, fault: &Fault) {
    for call in [Call::List(MANAGED), Call::Watch(MANAGED)] {
        hub.fail(call, fault.clone());
    }
}

fn heal(hub: &FakeHub) {
    for call in [Call::List(MANAGED), Call::Watch(MANAGED)] {
        hub.heal(call);
    }
}

/// The failed checks of a gateway that knows the hub's CAs.
async fn missing(testbed: &Testbed) -> String {
    let mut connection = testbed.anonymous(Http::H2).await;
    let knows = |answer: &Answer| !answer.text().contains("[-]identity");
    let answer = connection.until(WAIT, "/readyz?verbose", knows).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    answer.text()
}

#[tokio::test]
async fn a_gateway_that_starts_without_them_is_not_ready_and_sends_nothing() {
    for code in [403, 404, 503] {
        let moved = Moved::set().await;
        moved.install();
        fail(&moved.hub, &Fault::Status(code));
        let testbed = Testbed::builder().hub(&moved.hub).arg(FLAG).launch().await;
        moved.hub.called(Call::List(MANAGED), 2).await;
        let missing = missing(&testbed).await;
        assert!(missing.contains("[-]managedclusters"), "{missing}");
        let fixture = Fixture { hub: moved.hub, testbed };
        assert_eq!(fixture.get(CONDITION).await.status, 503);
        fixture.get(&proxied("a", "/api")).await.status_message(503, "ServiceUnavailable");

        heal(&fixture.hub);
        fixture.testbed.ready().await;
        assert_eq!(fixture.get(CONDITION).await.status, 200);
        assert_eq!(fixture.get(&proxied("a", "/api")).await.text(), "other");
        assert_eq!(moved.own.request_count(), 0, "{code}");
    }
}

#[tokio::test]
async fn a_hub_that_forbids_or_forgets_them_moves_no_cluster() {
    let moved = Moved::set().await;
    moved.install();
    let testbed = Testbed::builder().hub(&moved.hub).arg(FLAG).start().await;
    let fixture = Fixture { hub: moved.hub, testbed };
    for code in [403, 404, 500] {
        fixture.hub.watching(MANAGED, 1).await;
        let before = fixture.hub.calls(Call::List(MANAGED));
        fail(&fixture.hub, &Fault::Status(code));
        fixture.hub.break_watches();
        fixture.hub.called(Call::List(MANAGED), before + 2).await;
        // The endpoint in the Secret does not count again when the Secret is rewritten.
        fixture.hub.put_secret(cluster("a", &moved.own).annotation("touched", &code.to_string()));
        fixture.testbed.ready().await;
        assert_eq!(fixture.get(&proxied("a", "/api")).await.text(), "other", "{code}");
        heal(&fixture.hub);
    }
    assert_eq!(moved.own.request_count(), 0);
}

#[tokio::test]
async fn a_hub_without_the_kind_is_ready_and_without_the_flag_nobody_waits_for_it() {
    let moved = Moved::set().await;
    let testbed = Testbed::builder().hub(&moved.hub).arg(FLAG).start().await;
    assert_eq!(testbed.anonymous(Http::H2).await.get("/readyz").await.status, 200);
    assert!(moved.hub.calls(Call::Groups) > 0, "404 alone is no evidence");
    drop(testbed);
    fail(&moved.hub, &Fault::Hang);
    let testbed = Testbed::builder().hub(&moved.hub).start().await;
    let fixture = Fixture { hub: moved.hub, testbed };
    assert_eq!(fixture.get(&proxied("a", "/api")).await.text(), "own");
}
