//! An agent in this process, with the files it needs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use kit::client::Client;
use kit::pki::Authority;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tunnel::{Destination, Link, OpenError, Refusal, Stream};
use tunnel_agent::Agent;

use crate::server::FakeServer;

pub const PATIENCE: Duration = Duration::from_secs(10);

/// The files and the signing authority.
pub struct Fixture {
    pub authority: Authority,
    pub directory: TempDir,
}

// === impl Fixture ===

impl Fixture {
    /// With a CA and a token in the files that [`Fixture::arguments`] names.
    pub fn new() -> Self {
        let fixture = Self { authority: Authority::new("tunnel-ca"), directory: tempfile::tempdir().unwrap() };
        fixture.authority.write_to(fixture.directory.path(), "ca").unwrap();
        fixture.write_token("first");
        fixture
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn write_token(&self, token: &str) {
        // Atomically, as mounted Secrets change.
        std::fs::write(self.path("token.new"), token).unwrap();
        std::fs::rename(self.path("token.new"), self.path("token")).unwrap();
    }

    pub async fn server(&self, names: &[&str]) -> FakeServer {
        FakeServer::start(&self.authority, names).await
    }

    /// Arguments with a token, for the API server at `api_server`.
    pub fn arguments(&self, servers: &[&FakeServer], api_server: SocketAddr) -> Vec<String> {
        let mut arguments = vec!["tunnel-agent".to_owned(), "--cluster=c1".into(), "--admin-listen=127.0.0.1:0".into()];
        arguments.push(format!("--api-server={api_server}"));
        arguments.push(format!("--server-ca-file={}", self.path("ca.crt").display()));
        arguments.push(format!("--token-file={}", self.path("token").display()));
        arguments.extend(servers.iter().map(|server| format!("--server={}", server.address)));
        arguments
    }

    /// An agent of those servers, whose API server is the first of them.
    pub fn agent(&self, servers: &[&FakeServer], extra: &[&str]) -> Agent {
        let mut arguments = self.arguments(servers, servers[0].address);
        arguments.extend(extra.iter().map(ToString::to_string));
        Agent::start(arguments).unwrap()
    }
}

/// Waits for readiness from within a test's runtime.
pub fn ready(agent: &Agent) {
    tokio::task::block_in_place(|| agent.wait_ready(PATIENCE)).unwrap();
}

/// Stops the agent as SIGTERM does.
pub async fn stop(agent: Agent) {
    tokio::task::spawn_blocking(|| agent.stop().unwrap()).await.unwrap();
}

pub async fn open(link: &Link, to: &str) -> Result<Stream, OpenError> {
    link.open(&Destination::parse(to).unwrap(), None).await
}

pub async fn refused(link: &Link, to: &str) -> Refusal {
    match open(link, to).await {
        Err(OpenError::Refused(refusal)) => refusal,
        other => panic!("{to}: {other:?} instead of a refusal"),
    }
}

/// Echoes all bytes, for any number of clients.
pub async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let (mut read, mut write) = socket.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
        }
    });
    address
}

/// Sends `word` and gets it back.
pub async fn echoes(stream: &mut Stream, word: &[u8]) {
    kit::wait::within(PATIENCE, "an echo", async {
        stream.write_all(word).await.unwrap();
        stream.flush().await.unwrap();
        let mut back = vec![0; word.len()];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(back, word);
    })
    .await;
}

/// Status and body of a path of the admin endpoint.
pub async fn admin(agent: &Agent, path: &str) -> (u16, String) {
    let mut connection = Client::plain(agent.admin_address()).h1().await.unwrap();
    let (head, body) = connection.call("GET", path, &[("Connection", "close")], b"").await.unwrap();
    (head.status, String::from_utf8(body.to_vec()).unwrap())
}

/// The value of a series, labels as they are written.
pub async fn metric(agent: &Agent, series: &str) -> f64 {
    let (_, text) = admin(agent, "/metrics").await;
    kit::exposition::value(&text, series).unwrap_or_else(|| panic!("no {series} in:\n{text}"))
}
