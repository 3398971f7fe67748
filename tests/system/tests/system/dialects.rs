//! The same member in every spelling: behind the parser all are one.

mod beside;
mod every;
mod karmada;
mod many;
mod messages;
mod paths;
mod rights;
mod spelling;
mod streams;
mod switched;
mod upgrades;
mod user_server;

use kit::member::StreamSender;
use system_tests::Streamed;
use system_tests::prelude::*;

/// A user that the hub knows.
const ALICE: &str = "alices-token";

/// A hub that allows everything, a member registered there, and a gateway that serves one dialect.
struct Fixture {
    hub: FakeHub,
    member: FakeMember,
    testbed: Testbed,
    dialect: Dialect,
}

/// Each event arrives before the next is sent.
async fn deliver_each(stream: &StreamSender, watch: &mut Streamed<'_>) {
    for number in 0..3 {
        let event = json!({"metadata": {"resourceVersion": number}});
        assert!(stream.event("ADDED", &event).await);
        assert_eq!(watch.event().await, format!("{}\n", json!({"object": event, "type": "ADDED"})));
    }
}

// === impl Fixture ===

impl Fixture {
    async fn set(dialect: Dialect) -> Self {
        Self::with(dialect, Http::H2).await
    }

    /// A fixture with a member that speaks `http` at best, and answers everything with 200.
    async fn with(dialect: Dialect, http: Http) -> Self {
        Self::before(dialect, http.member().await).await
    }

    /// A fixture with this member, which answers everything with 200.
    async fn before(dialect: Dialect, member: FakeMember) -> Self {
        let hub = hub().await;
        member.on_any(|_| Reply::json(200, &json!({"kind": "PodList"})));
        hub.put_secret(cluster(CLUSTER, &member));
        let testbed = dialect.on(Testbed::builder().hub(&hub)).start().await;
        Self { hub, member, testbed, dialect }
    }

    /// A connection of alice.
    async fn connect(&self, http: Http) -> Connection {
        self.dialect.connect(&self.testbed, http).await.bearer(ALICE)
    }

    fn path(&self, rest: &str) -> String {
        self.dialect.path(rest)
    }
}

/// A hub that knows alice and allows everything.
async fn hub() -> FakeHub {
    let hub = FakeHub::start().await;
    hub.add_token(ALICE, TokenUser::new("alice", &["devs"]));
    hub.allow_all();
    hub
}
