//! The tunnel: a tunnel-server and a tunnel-agent between clients at the server's Unix socket and a
//! destination of this process. Figures are of both together.

mod destination;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::ports;
use kit::pki::{Authority, Leaf};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, interval, timeout};

use self::destination::{Destination, Wish};
use crate::program::Program;
use crate::{Case, Floor, Harness, Player};

pub const NAMES: [&str; 4] = ["tunnel-echo", "tunnel-dial", "tunnel-download", "tunnel-upload"];

const CLUSTER: &str = "edge";
/// Bytes of an echo: a few keystrokes' worth.
const WORD: u64 = 64;
const MEBIBYTE: u64 = 1 << 20;
/// Echoes and dials in a round.
const ECHOES: u64 = 400;
const DIALS: u64 = 100;
const MEBIBYTES: u64 = 16;
/// Starting takes a hundred times as long under valgrind.
const START: Duration = Duration::from_mins(3);
/// Limit for one answer.
const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);
/// Longest head of an answer to CONNECT.
const HEAD: usize = 8 << 10;

/// Both ends: the callers and the destination.
struct Ends {
    runtime: Runtime,
    destination: SocketAddr,
    socket: PathBuf,
}

/// A server and an agent that are linked, and every case for them.
pub fn harness<P: Player>(floor: &Floor<'_>) -> Result<Harness<P>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let destination = runtime.block_on(Destination::start())?;
    let ends = Ends { runtime, destination, socket: floor.file("frontend.sock") };
    let agents = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
    let mut programs = vec![server(floor, &ends, agents)?, agent(floor, &ends, agents)?];
    ends.runtime.block_on(ends.linked(&mut programs))?;
    let cases = cases(&Rc::new(ends))?;
    Ok(Harness { programs, cases })
}

fn server<P: Player>(floor: &Floor<'_>, ends: &Ends, agents: SocketAddr) -> Result<P> {
    let directory = floor.directory;
    let (serving, clients) = (Authority::new("tunnel-ca"), Authority::new("agents-ca"));
    serving.write_to(directory, "tunnel-ca")?;
    let clients_file = clients.write_to(directory, "agents-ca")?;
    clients.issue(&Leaf::client(format!("system:tunnel-agent:{CLUSTER}"))).write_to(directory, "agent")?;
    let pair = serving.issue(&Leaf::server("tunnel-server")).write_to(directory, "tunnel-server")?;
    let flags = vec![
        format!("--agent-listen={agents}"),
        format!("--agent-tls-cert-file={}", pair.certificate.display()),
        format!("--agent-tls-private-key-file={}", pair.key.display()),
        format!("--agent-client-ca-file={}", clients_file.display()),
        format!("--frontend-uds={}", ends.socket.display()),
        format!("--admin-listen=127.0.0.1:{}", ports::free()?),
    ];
    P::start("tunnel-server", &floor.program(Program::TunnelServer)?, flags, directory)
}

fn agent<P: Player>(floor: &Floor<'_>, ends: &Ends, agents: SocketAddr) -> Result<P> {
    let flags = vec![
        format!("--cluster={CLUSTER}"),
        format!("--server={agents}"),
        format!("--server-ca-file={}", floor.file("tunnel-ca.crt").display()),
        format!("--cert-file={}", floor.file("agent.crt").display()),
        format!("--key-file={}", floor.file("agent.key").display()),
        format!("--api-server={}", ends.destination),
        format!("--admin-listen=127.0.0.1:{}", ports::free()?),
        "--links=1".to_owned(),
    ];
    P::start("tunnel-agent", &floor.program(Program::TunnelAgent)?, flags, floor.directory)
}

fn cases(ends: &Rc<Ends>) -> Result<Vec<Case>> {
    let [echo, dial, download, upload] = NAMES;
    let on_one = |name, unit, units, wish, size| -> Result<Case> {
        let (ends, mut stream) = (Rc::clone(ends), ends.runtime.block_on(ends.open())?);
        let load = move |count| ends.runtime.block_on(repeat(&mut stream, wish, size, count));
        Ok(Case { name, unit, units, load: Box::new(load) })
    };
    let dialler = Rc::clone(ends);
    let dials = move |count| dialler.runtime.block_on(dialler.dials(count));
    Ok(vec![
        on_one(echo, "round trip", ECHOES, Wish::Echo, WORD)?,
        Case { name: dial, unit: "CONNECT, echo and close", units: DIALS, load: Box::new(dials) },
        on_one(download, "MiB", MEBIBYTES, Wish::Download, MEBIBYTE)?,
        on_one(upload, "MiB", MEBIBYTES, Wish::Upload, MEBIBYTE)?,
    ])
}

async fn repeat(stream: &mut UnixStream, wish: Wish, size: u64, count: u64) -> Result<()> {
    for _ in 0..count {
        timeout(PATIENCE, destination::ask(stream, wish, size)).await.context("no answer through the tunnel")??;
    }
    Ok(())
}

// === impl Ends ===

impl Ends {
    async fn linked(&self, programs: &mut [impl Player]) -> Result<()> {
        let deadline = Instant::now() + START;
        let mut looks = interval(POLL);
        loop {
            looks.tick().await;
            programs.iter_mut().try_for_each(Player::check)?;
            match self.open().await {
                Ok(_) => return Ok(()),
                Err(error) => ensure!(Instant::now() < deadline, "no tunnel after {START:?}: {error:#}"),
            }
        }
    }

    /// A stream to the destination, as a kube-apiserver's egress selector opens it.
    async fn open(&self) -> Result<UnixStream> {
        let head =
            format!("CONNECT {} HTTP/1.1\r\nHost: 127.0.0.1\r\nTunnel-Cluster: {CLUSTER}\r\n\r\n", self.destination);
        let open = async {
            let mut stream = UnixStream::connect(&self.socket).await?;
            stream.write_all(head.as_bytes()).await?;
            let mut answer = Vec::new();
            while !answer.ends_with(b"\r\n\r\n") {
                ensure!(answer.len() < HEAD, "a head without end");
                answer.push(stream.read_u8().await?);
            }
            let answer = String::from_utf8_lossy(&answer).into_owned();
            ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            Ok(stream)
        };
        timeout(PATIENCE, open).await.context("no answer to CONNECT")?
    }

    async fn dials(&self, count: u64) -> Result<()> {
        for _ in 0..count {
            let mut stream = self.open().await?;
            repeat(&mut stream, Wish::Echo, WORD, 1).await?;
        }
        Ok(())
    }
}
