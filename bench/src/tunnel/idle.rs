//! The cost of idle connections.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

use super::echo::count;
use super::{Entry, Stream, Tunnel, destination, echo};

pub struct Idle {
    /// Of the tunnel's processes, KiB for each connection, beyond what they had before the first.
    pub open: f64,
    /// The same after all were closed.
    pub closed: f64,
}

/// Opened at a time.
const AT_ONCE: usize = 50;
/// Time for leftovers of opening to settle.
const SETTLE: Duration = Duration::from_secs(2);

impl Tunnel {
    /// Opens `connections`, each used once, looks, closes them, and looks again after `rest`.
    pub fn idle(&self, connections: usize, rest: Duration) -> Result<Idle> {
        self.run(async {
            let before = self.tree.usage()?.resident;
            let (mut open, mut running, mut started) = (Vec::new(), JoinSet::new(), 0);
            while open.len() < connections {
                while started < connections && running.len() < AT_ONCE {
                    running.spawn(used_once(Arc::clone(&self.entry), self.destination.address));
                    started += 1;
                }
                if let Some(stream) = running.join_next().await {
                    open.push(stream??);
                }
            }
            tokio::time::sleep(SETTLE).await;
            let each = |now: u64| {
                count(usize::try_from(now.saturating_sub(before)).unwrap_or(usize::MAX)) / 1024.0 / count(connections)
            };
            let idle = each(self.tree.usage()?.resident);
            for stream in open {
                stream.close().await?;
            }
            tokio::time::sleep(rest).await;
            Ok(Idle { open: idle, closed: each(self.tree.usage()?.resident) })
        })
    }
}

async fn used_once(entry: Arc<Entry>, address: std::net::SocketAddr) -> Result<Stream> {
    let mut stream = entry.open(address).await?;
    stream.write_u8(destination::ECHO).await?;
    echo(&mut stream).await?;
    Ok(stream)
}
