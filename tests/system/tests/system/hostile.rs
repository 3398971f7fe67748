//! Connections are shared by strangers. Whatever one of them, a member, or the hub does to what it
//! shares with a victim: the victim's watch sees the next event and its log misses no byte, both on
//! the streams that were open before; and the attacker gets the reason, or loses its own stream or
//! connection.

mod caller;
mod member;
mod proxy_authority;
mod reviews;
mod victim;

use kit::frames::{Places, Wire};
use kit::pki::ALPN_H2;
use system_tests::prelude::*;

use self::victim::Victim;

/// Size of the large answers.
const LARGE: usize = 128 << 10;

/// A hub that knows tokens, a member that both victim and attackers use, and the gateway of both,
/// with one thread: all requests for the member go over one connection.
struct Fixture {
    hub: FakeHub,
    member: FakeMember,
    testbed: Testbed,
}

// === impl Fixture ===

impl Fixture {
    /// Further clusters may be in the hub.
    async fn with(hub: FakeHub, arguments: &[&str]) -> Self {
        // All requests of one row fit beside the victim's.
        let options = MemberOptions { max_concurrent_streams: 4096, ..MemberOptions::default() };
        let member = FakeMember::start(options).await;
        member.on_any(|_| Reply::full(200, &[], "of the member"));
        member.on("/large", |_| Reply::full(200, &[], vec![b'l'; LARGE]));
        hub.put_secret(cluster(CLUSTER, &member));
        hub.add_token("victim", TokenUser::new("victim", &[]));
        hub.allow_all();
        let builder = arguments.iter().fold(Testbed::builder().hub(&hub), |builder, argument| builder.arg(argument));
        let testbed = builder.start().await;
        Self { hub, member, testbed }
    }

    fn places() -> Places {
        let [quick, slow, large, upload] = ["/quick", "/slow", "/large", "/upload"].map(|path| proxied(CLUSTER, path));
        Places { quick, slow, large, upload }
    }

    /// A connection of its own.
    async fn direct(&self, token: &str) -> Wire {
        let io = self.testbed.client().raw(ALPN_H2).await.expect("the gateway accepts connections");
        let authorization = format!("Bearer {token}");
        Wire::over(io, Self::places(), &[("authorization", &authorization)]).await.expect("a connection")
    }

    /// The connection that the hub's aggregator has for all its users.
    async fn shared(&self, user: &str) -> Wire {
        let client = self.testbed.client_with(&self.hub.front_proxy_identity());
        let io = client.raw(ALPN_H2).await.expect("the gateway accepts connections");
        Wire::over(io, Self::places(), &[("x-remote-user", user)]).await.expect("a connection")
    }
}
