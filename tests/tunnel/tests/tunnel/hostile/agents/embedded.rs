//! The same with agents that are linked to a gateway: users of other clusters, on the same
//! connection to it, do not notice.

use std::io;
use std::net::SocketAddr;

use kit::hub::ClusterSecret;
use kit::member::{FakeMember, MemberOptions, Reply};
use kit::wait::WAIT;
use system_tests::{Connection, Http, MEMBER_TOKEN, proxied};
use tunnel::Reason;
use tunnel_tests::pki::Pki;
use tunnel_tests::{AgentSpec, Testbed, testbed::CLUSTER};

use super::{EVIL, Gets, Stage, whatever_they_say};

const PATH: &str = "/api/v1/nodes";
const WATCH: &str = "/api/v1/pods?watch=true";

/// A gateway that takes links, and a client of it.
struct Gateway<'a> {
    testbed: &'a system_tests::Testbed,
    pki: &'a Pki,
    client: &'a Connection,
}

// === impl Gateway ===

impl Stage for Gateway<'_> {
    type Opened = ();

    fn pki(&self) -> &Pki {
        self.pki
    }

    fn address(&self) -> SocketAddr {
        self.testbed.tunnel_address().expect("it takes links")
    }

    async fn is_linked(&self) -> bool {
        self.testbed.metric(&format!("tunnel_server_links{{cluster=\"{EVIL}\"}}")).await > 0
    }

    async fn open(&self, row: &str) -> (Gets, Option<()>) {
        let answer = self.client.open_beside("GET", &proxied(EVIL, PATH)).await;
        let answer = answer.unwrap_or_else(|error| panic!("{row}: {error}"));
        let answer = answer.whole().await.unwrap_or_else(|error| panic!("{row}: {error}"));
        let (status, text) = (answer.status, answer.text());
        assert!(matches!(status, 502..=504) && text.contains(&format!("cluster {EVIL}")), "{row}: {status}, {text}");
        (Gets::Refused(Reason::NoLink), None)
    }

    /// TLS with the member fails in any stream of such an agent.
    fn seen(gets: Gets) -> Gets {
        if gets == Gets::Nothing { Gets::Nothing } else { Gets::Refused(Reason::NoLink) }
    }
}

/// The Secret of a cluster behind the tunnel that proves to be `member`.
fn tunnelled(name: &str, member: &FakeMember) -> ClusterSecret {
    ClusterSecret::new("vela-system", name).tunnelled().ca(&member.ca_pem()).token(MEMBER_TOKEN)
}

/// A gateway that pauses dials to no cluster, however often they fail.
async fn gateway(pki: &Pki, member: &FakeMember) -> system_tests::Testbed {
    system_tests::Testbed::builder()
        .arg("--tunnel-listen=127.0.0.1:0")
        .arg(&format!("--tunnel-tls-cert-file={}", pki.agent_listener.certificate.display()))
        .arg(&format!("--tunnel-tls-private-key-file={}", pki.agent_listener.key.display()))
        .arg(&format!("--tunnel-client-ca-file={}", pki.agents_ca.display()))
        .arg("--circuit-failures=0")
        .cluster(CLUSTER, tunnelled(CLUSTER, member))
        .cluster(EVIL, tunnelled(EVIL, member))
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_an_agent_says_to_a_gateway_other_clusters_do_not_notice() {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on_any(|_| Reply::full(200, &[], "fine"));
    let mut watches = member.streams("/api/v1/pods");
    let mut testbed = Testbed::builder().servers(0).start().await;
    let gateway = gateway(&testbed.pki, &member).await;
    let elsewhere = vec![gateway.tunnel_address().expect("it takes links")];
    testbed.add_agent(&AgentSpec { elsewhere, api_server: Some(member.address()), ..AgentSpec::new(CLUSTER) }).await;
    gateway.until(WAIT, &proxied(CLUSTER, PATH), |answer| answer.status == 200).await;

    let client = gateway.connect(Http::H2).await;
    let mut watch = client.open_beside("GET", &proxied(CLUSTER, WATCH)).await.expect("a head");
    let (_, events) = watches.next().await;
    let others = async || {
        if !events.send("event\n").await {
            return Err(io::Error::other("the watch was ended"));
        }
        assert_eq!(watch.event().await, "event\n");
        let answer = client.open_beside("GET", &proxied(CLUSTER, PATH)).await.map_err(io::Error::other)?;
        let answer = answer.whole().await.map_err(io::Error::other)?;
        if answer.status == 200 { Ok(()) } else { Err(io::Error::other(answer.text())) }
    };
    whatever_they_say(&Gateway { testbed: &gateway, pki: &testbed.pki, client: &client }, others).await;
}
