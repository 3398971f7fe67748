//! The whole product in this process: sample members, a gateway in front of them, the agent of one
//! of them, and the files between.
//!
//! Listens on 127.0.0.1 only. All files are in one private temporary directory that goes when the
//! installation goes, however it goes.

use std::{
    fs::Permissions,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context as _, Result};
use gateway::Gateway;
use tempfile::TempDir;
use tokio::{task::spawn_blocking, time::Instant};
use tunnel_agent::Agent;

use crate::{
    agent::Lifeline,
    client::Client,
    identities::{Identities, random_token},
    kubeconfig::Kubeconfig,
    manifests::Manifests,
    member::{BERLIN, LIMA, Member, OSAKA, Pace, Profile},
    steps::{Tour, through},
    workload::Workload,
};

/// How long the gateway may take to become ready: it has a handful of small files to read.
const READY_PATIENCE: Duration = Duration::from_secs(10);
/// Time for requests in flight at the end: a demo is to stop soon.
const DRAIN: &str = "2s";

/// Running members, a running gateway, and the agent through which it reaches the last member.
/// Dropping it stops them at once, [`Installation::stop`] in order.
pub struct Installation {
    /// The environment of the steps.
    pub tour: Tour,
    /// Address of the gateway.
    pub address: SocketAddr,
    /// Time from the gateway's start until it was ready.
    pub ready_after: Duration,
    /// A kubeconfig with a context for each cluster and one for the gateway itself.
    pub kubeconfig: PathBuf,
    /// The files with which a client authenticates itself and the gateway.
    pub identities: Identities,
    /// The guest's manifest, where the gateway does not look.
    pub spare: PathBuf,
    gateway: Gateway,
    directory: TempDir,
}

// === impl Installation ===

impl Installation {
    /// Starts everything; the gateway listens on `port`, or on a free one if that is 0. Ready when
    /// it returns.
    pub async fn start(port: u16) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("cluster-gateway-demo-").permissions(Permissions::from_mode(0o700));
        let directory = builder.tempdir().context("cannot create a temporary directory")?;
        let root = directory.path();

        let identities = Identities::create(root, OSAKA.name)?;
        let (berlin, osaka, guest) = (member(&BERLIN).await, member(&OSAKA).await, member(&LIMA).await);
        let manifests = Manifests::create(root.join("clusters"))?;
        manifests.add(&berlin)?;
        manifests.add_tunnelled(&osaka)?;
        let spare = Manifests::create(root.join("spare"))?;
        spare.add(&guest)?;

        let started = Instant::now();
        let gateway = start_gateway(arguments(port, manifests.directory(), &identities)).await?;
        let (ready_after, address) = (started.elapsed(), gateway.address());

        let servers = gateway.tunnel_address().context("the gateway takes no agents")?;
        let lifeline = start_agent(agent_arguments(servers, &osaka, &identities)).await?;
        let client = Client::connect(address, &identities.authority_pem).await.context("cannot reach the gateway")?;
        let tour = Tour {
            client,
            admin: identities.admin.clone(),
            stranger: identities.stranger.clone(),
            members: vec![berlin, osaka],
            lifeline: Arc::new(lifeline),
            guest,
            manifests,
            workload: Workload::default(),
        };
        let kubeconfig = root.join("kubeconfig");
        contexts(address, &identities, &tour).write(&kubeconfig)?;
        let spare = spare.path(LIMA.name);
        Ok(Self { tour, address, ready_after, kubeconfig, identities, spare, gateway, directory })
    }

    /// Stops agent and gateway, then the members, and removes the files.
    pub async fn stop(self) -> Result<()> {
        let Self { tour: Tour { client, members, lifeline, guest, .. }, gateway, directory, .. } = self;
        // A connection that is still open is one that the gateway would wait for.
        drop(client);
        spawn_blocking(move || lifeline.stop().and_then(|()| gateway.stop()))
            .await
            .context("the gateway panicked")??;
        drop((members, guest));
        directory.close().context("cannot remove the temporary directory")
    }
}

async fn member(profile: &'static Profile) -> Member {
    Member::start(profile, random_token(), Pace::Seconds).await
}

/// The command line, as a shell would give it to the binary.
fn arguments(port: u16, clusters: &Path, identities: &Identities) -> Vec<String> {
    let file = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    vec![
        "cluster-gateway".to_owned(),
        "--standalone".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={port}"),
        format!("--drain-timeout={DRAIN}"),
        file("clusters-dir", clusters),
        file("tls-cert-file", &identities.serving.certificate),
        file("tls-private-key-file", &identities.serving.key),
        file("client-ca-file", &identities.client_authority),
        file("token-auth-file", &identities.tokens),
        "--tunnel-listen=127.0.0.1:0".to_owned(),
        file("tunnel-client-ca-file", &identities.agents_authority),
    ]
}

/// The agent's command line. It knows the address that the gateway does not.
fn agent_arguments(server: SocketAddr, member: &Member, identities: &Identities) -> Vec<String> {
    let file = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    vec![
        "tunnel-agent".to_owned(),
        format!("--cluster={}", member.name()),
        format!("--server={server}"),
        file("server-ca-file", &identities.authority),
        file("cert-file", &identities.agent.certificate),
        file("key-file", &identities.agent.key),
        format!("--api-server={}", member.address()),
        format!("--drain-timeout={DRAIN}"),
        "--admin-listen=127.0.0.1:0".to_owned(),
    ]
}

/// Like the gateway, it blocks and brings its own threads.
async fn start_agent(arguments: Vec<String>) -> Result<Lifeline> {
    let start = move || Lifeline::start(Box::new(move || Agent::start(&arguments)));
    spawn_blocking(start).await.context("the agent panicked")?
}

/// The gateway brings its own threads and blocks the caller's: not this one, on which the members
/// run.
async fn start_gateway(arguments: Vec<String>) -> Result<Gateway> {
    let start = move || {
        let gateway = Gateway::start(arguments)?;
        gateway.wait_ready(READY_PATIENCE)?;
        anyhow::Ok(gateway)
    };
    spawn_blocking(start).await.context("the gateway panicked")?.context("cannot start the gateway")
}

fn contexts(address: SocketAddr, identities: &Identities, tour: &Tour) -> Kubeconfig {
    let members = tour.members.iter().chain([&tour.guest]).map(Member::name);
    let servers = members.map(|name| (name, through(name, ""))).chain([("gateway", String::new())]);
    let kubeconfig = Kubeconfig::default().user("admin", &identities.admin).user("stranger", &identities.stranger);
    servers.fold(kubeconfig, |kubeconfig, (name, path)| {
        kubeconfig.context(name, &format!("https://{address}{path}"), &identities.authority_pem, "admin")
    })
}
