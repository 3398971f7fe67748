//! Who is calling, over the wire: what proves an identity, what proves nothing, and what those learn who prove none.

mod crowds;
mod flags;
mod front_proxy;
mod impersonation;
mod readiness;
mod serving;
mod strangers;
mod trailers;

use kit::hub::FakeHub;
use kit::member::{FakeMember, MemberOptions, Reply};
use kit::pki::Issued;
use serde_json::Value;
use system_tests::{CLUSTER, Connection, Http, Rig, cluster, proxied};

/// A path of the member.
const PATH: &str = "/api/v1/namespaces/ns/pods/p";

/// A hub, a member registered there, and the gateway of both.
struct Stage {
    hub: FakeHub,
    member: FakeMember,
    rig: Rig,
}

// === impl Stage ===

impl Stage {
    /// Nobody may do anything yet.
    async fn set() -> Self {
        let (hub, member) = (FakeHub::start().await, FakeMember::start(MemberOptions::default()).await);
        member.on_any(|_| Reply::full(200, &[], "from the member"));
        hub.put_secret(cluster(CLUSTER, &member));
        let rig = Rig::builder().hub(&hub).start().await;
        Self { hub, member, rig }
    }

    /// A connection that presents a certificate, or none.
    async fn connect(&self, http: Http, identity: Option<&Issued>) -> Connection {
        let client = identity.map_or_else(|| self.rig.client(), |identity| self.rig.client_with(identity));
        http.connect(&client).await.expect("the gateway accepts connections")
    }

    /// A connection of the hub's aggregator.
    async fn front_proxy(&self, http: Http) -> Connection {
        self.connect(http, Some(&self.hub.front_proxy_identity())).await
    }

    /// The `spec` of the latest access review.
    fn reviewed(&self) -> Value {
        self.hub.access_reviews().pop().expect("somebody was reviewed")
    }
}

/// The gateway's path to [`PATH`].
fn target() -> String {
    proxied(CLUSTER, PATH)
}
