//! Destinations behind an agent: each does one thing to every connection it gets.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::pattern;

/// How a connection to a site ended.
pub type Ending = io::Result<u64>;

/// Endings remembered while no test asks for them; a site whose test does not care loses the rest.
const ENDINGS: usize = 8 << 10;

/// A listener on loopback. Dropping it closes it, with all its connections.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    counts: Arc<Counts>,
    endings: tokio::sync::Mutex<mpsc::Receiver<Ending>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicUsize,
    open: AtomicUsize,
}

struct Open(Arc<Counts>);

// === impl Site ===

impl Site {
    /// Runs `script` on every connection; [`Site::ending`] returns its result.
    pub async fn start<F>(script: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Ending> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has free ports");
        Self::on(listener, script)
    }

    /// As [`Site::start`], on a listener of the caller's.
    pub fn on<F>(listener: TcpListener, script: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Ending> + Send + 'static,
    {
        let address = listener.local_addr().expect("a bound socket has an address");
        let counts = Arc::<Counts>::default();
        let (ended, endings) = mpsc::channel(ENDINGS);
        let shared = counts.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let Ok((socket, _)) = listener.accept().await else { continue };
                let _ = socket.set_nodelay(true); // fails only on a socket that is gone already
                let (open, ended, run) = (Open::new(&shared), ended.clone(), script(socket));
                connections.spawn(async move {
                    let ending = run.await;
                    drop(open);
                    let _ = ended.try_send(ending); // full or no receiver: it is not needed
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, counts, endings: endings.into(), task }
    }

    /// Sends everything back; half-closes when its caller has.
    pub async fn echo() -> Self {
        Self::start(|mut socket| async move {
            let (mut reader, mut writer) = socket.split();
            let copied = tokio::io::copy(&mut reader, &mut writer).await?;
            writer.shutdown().await?;
            Ok(copied)
        })
        .await
    }

    /// Speaks first, then echoes.
    pub async fn banner(text: &'static [u8]) -> Self {
        Self::start(move |mut socket| async move {
            socket.write_all(text).await?;
            let (mut reader, mut writer) = socket.split();
            tokio::io::copy(&mut reader, &mut writer).await
        })
        .await
    }

    /// Never reads, never writes, holds until its caller's connection is gone for good.
    pub async fn sink() -> Self {
        Self::start(|socket| async move {
            loop {
                // Only errors are waited for: unread bytes keep a socket readable, and writable
                // says nothing.
                let ready = socket.ready(tokio::io::Interest::ERROR).await?;
                if ready.is_error() {
                    return Err(socket.take_error()?.unwrap_or_else(|| io::ErrorKind::ConnectionReset.into()));
                }
            }
        })
        .await
    }

    /// Sends the pattern as fast as it is taken, for ever.
    pub async fn flood() -> Self {
        Self::start(|mut socket| async move {
            pattern::write(&mut socket, u64::MAX).await?;
            Ok(0)
        })
        .await
    }

    /// Sends `bytes` of the pattern, and closes at once.
    pub async fn source(bytes: u64) -> Self {
        Self::start(move |mut socket| async move {
            pattern::write(&mut socket, bytes).await?;
            Ok(bytes)
        })
        .await
    }

    /// Reads the pattern to its end, and closes.
    pub async fn collect() -> Self {
        Self::start(|mut socket| async move { pattern::read_to_end(&mut socket).await }).await
    }

    /// Reads the pattern to its end, and only then answers with how many bytes there were, as text.
    pub async fn count() -> Self {
        Self::start(|mut socket| async move {
            let read = pattern::read_to_end(&mut socket).await?;
            socket.write_all(read.to_string().as_bytes()).await?;
            socket.shutdown().await?;
            Ok(read)
        })
        .await
    }

    /// Says `goodbye` and half-closes, and reads the pattern to its end after that.
    pub async fn speaks_then_listens(goodbye: &'static [u8]) -> Self {
        Self::start(move |mut socket| async move {
            socket.write_all(goodbye).await?;
            socket.shutdown().await?;
            pattern::read_to_end(&mut socket).await
        })
        .await
    }

    /// Sends and takes `bytes` of the pattern at the same time, then closes.
    pub async fn exchange(bytes: u64) -> Self {
        Self::start(move |mut socket| async move {
            let (mut reader, mut writer) = socket.split();
            tokio::try_join!(pattern::write(&mut writer, bytes), pattern::read(&mut reader, bytes))?;
            Ok(bytes)
        })
        .await
    }

    /// Sends `first`, waits for one byte, and resets.
    pub async fn reset_after(first: Bytes) -> Self {
        Self::start(move |mut socket| {
            let first = first.clone();
            async move {
                socket.write_all(&first).await?;
                socket.read_u8().await?;
                socket.set_zero_linger()?;
                Ok(0)
            }
        })
        .await
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `127.0.0.1:port`, as a `CONNECT` names it.
    pub fn authority(&self) -> String {
        self.address.to_string()
    }

    /// Connections accepted so far.
    pub fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::SeqCst)
    }

    /// Connections whose script still runs.
    pub fn open(&self) -> usize {
        self.counts.open.load(Ordering::SeqCst)
    }

    /// The next connection's ending, in order of their ends.
    pub async fn ending(&self) -> Ending {
        let mut endings = self.endings.lock().await;
        let next = kit::wait::within(kit::wait::WAIT, "the end of a connection to a site", endings.recv());
        next.await.expect("the site lives")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

// === impl Open ===

impl Open {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.accepted.fetch_add(1, Ordering::SeqCst);
        counts.open.fetch_add(1, Ordering::SeqCst);
        Self(counts.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}
