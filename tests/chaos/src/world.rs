//! Hub, members and the programs between them, each a process.

mod audit;
mod members;
mod product;
mod renewal;
mod service;
mod settled;
mod trust;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hub_tests::control_plane::{Etcd, Launcher};
use hub_tests::hub::{Hub, MemberSecret};
use hub_tests::process::Process;
use hub_tests::scratch::Scratch;
use hub_tests::testbed::{ALL_VERBS, Testbed};
use hub_tests::tools::{Tool, Tools};
use tokio::runtime::Handle;

use self::members::Members;
use self::product::Product;
use self::service::Service;
use self::trust::Trust;
use crate::caller::{Caller, Connections};
use crate::load::Route;

pub use self::audit::Disk;
pub use self::trust::Validity;

/// The member that gateways dial.
pub const NEAR: &str = "near";
/// The member behind the tunnel.
pub const FAR: &str = "far";
/// Both members.
pub const MEMBERS: [&str; 2] = [NEAR, FAR];

const TOOLS: [Tool; 5] = [Tool::Etcd, Tool::ApiServer, Tool::ControllerManager, Tool::Kubectl, Tool::Kubelet];

/// One kind of process. Where there are several of it, a number tells them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Gateway,
    TunnelServer,
    Agent,
    HubServer,
    HubEtcd,
    MemberServer,
    MemberEtcd,
}

/// Everything, up and registered. Ended on drop, and when this process ends.
pub struct World {
    service: Service,
    product: Product,
    hub: Hub,
    hub_etcd: Etcd,
    members: Members,
    trust: Trust,
    token: String,
    restarts: u32,
    scratch: Scratch,
    launcher: Launcher,
}

// === impl Target ===

impl Target {
    pub const ALL: [Self; 7] = [
        Self::Gateway,
        Self::TunnelServer,
        Self::Agent,
        Self::HubServer,
        Self::HubEtcd,
        Self::MemberServer,
        Self::MemberEtcd,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::TunnelServer => "tunnel-server",
            Self::Agent => "agent",
            Self::HubServer => "hub",
            Self::HubEtcd => "hub-etcd",
            Self::MemberServer => "member",
            Self::MemberEtcd => "member-etcd",
        }
    }

    /// Number of its processes.
    pub fn count(self) -> usize {
        if matches!(self, Self::HubServer | Self::HubEtcd) { 1 } else { 2 }
    }

    /// Whether callers may not notice when one of several is replaced in order.
    pub fn is_ours(self) -> bool {
        matches!(self, Self::Gateway | Self::TunnelServer | Self::Agent)
    }
}

// === impl World ===

impl World {
    /// Builds what is missing, starts everything, and waits until it is ready.
    pub fn start(runtime: &Handle) -> Result<Self> {
        let scratch = Scratch::create()?;
        let launcher = Launcher { tools: Tools::only(&TOOLS)?, directory: scratch.path().to_path_buf() };
        let hub_etcd = Etcd::start_called(&launcher, "hub-etcd")?;
        let mut hub = Hub::start(&launcher, &hub_etcd)?;
        let mut members = Members::start(&launcher)?;
        let mut trust = Trust::prepare(&launcher)?;
        hub.wait_ready().context("the hub did not come up")?;
        members.wait_ready().context("a member did not come up")?;

        let mut product = Product::start(&launcher, &hub, &mut trust, members.get(FAR).server.address())?;
        let service = Service::start(runtime, product.gateway_addresses())?;
        hub.register_gateway(service.gate().port(), &trust.gateways)?;
        members.register(&hub)?;
        let token = hub.create_user("caller", &[], ALL_VERBS)?;
        product.wait_ready()?;
        hub.server.wait_for("apiservice v1alpha1.cluster.core.oam.dev", "Available", Duration::from_mins(2))?;
        Ok(Self { service, product, hub, hub_etcd, members, trust, token, restarts: 0, scratch, launcher })
    }

    /// The ways under test: to each member through the hub, and straight to a gateway.
    pub fn routes(&self) -> Vec<Route> {
        let hub = || {
            let (address, authority) = (self.hub.server.address(), self.hub.server.authority());
            Caller::with_token(address, Some(authority), &self.token, Connections::Fresh)
        };
        let service = || Caller::with_token(self.service.address(), None, &self.token, Connections::Shared);
        let mut routes = Vec::new();
        for member in MEMBERS {
            routes.push(route(member, "the hub", hub()));
            routes.push(route(member, "the gateways' Service", service()));
        }
        routes
    }

    /// Straight to each member.
    pub fn direct(&self) -> Vec<Route> {
        let direct = |name: &'static str| {
            let server = &self.members.get(name).server;
            let caller = Caller::with_certificate(server.address(), server.authority(), server.admin());
            Route { name: format!("{name} itself"), member: name, caller: Arc::new(caller), base: String::new() }
        };
        MEMBERS.map(direct).into()
    }

    /// The process of one of a kind.
    pub fn process(&mut self, target: Target, number: usize) -> &mut Process {
        match target {
            Target::Gateway => self.product.gateways[number].process(),
            Target::TunnelServer => self.product.servers[number].process(),
            Target::Agent => self.product.agents[number].process(),
            Target::HubServer => self.hub.server.process(),
            Target::HubEtcd => self.hub_etcd.process(),
            Target::MemberServer => self.members.numbered(number).server.process(),
            Target::MemberEtcd => self.members.numbered(number).etcd.process(),
        }
    }

    /// Starts one again that has ended, and waits until it is ready. The log of the one before is
    /// kept beside the new one's.
    pub fn start_again(&mut self, target: Target, number: usize) -> Result<()> {
        self.restarts += 1;
        let restarts = self.restarts;
        let process = self.process(target, number);
        let log = process.log().to_path_buf();
        std::fs::rename(&log, log.with_extension(format!("before-{restarts}.log")))?;
        process.start_again()?;
        self.wait_ready(target, number)
    }

    /// Waits until one says that it is ready. etcd says nothing.
    pub fn wait_ready(&mut self, target: Target, number: usize) -> Result<()> {
        match target {
            Target::Gateway => self.product.gateways[number].wait_ready(),
            Target::TunnelServer => self.product.servers[number].wait_ready(),
            Target::Agent => self.product.agents[number].wait_ready(),
            Target::HubServer => self.hub.server.wait_ready(),
            Target::MemberServer => self.members.numbered(number).server.wait_ready(),
            Target::HubEtcd | Target::MemberEtcd => Ok(()),
        }
    }

    /// Whether the gateways write their audit logs to file systems that can be filled.
    pub fn has_small_disks(&self) -> bool {
        self.product.has_small_disks
    }

    /// The disk of a gateway's audit log, if it has one of its own.
    pub fn disk(&self, number: usize) -> Result<Option<Disk>> {
        self.product.gateways[number].disk()
    }

    /// Panics that the product's programs, ended ones included, have logged, and which they
    /// survive: file and line.
    pub fn panics(&self) -> Result<Vec<String>> {
        let mut panics = Vec::new();
        for entry in std::fs::read_dir(&self.launcher.directory)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_ours = ["gateway-", "tunnel-server-", "agent-"].iter().any(|prefix| name.starts_with(prefix));
            if is_ours && path.extension().is_some_and(|extension| extension == "log") {
                let log = std::fs::read_to_string(&path)?;
                panics.extend(
                    log.lines().filter(|line| line.contains(" panicked at ")).map(|line| format!("{name}: {line}")),
                );
            }
        }
        Ok(panics)
    }

    /// An error if one of the product's programs has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        self.product.check()
    }

    /// Whether each agent has all of its links.
    pub fn has_links(&self) -> bool {
        self.product.check_links().is_ok()
    }

    /// Leaves the logs behind; says where.
    pub fn keep(&mut self) -> PathBuf {
        self.scratch.keep();
        self.launcher.directory.clone()
    }
}

impl Drop for World {
    /// All at the same time; each field's own drop then waits for its part.
    fn drop(&mut self) {
        self.product.release();
        self.hub.release();
        self.hub_etcd.release();
        self.members.release();
    }
}

fn route(member: &'static str, way: &str, caller: Caller) -> Route {
    let base = Testbed::proxy_path(member);
    Route { name: format!("{member} via {way}"), member, caller: Arc::new(caller), base }
}

/// The Secret of a member.
fn secret(members: &Members, name: &'static str) -> Result<MemberSecret> {
    let server = &members.get(name).server;
    if name == NEAR {
        return Ok(MemberSecret::with_certificate(server, server.admin()));
    }
    let token = server.service_account_token("default", "gateway")?;
    server.bind("gateway", "cluster-admin", ("default", "gateway"))?;
    Ok(MemberSecret::with_token(server, &token).behind_tunnel())
}
