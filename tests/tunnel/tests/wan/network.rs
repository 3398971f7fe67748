//! The network between the two ends: a pair of network namespaces with `netem` on both sides where
//! the system lets us make them (root or user namespaces, and a kernel with that queueing
//! discipline), and [`slow`] relays on loopback elsewhere.
//!
//! The whole program runs again in a namespace of its own, and the far end in another: nothing has
//! to be cleaned up, because namespaces end with their last process.

use std::fmt;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use tokio::runtime::Runtime;
use tunnel_agent::Agent;

use crate::{far, slow};

/// Says in which namespace a process is: [`NEAR`] or [`FAR`]; without it, in that of the machine.
const PLACE: &str = "WAN_PLACE";
const NEAR: &str = "near";
const FAR: &str = "far";

const NEAR_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 213, 77, 1));
const FAR_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 213, 77, 2));
/// The interface, at both ends.
const LINK: &str = "wan";

/// A namespace of one's own, without being root.
const UNSHARE: [&str; 3] = ["--user", "--map-root-user", "--net"];
/// Whether all of it works here.
const PROBE: &str =
    "ip link set lo up && ip link add wan type veth peer name other && tc qdisc add dev wan root netem delay 50ms";

/// The network between the ends. Ended on drop.
pub(crate) enum Network {
    /// Namespaces; the far end is a process.
    Namespaces { far: Child },
    /// Relays; the far end is in this process.
    Relays { destination: SocketAddr, direct: SocketAddr, runtime: Runtime, agent: Option<Box<Agent>> },
}

/// In the far process: its whole life. In the machine's namespace: runs this program in one of its
/// own, if that can be slow.
pub(crate) fn elsewhere() -> Option<ExitCode> {
    match std::env::var(PLACE).as_deref() {
        Ok(NEAR) => None,
        Ok(_) => Some(far::main(FAR_ADDRESS)),
        Err(_) => {
            let probe = Command::new("unshare").args(UNSHARE).args(["sh", "-c", PROBE]).output();
            if !probe.is_ok_and(|output| output.status.success()) {
                return None;
            }
            let program = std::env::current_exe().ok()?;
            let mut near = Command::new("unshare");
            near.args(UNSHARE).arg(program).args(std::env::args_os().skip(1)).env(PLACE, NEAR);
            Some(if near.status().is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

/// Gives the link of this namespace its address and half of the delay.
pub(crate) fn configure(address: IpAddr) -> Result<()> {
    sh(&format!(
        "ip link set lo up && ip address add {address}/30 dev {LINK} && ip link set {LINK} up && \
         tc qdisc add dev {LINK} root netem delay {}ms limit 100000",
        slow::ROUND_TRIP.as_millis() / 2
    ))
}

fn sh(script: &str) -> Result<()> {
    let output = Command::new("sh").args(["-c", script]).output()?;
    ensure!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

// === impl Network ===

impl Network {
    /// The network that this process stands on.
    pub(crate) fn prepare() -> Result<Self> {
        if std::env::var_os(PLACE).is_some() { Self::namespaces() } else { Self::relays() }
    }

    fn namespaces() -> Result<Self> {
        let mut far = Command::new("unshare");
        far.arg("--net").arg(std::env::current_exe()?).env(PLACE, FAR).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut far = far.spawn()?;
        expect_ready(&mut far)?;
        sh(&format!("ip link add {LINK} type veth peer name {LINK} netns {}", far.id()))?;
        configure(NEAR_ADDRESS)?;
        Ok(Self::Namespaces { far })
    }

    fn relays() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let destination = far::destination(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let direct = slow::start(&runtime, destination)?;
        Ok(Self::Relays { destination, direct, runtime, agent: None })
    }

    /// The tunnel-server's address for agents.
    pub(crate) fn listen(&self) -> SocketAddr {
        let address = if let Self::Namespaces { .. } = self { NEAR_ADDRESS } else { Ipv4Addr::LOCALHOST.into() };
        SocketAddr::from((address, 0))
    }

    /// Starts the agent, which links to the tunnel-server at `server`, over the distance.
    pub(crate) fn start_agent(&mut self, mut flags: Vec<String>, server: SocketAddr) -> Result<()> {
        flags.push(format!("--api-server={}", self.destination()));
        match self {
            Self::Namespaces { far } => {
                flags.push(format!("--server={server}"));
                let stdin = far.stdin.as_mut().context("no standard input")?;
                flags.iter().try_for_each(|flag| writeln!(stdin, "{flag}"))?;
                writeln!(stdin)?;
                stdin.flush()?;
                expect_ready(far)
            }
            Self::Relays { runtime, agent, .. } => {
                flags.push(format!("--server={}", slow::start(runtime, server)?));
                *agent = Some(Box::new(Agent::start(flags)?));
                Ok(())
            }
        }
    }

    /// The destination, as the agent dials it.
    pub(crate) fn destination(&self) -> SocketAddr {
        match self {
            Self::Namespaces { .. } => SocketAddr::from((FAR_ADDRESS, far::PORT)),
            Self::Relays { destination, .. } => *destination,
        }
    }

    /// The destination's address for the near end, over the distance.
    pub(crate) fn direct(&self) -> SocketAddr {
        match self {
            Self::Namespaces { .. } => self.destination(),
            Self::Relays { direct, .. } => *direct,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces { .. } => "between network namespaces with netem",
            Self::Relays { .. } => "through delaying relays on loopback: no netem here",
        })
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Self::Namespaces { far } = self {
            drop(far.kill());
            drop(far.wait());
        }
    }
}

fn expect_ready(far: &mut Child) -> Result<()> {
    // One byte at a time: later bytes belong to the next reader.
    let mut line = String::new();
    let stdout = far.stdout.as_mut().context("no standard output")?;
    BufReader::with_capacity(1, stdout).read_line(&mut line)?;
    if line.trim_end() != far::READY {
        bail!("the far end did not start: {line}");
    }
    Ok(())
}
