//! Two gateways, two tunnel-servers, two agents.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::StatusCode;
use hub_tests::control_plane::Launcher;
use hub_tests::http::{self as plain, Client};
use hub_tests::hub::Hub;
use hub_tests::process::Process;
use hub_tests::product::flags;
use hub_tests::tunnel::{AgentCredential, AgentOptions, metric};
use hub_tests::{ports, wait};
use serde_json::json;

use super::FAR;
use super::audit::{self, Disk};
use super::trust::{AGENT, Trust, Validity};
use crate::programs::WORD;

/// Limit for a program to be ready on a busy machine; a second is usual.
const LIMIT: Duration = Duration::from_mins(2);
/// Links of each agent to each tunnel-server.
const LINKS: f64 = 2.0;

pub(super) struct Product {
    pub(super) gateways: Vec<Program>,
    pub(super) servers: Vec<Program>,
    pub(super) agents: Vec<Program>,
    pub(super) has_small_disks: bool,
}

/// A program of ours as a process.
pub(super) struct Program {
    process: Process,
    address: SocketAddr,
    /// Its readiness is served over TLS.
    is_tls: bool,
    disk: Option<PathBuf>,
}

// === impl Product ===

impl Product {
    /// Starts them, without waiting. Agents serve the API server at `far`.
    pub(super) fn start(launcher: &Launcher, hub: &Hub, trust: &mut Trust, far: SocketAddr) -> Result<Self> {
        trust.issue(Validity::Long)?;
        let (mut servers, mut frontends, mut listeners) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..2 {
            let (frontend, agents) = (port()?, port()?);
            servers.push(start_server(launcher, hub, trust, number, frontend, agents)?);
            frontends.push(frontend.to_string());
            listeners.push(agents);
        }
        let kubeconfig = hub.create_gateway_account()?;
        let probe = launcher.file("probe");
        std::fs::create_dir_all(&probe)?;
        let has_small_disks = audit::is_possible(&probe);
        let mut gateways = Vec::new();
        for number in 0..2 {
            let tunnel = tunnel_flags(trust, &frontends);
            gateways.push(start_gateway(launcher, &kubeconfig, trust, number, tunnel, has_small_disks)?);
        }
        let agents = start_agents(launcher, hub, trust, &listeners, far)?;
        Ok(Self { gateways, servers, agents, has_small_disks })
    }

    pub(super) fn wait_ready(&mut self) -> Result<()> {
        self.all().try_for_each(Program::wait_ready)
    }

    /// An error if one has ended by itself.
    pub(super) fn check(&mut self) -> Result<()> {
        self.all().try_for_each(|program| program.process.check())
    }

    /// An error if an agent lacks a link to a tunnel-server.
    pub(super) fn check_links(&self) -> Result<()> {
        let wanted = LINKS * 2.0; // two agents
        for server in &self.servers {
            let links = metric(server.address, "tunnel_server_links", &format!("cluster=\"{FAR}\""))?;
            ensure!(links >= wanted, "a tunnel-server has {links} links of {wanted}");
        }
        Ok(())
    }

    pub(super) fn gateway_addresses(&self) -> Vec<SocketAddr> {
        self.gateways.iter().map(|gateway| gateway.address).collect()
    }

    pub(super) fn release(&mut self) {
        self.all().for_each(|program| program.process.release());
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Program> {
        self.gateways.iter_mut().chain(&mut self.servers).chain(&mut self.agents)
    }
}

// === impl Program ===

impl Program {
    pub(super) fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    pub(super) fn wait_ready(&mut self) -> Result<()> {
        let mut ended = None;
        wait::until("a program to be ready", LIMIT, || {
            if let Err(error) = self.process.check() {
                ended = Some(error);
                return Ok(()); // it will not come back
            }
            if self.is_tls {
                return Client::probe(self.address).get("/readyz", &[])?.expect(StatusCode::OK).map(drop);
            }
            plain::plain(self.address, "/readyz").map(drop)
        })
        .with_context(|| self.process.log_tail())?;
        ended.map_or(Ok(()), Err)
    }

    /// The disk of its audit log, if it has one of its own.
    pub(super) fn disk(&self) -> Result<Option<Disk>> {
        let Some(directory) = &self.disk else { return Ok(None) };
        Ok(Some(Disk::of(self.process.program_id()?, directory)))
    }

    /// How often it has logged that it uses new contents of `file`. An agent does not name the
    /// file.
    pub(super) fn uses(&self, file: &Path) -> Result<usize> {
        let (log, name) = (std::fs::read_to_string(self.process.log())?, file.display().to_string());
        let of_file = |line: &&str| {
            line.contains("changed files are in use now") && line.contains(&name)
                || line.contains("replacing all links")
        };
        Ok(log.lines().filter(of_file).count())
    }
}

fn port() -> Result<SocketAddr> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?)))
}

fn start(launcher: &Launcher, name: &str, words: &[String], address: SocketAddr) -> Result<Program> {
    let process = Process::start(name, Path::new(&words[0]), &words[1..], &launcher.directory)?;
    Ok(Program { process, address, is_tls: false, disk: None })
}

/// `flags` and `more`, without those in `flags` that `more` has too.
fn overridden(mut flags: Vec<String>, more: Vec<String>) -> Vec<String> {
    let name = |flag: &String| flag.split('=').next().unwrap_or_default().to_owned();
    let names: Vec<String> = more.iter().map(name).collect();
    flags.retain(|flag| !names.contains(&name(flag)));
    flags.extend(more);
    flags
}

/// This executable as the program that `flags` begin with.
fn program(flags: Vec<String>) -> Result<Vec<String>> {
    let mut words = vec![std::env::current_exe()?.display().to_string(), WORD.to_owned()];
    words.extend(flags);
    Ok(words)
}

fn tunnel_flags(trust: &Trust, frontends: &[String]) -> Vec<String> {
    let theirs = trust.tunnel.gateway_flags();
    let place = |flag: &String| flag.starts_with("--proxy-host=") || flag.starts_with("--proxy-port=");
    let mut flags: Vec<String> = theirs.into_iter().filter(|flag| !place(flag)).collect();
    flags.push(format!("--proxy-host={}", frontends.join(",")));
    flags
}

fn start_gateway(
    launcher: &Launcher,
    kubeconfig: &Path,
    trust: &Trust,
    number: usize,
    more: Vec<String>,
    has_small_disk: bool,
) -> Result<Program> {
    let (name, address) = (format!("gateway-{number}"), port()?);
    let disk = launcher.file(&format!("{name}-audit"));
    std::fs::create_dir_all(&disk)?;
    let mut all = flags(address, kubeconfig, &trust.gateway_files(number));
    all.extend(more);
    all.extend(audit::flags(&disk));
    // As long as the Service needs to notice it; the rest of a pod's time is for open requests.
    all.extend(["--shutdown-delay-duration=3s".to_owned(), "--drain-timeout=5s".to_owned()]);
    let mut words = program(all)?;
    if has_small_disk {
        words = audit::with_disk(&disk, words);
    }
    let mut gateway = start(launcher, &name, &words, address)?;
    gateway.is_tls = true;
    gateway.disk = has_small_disk.then_some(disk);
    Ok(gateway)
}

fn start_server(
    launcher: &Launcher,
    hub: &Hub,
    trust: &Trust,
    number: usize,
    frontend: SocketAddr,
    agents: SocketAddr,
) -> Result<Program> {
    let (name, admin) = (format!("tunnel-server-{number}"), port()?);
    let mut more = trust.tunnel.frontend_flags(frontend);
    more.extend([
        format!("--agent-listen={agents}"),
        format!("--admin-listen={admin}"),
        "--shutdown-delay-duration=1s".to_owned(),
        "--drain-timeout=5s".to_owned(),
    ]);
    let flags = overridden(trust.tunnel.server_flags(&name, hub, &[])?, more);
    start(launcher, &name, &program(flags)?, admin)
}

/// Starts one agent with a token, one with a certificate.
fn start_agents(
    launcher: &Launcher,
    hub: &Hub,
    trust: &Trust,
    servers: &[SocketAddr],
    far: SocketAddr,
) -> Result<Vec<Program>> {
    let token = hub.create_agent("agent-token", &[FAR])?;
    let subject = json!([{"kind": "User", "name": AGENT, "apiGroup": "rbac.authorization.k8s.io"}]);
    hub.allow_agent(AGENT, &subject, &[FAR])?;
    let credentials =
        [AgentCredential::token(launcher, FAR, &token)?, AgentCredential::Certificate(trust.agent_files())];
    let mut agents = Vec::new();
    for (number, credential) in credentials.into_iter().enumerate() {
        let (name, admin) = (format!("agent-{number}"), port()?);
        let authority = trust.tunnel.serving_authority_file();
        let options = AgentOptions::new(FAR, servers[0], authority, far, credential).also(servers[1]);
        let more = vec![format!("--admin-listen={admin}"), "--drain-timeout=5s".to_owned()];
        let flags = overridden(options.flags(), more);
        agents.push(start(launcher, &name, &program(flags)?, admin)?);
    }
    Ok(agents)
}
