//! Members behind the tunnel: they are used like any other, and a failure on the way names its hop.
//!
//! The tunnel-servers and agents here are a few lines on the protocol itself, so that a test
//! decides their answers and sees their requests.

mod agent;
mod certificates;
mod choice;
mod embedded;
mod failures;
mod held;
mod lost;
pub mod server;
mod traffic;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use system_tests::TestbedBuilder;
use system_tests::prelude::*;
use system_tests::testbed::Reachable;
use tempfile::TempDir;

use self::server::{Answer, TunnelServer};

/// The name under which every tunnelled API server is asked for.
const API_SERVER: &str = "kubernetes.default.svc:443";
/// A path of the members.
const PATH: &str = "/api/v1/nodes";

/// The authorities of the tunnel, and the files a gateway needs of them.
pub struct Pki {
    /// Authority of the tunnel-servers' certificates.
    servers: Authority,
    /// Authority of the gateways' certificates.
    frontends: Authority,
    directory: TempDir,
}

// === impl Pki ===

impl Pki {
    pub fn new() -> Self {
        let pki = Self {
            servers: Authority::new("tunnel-server-ca"),
            frontends: Authority::new("tunnel-frontend-ca"),
            directory: tempfile::tempdir().expect("a directory for temporary files"),
        };
        pki.write_identity("gateway-1");
        pki.write_ca(&pki.servers);
        pki
    }

    /// Replaces the gateway's certificate on disk.
    fn write_identity(&self, common_name: &str) {
        let identity = self.frontends.issue(&Leaf::client(common_name));
        identity.write_to(self.directory.path(), "gateway").expect("the directory is writable");
    }

    /// Replaces the authority that the gateway trusts.
    fn write_ca(&self, authority: &Authority) {
        authority.write_to(self.directory.path(), "servers").expect("the directory is writable");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A gateway that knows `servers`, in their order.
    pub fn gateway(&self, servers: &[&TunnelServer]) -> TestbedBuilder {
        let hosts: Vec<_> = servers.iter().map(|server| server.address().to_string()).collect();
        self.gateway_at(&hosts.join(","))
    }

    fn gateway_at(&self, hosts: &str) -> TestbedBuilder {
        Testbed::builder()
            .arg(&format!("--proxy-host={hosts}"))
            .arg(&format!("--proxy-ca-cert={}", self.path("servers.crt").display()))
            .arg(&format!("--proxy-cert={}", self.path("gateway.crt").display()))
            .arg(&format!("--proxy-key={}", self.path("gateway.key").display()))
    }
}

/// The Secret of a cluster that is reached through the tunnel, and proves to be `member`.
pub fn tunnelled(name: &str, member: &impl Reachable) -> ClusterSecret {
    ClusterSecret::new("vela-system", name).tunnelled().ca(&member.ca_pem()).token(MEMBER_TOKEN)
}

/// A member that answers everything.
pub async fn member(options: MemberOptions) -> FakeMember {
    let member = FakeMember::start(options).await;
    member.on_any(|_| Reply::full(200, &[], "fine"));
    member
}

/// A member, a tunnel-server that leads to it, and a gateway that knows both.
struct Fixture {
    member: FakeMember,
    server: TunnelServer,
    testbed: Testbed,
    pki: Pki,
}

// === impl Fixture ===

impl Fixture {
    async fn new(options: MemberOptions) -> Self {
        Self::with(options, |builder| builder).await
    }

    async fn with(options: MemberOptions, more: impl FnOnce(TestbedBuilder) -> TestbedBuilder) -> Self {
        Self::build((Ipv4Addr::LOCALHOST, 0).into(), options, more).await
    }

    /// A fixture with the tunnel-server where another may come later.
    async fn at(address: SocketAddr, options: MemberOptions) -> Self {
        Self::build(address, options, |builder| builder).await
    }

    async fn build(
        address: SocketAddr,
        options: MemberOptions,
        more: impl FnOnce(TestbedBuilder) -> TestbedBuilder,
    ) -> Self {
        let (pki, member) = (Pki::new(), member(options).await);
        let server = TunnelServer::start_at(&pki, address).await;
        server.set(CLUSTER, Answer::LeadsTo(member.address()));
        let builder = pki.gateway(&[&server]).cluster(CLUSTER, tunnelled(CLUSTER, &member));
        let testbed = more(builder).start().await;
        Self { member, server, testbed, pki }
    }

    async fn get(&self) -> system_tests::Answer {
        self.testbed.get(&proxied(CLUSTER, PATH)).await
    }
}

/// Keeps the direct way in view where both are compared.
fn direct(member: &FakeMember) -> ClusterSecret {
    cluster("direct", member)
}
