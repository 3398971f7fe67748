//! Tunnels in comparison, all between the same two ends: this process enters them, and they lead to
//! [`destination`]. The figures are the processor time and memory of the programs in between.

mod bulk;
mod connect;
pub mod destination;
mod dials;
mod echo;
mod entry;
mod files;
mod grpc;
mod h2_stream;
mod idle;
mod plan;
mod programs;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use hub_tests::process::Process;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::runtime::Runtime;
use tokio::time::Instant;

pub use self::bulk::Direction;
use self::destination::Destination;
pub use self::entry::{Entry, Stream};
pub use self::plan::contenders;
use harness::usage::Tree;

/// Limit for programs to be linked.
const START: Duration = Duration::from_secs(30);
/// Pause between two looks at whether they are.
const AGAIN: Duration = Duration::from_millis(50);
/// Limit for one answer of the destination.
const ANSWER: Duration = Duration::from_mins(1);

/// A running tunnel, and the runtime that enters it.
pub struct Tunnel {
    pub entry: Arc<Entry>,
    /// The processes in between; the destination's on the direct way.
    pub tree: Tree,
    pub destination: Rc<Destination>,
    runtime: Runtime,
    processes: Vec<Process>,
}

// === impl Tunnel ===

impl Tunnel {
    fn new(entry: Entry, processes: Vec<Process>, destination: Rc<Destination>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let tree = if processes.is_empty() {
            Tree::new([destination.process.id()])
        } else {
            Tree::new(processes.iter().map(Process::id))
        };
        let mut tunnel = Self { entry: Arc::new(entry), tree, destination, runtime, processes };
        tunnel.wait()?;
        Ok(tunnel)
    }

    /// Runs `measurement` with the tunnel open and used.
    fn run<T>(&self, measurement: impl Future<Output = Result<T>>) -> Result<T> {
        self.runtime.block_on(async {
            echo_once(&self.entry, self.destination.address).await?;
            let outcome = measurement.await;
            self.entry.leave().await;
            tokio::time::sleep(AGAIN).await; // for the ends to notice
            outcome
        })
    }

    /// Waits until something comes back through it.
    fn wait(&mut self) -> Result<()> {
        let start = Instant::now();
        loop {
            let Err(error) = self.runtime.block_on(echo_once(&self.entry, self.destination.address)) else {
                return Ok(());
            };
            self.processes.iter_mut().try_for_each(Process::check)?;
            if start.elapsed() > START {
                let logs = self.processes.iter().map(Process::log_tail).collect::<String>();
                return Err(error.context(format!("nothing came through within {START:?}\n{logs}")));
            }
            self.runtime.block_on(async { tokio::time::sleep(AGAIN).await });
        }
    }
}

async fn echo_once(entry: &Entry, destination: std::net::SocketAddr) -> Result<()> {
    let mut stream = entry.open(destination).await?;
    stream.write_u8(destination::ECHO).await?;
    echo(&mut stream).await?;
    stream.close().await.context("while closing")
}

/// 64 bytes there and back, on a stream that echoes.
async fn echo(stream: &mut Stream) -> Result<()> {
    let mut buffer = [7; 64];
    stream.write_all(&buffer).await?;
    stream.flush().await?;
    let heard = tokio::time::timeout(ANSWER, stream.read_exact(&mut buffer)).await;
    heard.with_context(|| format!("no echo within {ANSWER:?}"))??;
    Ok(())
}
