//! Requests, as kubectl's would come through the hub: HTTP/2 and HTTP/1.1, always [`IN_FLIGHT`] in
//! flight.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::Method;
use kit::client::{Client, H1Connection, H2Connection};
use tokio::task::JoinSet;

/// Streams of one HTTP/2 connection, or connections of HTTP/1.1.
const IN_FLIGHT: u64 = 8;
/// Bytes of a keystroke, framed.
const WORD: usize = 64;

/// The content of each request.
pub struct Asked {
    path: String,
    headers: Vec<(&'static str, String)>,
}

/// Kept connections, one request on each.
pub struct H1Requests {
    connections: Vec<H1Connection>,
    asked: Arc<Asked>,
}

// === impl Asked ===

impl Asked {
    pub fn new(path: &str, headers: &[(&'static str, String)]) -> Self {
        let usual = [
            ("accept", "application/json"),
            ("accept-encoding", "gzip"),
            ("user-agent", "kubectl/v1.33.1 (linux/amd64) kubernetes/8adc0f0"),
        ];
        let usual = usual.map(|(name, value)| (name, value.to_owned()));
        Self { path: path.to_owned(), headers: usual.into_iter().chain(headers.iter().cloned()).collect() }
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn headers(&self) -> Vec<(&str, &str)> {
        self.headers.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }
}

/// `count` GETs.
pub async fn h2(connection: &Arc<H2Connection>, asked: &Arc<Asked>, count: u64) -> Result<()> {
    let started = Arc::new(AtomicU64::new(0));
    let mut lanes = JoinSet::new();
    for _ in 0..IN_FLIGHT {
        let (connection, asked, started) = (connection.clone(), asked.clone(), started.clone());
        lanes.spawn(async move {
            while started.fetch_add(1, Ordering::Relaxed) < count {
                download(&connection, &asked).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(lane) = lanes.join_next().await {
        lane.context("a lane of requests")??;
    }
    Ok(())
}

/// One GET, its answer read to the end.
pub async fn download(connection: &H2Connection, asked: &Asked) -> Result<()> {
    let mut answer = connection.get(&asked.path, &asked.headers()).await?;
    ensure!(answer.status() == 200, "{} for {}", answer.status(), asked.path);
    while let Some(chunk) = answer.body.chunk().await {
        chunk?;
    }
    Ok(())
}

/// One PUT of `size` bytes.
pub async fn upload(connection: &H2Connection, asked: &Asked, size: usize) -> Result<()> {
    let mut exchange = connection.send(Method::PUT, &asked.path, &asked.headers(), false).await?;
    exchange.send(Bytes::from(vec![b'1'; size]), true).await?;
    let answer = exchange.response().await?;
    ensure!(answer.status() == 200, "{} for {}", answer.status(), asked.path);
    Ok(())
}

/// A connection that was upgraded to `protocol`.
pub async fn upgraded(client: &Client, asked: &Asked, protocol: &str) -> Result<H1Connection> {
    let mut connection = client.h1().await?;
    let head = connection.upgrade("POST", &asked.path, protocol, &asked.headers()).await?;
    ensure!(head.status == 101, "{} for {}", head.status, asked.path);
    Ok(connection)
}

/// Sends a few bytes and waits until they are back, `count` times.
pub async fn echo(connection: &mut H1Connection, count: u64) -> Result<()> {
    for _ in 0..count {
        connection.send([b'1'; WORD]).await?;
        ensure!(connection.read_exact(WORD).await? == [b'1'; WORD][..], "other bytes came back");
    }
    Ok(())
}

// === impl H1Requests ===

impl H1Requests {
    pub async fn open(client: &Client, asked: Asked) -> Result<Self> {
        let mut connections = Vec::new();
        for _ in 0..IN_FLIGHT {
            connections.push(client.h1().await?);
        }
        Ok(Self { connections, asked: Arc::new(asked) })
    }

    /// `count` GETs, as many on each connection.
    pub async fn send(&mut self, count: u64) -> Result<()> {
        let mut lanes = JoinSet::new();
        for mut connection in self.connections.drain(..) {
            let asked = self.asked.clone();
            lanes.spawn(async move {
                for _ in 0..count / IN_FLIGHT {
                    let (head, _) = connection.call("GET", &asked.path, &asked.headers(), &[]).await?;
                    ensure!(head.status == 200, "{} for {}", head.status, asked.path);
                }
                Ok(connection)
            });
        }
        while let Some(lane) = lanes.join_next().await {
            self.connections.push(lane.context("a lane of requests")??);
        }
        Ok(())
    }
}
