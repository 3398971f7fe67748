//! Bytes that come through the tunnel faster than they are read: they count for the user that does
//! not read them, and are freed when it has left.

use std::sync::atomic::{AtomicUsize, Ordering};

use kit::client::H1Connection;
use kit::pki::ALPN_H2;
use system_tests::prelude::*;
use tokio::io::AsyncWriteExt as _;

use super::{Answer, Fixture, PATH, Pki, TunnelServer, member, tunnelled};

const FLOOD: &str = "/flood";
const ECHO: &str = "/echo";
/// Next to a window of a stream, which is a mebibyte or more.
const WINDOW: u64 = 900 << 10;
/// More than a gateway counts for some connections and requests without any.
const USUAL: u64 = 400 << 10;

/// A member that floods each client that upgrades.
async fn flooding(arguments: &'static [&'static str]) -> Fixture {
    let more = |builder: system_tests::TestbedBuilder| {
        arguments.iter().fold(builder, |builder, argument| builder.arg(argument))
    };
    let fixture = Fixture::with(MemberOptions::default(), more).await;
    fixture.member.on(FLOOD, |_| {
        Reply::upgrade("websocket", |mut io| async move { while io.write_all(&[b'x'; 16 << 10]).await.is_ok() {} })
    });
    fixture
}

async fn upgrade(testbed: &Testbed, user: &str, path: &str) -> H1Connection {
    let mut connection = testbed.client().h1().await.expect("the gateway accepts connections");
    let authorization = format!("Bearer {user}");
    let headers = [("Authorization", authorization.as_str())];
    let head = connection.upgrade("GET", &proxied(CLUSTER, path), "websocket", &headers).await.expect("an answer");
    assert_eq!(head.status, 101, "{head:?}");
    connection
}

async fn held(testbed: &Testbed) -> u64 {
    testbed.metric("cluster_gateway_held_bytes").await
}

#[tokio::test]
async fn what_an_upgrade_does_not_read_counts_until_it_ends() {
    let fixture = flooding(&[]).await;
    let stalled = upgrade(&fixture.testbed, ADMIN, FLOOD).await;
    becomes(WAIT, "a window to count", async || held(&fixture.testbed).await > WINDOW).await;
    drop(stalled);
    becomes(WAIT, "nothing to count", async || held(&fixture.testbed).await < USUAL).await;
}

/// Some clients that read nothing lose their streams, and others do not notice.
#[tokio::test]
async fn upgrades_that_nobody_reads_give_way_to_others() {
    const LIMIT: u64 = 4 << 20;
    /// With a window each, far more than that.
    const UPGRADES: usize = 10;
    let (pki, hub, member) = (Pki::new(), FakeHub::start().await, member(MemberOptions::default()).await);
    let ended = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ended);
    member.on(FLOOD, move |_| {
        let ended = Arc::clone(&counted);
        Reply::upgrade("websocket", |mut io| async move {
            while io.write_all(&[b'x'; 16 << 10]).await.is_ok() {}
            ended.fetch_add(1, Ordering::Relaxed);
        })
    });
    member.on(ECHO, |_| Reply::upgrade_echo("websocket"));
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(member.address()));
    hub.put_secret(tunnelled(CLUSTER, &member));
    for user in ["alice", "bob"] {
        hub.add_token(user, TokenUser::new(user, &[]));
    }
    hub.add_token(ADMIN, TokenUser::new("root", &["system:masters"]));
    hub.allow_all();
    let testbed = pki.gateway(&[&server]).hub(&hub).arg(&format!("--max-held-bytes={LIMIT}")).start().await;

    let mut other = upgrade(&testbed, "bob", ECHO).await;
    let mut stalled = Vec::new();
    for _ in 0..UPGRADES {
        stalled.push(upgrade(&testbed, "alice", FLOOD).await);
    }
    becomes(WAIT, "one gives way", async || ended.load(Ordering::Relaxed) > 0).await;
    becomes(WAIT, "room", async || held(&testbed).await <= LIMIT).await;
    assert!(testbed.metric("cluster_gateway_sheds_total").await > 0);
    assert!(ended.load(Ordering::Relaxed) < UPGRADES, "those that fit stay");
    other.send("still here").await.expect("taken");
    assert_eq!(other.read_exact(10).await.expect("echoed"), "still here");
    let mut bob = testbed.anonymous(Http::H2).await.bearer("bob");
    assert_eq!(bob.get(&proxied(CLUSTER, PATH)).await.status, 200);
}

/// HTTP/2 reads nothing while it cannot answer a PING: the member's later bytes stay in the tunnel.
#[tokio::test]
async fn what_a_member_sends_that_does_not_read_counts_for_its_connection() {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const PING: [u8; 17] = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let pki = Pki::new();
    let flood = [SETTINGS.to_vec(), PING.repeat(1 << 20)].concat();
    let raw = RawMember::always(vec![Act::Tls(ALPN_H2), Act::Write(flood.into()), Act::Hold]).await;
    let server = TunnelServer::start(&pki).await;
    server.set(CLUSTER, Answer::LeadsTo(raw.address()));
    let secret = tunnelled(CLUSTER, &raw).data("tls-server-name", "localhost");
    let testbed = pki.gateway(&[&server]).cluster(CLUSTER, secret).start().await;
    let admin = testbed.connect(Http::H2).await;
    let headers = [("authorization", format!("Bearer {ADMIN}"))];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let pending = admin.h2().send(Method::GET, &proxied(CLUSTER, PATH), &headers, true).await.expect("sent");
    becomes(WAIT, "a window to count", async || held(&testbed).await > WINDOW).await;
    drop(pending);
}
