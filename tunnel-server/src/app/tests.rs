use std::path::PathBuf;

use kit::client::Client;
use kit::pki::{Authority, Issued, Leaf, Trust};
use kit::wait::{free_port, within};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;
use tunnel::register::{self, Registration};
use tunnel::{ClusterName, Incoming, Serving, Settings};

use super::*;

const SOON: Duration = Duration::from_secs(20);

/// The files of a server, and the CA of its agents.
struct Fixture {
    directory: TempDir,
    identity: Issued,
}

// === impl Fixture ===

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = Authority::new("agents");
        authority.write_to(directory.path(), "agents-ca").unwrap();
        Authority::new("servers").issue(&Leaf::server("tunnel-server")).write_to(directory.path(), "serving").unwrap();
        let identity = authority.issue(&Leaf::client("system:tunnel-agent:east"));
        Self { directory, identity }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn start(&self, extra: &[&str]) -> anyhow::Result<Server> {
        let file = |flag: &str, name: &str| format!("--{flag}={}", self.path(name).display());
        let mut arguments = vec![
            "tunnel-server".to_owned(),
            "--agent-listen=127.0.0.1:0".to_owned(),
            "--admin-listen=127.0.0.1:0".to_owned(),
            file("agent-tls-cert-file", "serving.crt"),
            file("agent-tls-private-key-file", "serving.key"),
            file("agent-client-ca-file", "agents-ca.crt"),
            file("frontend-uds", "frontend.sock"),
        ];
        // An argument of the test replaces the one above with the same flag.
        let flag = |argument: &str| argument.split('=').next().map(str::to_owned);
        arguments.retain(|argument| extra.iter().all(|extra| flag(extra) != flag(argument)));
        arguments.extend(extra.iter().map(ToString::to_string));
        Server::start(arguments)
    }

    /// Links an agent of the cluster `east` that echoes.
    async fn link(&self, server: &Server) -> Serving {
        let client = Client::new(server.agent_address(), Trust::Anyone, Some(&self.identity));
        let stream = client.tls(&[]).await.unwrap();
        let cluster = ClusterName::parse("east").unwrap();
        let registration = Registration { cluster: cluster.clone(), agent: "a".into(), link: 0, version: "1".into() };
        let registered = register::register(stream, "tunnel-server", &registration, None, SOON).await.unwrap();
        let serving = Serving::default();
        let control = serving.clone();
        tokio::spawn(async move { tunnel::serve(registered.io, &Settings::default(), control, echo).await });
        within(SOON, "the link", server.registry().until_linked(&cluster)).await;
        serving
    }

    /// Opens a tunnelled byte stream as kube-apiserver does.
    async fn connect(&self) -> UnixStream {
        let mut stream = UnixStream::connect(self.path("frontend.sock")).await.unwrap();
        stream.write_all(b"CONNECT east:443 HTTP/1.1\r\nHost: east:443\r\n\r\n").await.unwrap();
        let mut head = vec![0; b"HTTP/1.1 200 Connection Established\r\n\r\n".len()];
        within(SOON, "the answer", stream.read_exact(&mut head)).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&head), "HTTP/1.1 200 Connection Established\r\n\r\n");
        stream
    }
}

async fn echo(incoming: Incoming) {
    let Ok(stream) = incoming.accept() else { return };
    let (mut from, mut to) = tokio::io::split(stream);
    if tokio::io::copy(&mut from, &mut to).await.is_ok() {
        let _ = to.shutdown().await;
    }
}

async fn echoes(stream: &mut UnixStream) {
    stream.write_all(b"ping").await.unwrap();
    let mut answer = [0; 4];
    within(SOON, "the echo", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"ping");
}

/// The status and the body of a path of the admin endpoint.
async fn admin(address: SocketAddr, path: &str) -> (u16, String) {
    let mut connection = Client::plain(address).h1().await.unwrap();
    let (head, body) = connection.call("GET", path, &[("Connection", "close")], b"").await.unwrap();
    (head.status, String::from_utf8(body.to_vec()).unwrap())
}

async fn ended(mut stream: UnixStream) -> bool {
    let mut rest = Vec::new();
    within(SOON, "the end", stream.read_to_end(&mut rest)).await.is_err() || rest.is_empty()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_lets_streams_end_and_nothing_new_begin() {
    let fixture = Fixture::new();
    let server = fixture.start(&[]).unwrap();
    server.wait_ready(SOON).unwrap();
    let agent = fixture.link(&server).await;
    let mut stream = fixture.connect().await;
    echoes(&mut stream).await;
    let (status, links) = admin(server.admin_address(), "/debug/links").await;
    assert!(status == 200 && links.contains("east"), "{links}");
    let address = server.admin_address();

    let stopping = spawn_blocking(move || server.stop());
    within(SOON, "being asked to leave", agent.asked_to_leave()).await;
    let (status, told) = admin(address, "/readyz").await;
    assert!(status == 503 && told.contains("shutdown"), "{told}");
    echoes(&mut stream).await;
    assert!(!stopping.is_finished());
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    within(SOON, "the end", stream.read_to_end(&mut rest)).await.unwrap();
    within(SOON, "the stop, long before the deadline", stopping).await.unwrap().unwrap();
    assert!(!fixture.path("frontend.sock").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_do_not_end_are_cut_at_the_deadline() {
    let fixture = Fixture::new();
    let server = fixture.start(&["--drain-timeout=300ms"]).unwrap();
    let _agent = fixture.link(&server).await;
    let stream = fixture.connect().await;
    let started = tokio::time::Instant::now();
    spawn_blocking(move || server.stop()).await.unwrap().unwrap();
    assert!(started.elapsed() < SOON / 2, "of thirty seconds, unless told otherwise: {:?}", started.elapsed());
    assert!(ended(stream).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_server_stops_at_once_and_its_port_is_free_again() {
    let fixture = Fixture::new();
    let listen = format!("--agent-listen=127.0.0.1:{}", free_port().await);
    let server = fixture.start(&[&listen]).unwrap();
    let agent = fixture.link(&server).await;
    let started = tokio::time::Instant::now();
    spawn_blocking(move || server.stop()).await.unwrap().unwrap();
    assert!(started.elapsed() < SOON / 2, "of thirty seconds: {:?}", started.elapsed());
    within(SOON, "being asked to leave", agent.asked_to_leave()).await;
    // This server is dropped, as if it had crashed.
    let server = fixture.start(&[&listen]).unwrap();
    let _agent = fixture.link(&server).await;
    let stream = fixture.connect().await;
    drop(server);
    assert!(ended(stream).await);
    fixture.start(&[&listen]).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ends_of_both_listeners_certificates_are_told_and_follow_their_files() {
    let fixture = Fixture::new();
    let issue = |days| {
        let leaf = Leaf::server("frontends").valid(time::Duration::ZERO, time::Duration::days(days));
        Authority::new("frontends").issue(&leaf).write_to(fixture.directory.path(), "frontends").unwrap();
    };
    issue(5);
    let file = |flag: &str, name: &str| format!("--{flag}={}", fixture.path(name).display());
    let server = fixture
        .start(&[
            "--frontend-listen=127.0.0.1:0",
            &file("frontend-tls-cert-file", "frontends.crt"),
            &file("frontend-tls-private-key-file", "frontends.key"),
            &file("frontend-client-ca-file", "agents-ca.crt"),
        ])
        .unwrap();
    let series = |name: &str| {
        format!("tunnel_server_certificate_expiry_timestamp_seconds{{file=\"{}\"}} ", fixture.path(name).display())
    };
    let end = async |name: &str| -> u64 {
        let (_, text) = admin(server.admin_address(), "/metrics").await;
        let line = text.lines().find_map(|line| line.strip_prefix(&series(name)));
        line.unwrap_or_else(|| panic!("no {name}: {text}")).parse().unwrap()
    };
    assert!(end("serving.crt").await > 0);
    let first = end("frontends.crt").await;
    issue(50);
    let moved = async || end("frontends.crt").await >= first + 44 * 24 * 60 * 60;
    kit::wait::becomes(SOON, "the new end", moved).await;
}

#[test]
fn what_cannot_be_bound_or_read_is_named() {
    let server = Fixture::new().start(&[]).unwrap();
    let taken = server.admin_address();
    let told = |extra: &str| format!("{:#}", Fixture::new().start(&[extra]).err().unwrap());
    assert!(told("--frontend-uds=/nowhere/x.sock").contains("/nowhere/x.sock"));
    assert!(told(&format!("--admin-listen={taken}")).contains(&taken.to_string()));
    assert!(told("--agent-client-ca-file=/nowhere/ca.crt").contains("/nowhere/ca.crt"));
    assert!(told("--kubeconfig=/nowhere/hub.yaml").contains("/nowhere/hub.yaml"));
    assert!(told(&format!("--agent-listen={}", server.agent_address())).contains("for tunnel-agents"));
}
