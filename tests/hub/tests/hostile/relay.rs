//! A relay between the gateway and the attacked member, which shows over which of the gateway's
//! connections a request went.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// The most connections that are counted separately.
const MOST: usize = 256;

/// Forwards bytes unchanged, until the runtime ends.
pub struct Relay {
    address: SocketAddr,
    seen: Arc<Seen>,
}

/// Bytes towards the member, by connection.
type Seen = [AtomicUsize; MOST];

// === impl Relay ===

impl Relay {
    /// Starts one in front of the server at `to`, `host:port`.
    pub async fn start(to: String) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let none: Seen = std::array::from_fn(|_| AtomicUsize::new(0));
        let (address, seen) = (listener.local_addr()?, Arc::new(none));
        let counted = Arc::clone(&seen);
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((gateway, _)) = listener.accept().await else { return };
                let Ok(member) = TcpStream::connect(&to).await else { continue };
                let ((from, mut back), (mut answers, towards)) = (gateway.into_split(), member.into_split());
                tokio::spawn(pass_on(from, towards, Arc::clone(&counted), number.min(MOST - 1)));
                tokio::spawn(async move {
                    let _ = copy(&mut answers, &mut back).await;
                });
            }
        });
        Ok(Self { address, seen })
    }

    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The bytes that the gateway has sent so far, by connection.
    pub fn bytes(&self) -> Vec<usize> {
        self.seen.iter().map(|bytes| bytes.load(Ordering::Relaxed)).collect()
    }
}

/// Counts bytes before it forwards them: an answer implies that its request was counted.
async fn pass_on(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, seen: Arc<Seen>, number: usize) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        seen[number].fetch_add(length, Ordering::Relaxed);
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
