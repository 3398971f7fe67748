//! The binary under everything at once that makes it hold memory: it stays within it, and who does
//! nothing of the kind does not notice.
//!
//! Some seconds here; for longer by hand: `ATTACK_SECONDS=60 cargo test -p gateway --release --test
//! memory -- --nocapture`.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use kit::client::{Client, H2Connection, H2Options};
use kit::hub::ClusterSecret;
use kit::member::{FakeMember, MemberOptions, Reply, StreamSender, Streams};
use kit::pki::{Authority, Leaf, Trust};
use kit::process::LoggedProcess;
use kit::wait::{WAIT, becomes, unless_quiet, within};
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout};

/// What the process may come to use, and what it may hold: a quarter, as it would by default under
/// such a limit.
const MEMORY: u64 = 512 << 20;
const HELD: &str = "--max-held-bytes=128Mi";
const STRANGERS: usize = 1000;
/// Of the user who does nothing of the kind, meanwhile: a thousand a second on two free cores.
const LEAST_ANSWERS: u64 = 50;
/// How long an attacker keeps what it has before it begins anew.
const KEEP: Duration = Duration::from_secs(2);
/// Streams of one connection.
const STREAMS: usize = 200;
const QUIET: Duration = Duration::from_millis(200);
const MEMBER: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy";
const FIFTH: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/fifth/proxy";

/// All of them may use every cluster.
const POLICY: &str = r#"rules: [{users: [answers, uploads, streams, heads, fifth], clusters: ["*"], verbs: ["*"]}]"#;

/// The gateway, its member, and whoever comes.
struct Siege {
    process: LoggedProcess,
    client: Client,
    #[allow(dead_code, reason = "it is there for the gateway")]
    member: FakeMember,
    fifth: Fifth,
    #[allow(dead_code, reason = "the files of the process live in it")]
    directory: TempDir,
}

/// The user who does nothing of the kind, with a member of its own, on a thread of its own: how
/// long it waits is not to be how busy the attackers are.
struct Fifth {
    url: String,
    ca: String,
    start: oneshot::Sender<Client>,
    answers: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

// === impl Siege ===

impl Siege {
    async fn begin() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (member, fifth) = (member().await, Fifth::prepare());
        let authority = Authority::new("gateway-ca");
        let files = authority.issue(&Leaf::server("gateway")).write_to(directory.path(), "gateway").expect("written");
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("the directory is writable");
            path.display().to_string()
        };
        let tokens = ["answers", "uploads", "streams", "heads", "fifth"].map(|user| format!("{user},{user},{user}\n"));
        let clusters = directory.path().join("clusters");
        std::fs::create_dir(&clusters).expect("the directory is writable");
        for (name, url, ca) in [("c1", &member.url(), &member.ca_pem()), ("fifth", &fifth.url, &fifth.ca)] {
            let secret = ClusterSecret::new("vela-system", name).endpoint(url).ca(ca).token("t");
            let mut manifest = Value::from(secret);
            manifest["apiVersion"] = "v1".into();
            manifest["kind"] = "Secret".into();
            write(&format!("clusters/{name}.json"), &manifest.to_string());
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_cluster-gateway"));
        command
            .env_clear()
            .args(["--standalone", HELD, "--secure-port=0", "--bind-address=127.0.0.1", "--log-format=json"])
            .arg(format!("--clusters-dir={}", clusters.display()))
            .arg(format!(
                "--token-auth-file={}",
                write("tokens.csv", &(tokens.concat() + "root,root,root,system:masters\n"))
            ))
            .arg(format!("--standalone-policy={}", write("policy.yaml", POLICY)))
            .arg(format!("--tls-cert-file={}", files.certificate.display()))
            .arg(format!("--tls-private-key-file={}", files.key.display()));
        let process = LoggedProcess::start(&mut command);
        let address = process.line("serving")["address"].as_str().expect("text").parse().expect("an address");
        let client = Client::new(address, Trust::Authority(&authority), None);
        Self { process, client, member, fifth, directory }
    }

    /// A connection whose streams take next to nothing.
    async fn narrow(client: Client) -> Option<H2Connection> {
        client.h2_options(H2Options { stream_window: 1 << 10, ..H2Options::default() }).h2().await.ok()
    }
}

/// Answers that have no end, answers that never come, and small ones.
async fn member() -> FakeMember {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on("/endless", |_| {
        let (sender, reply) = Reply::stream(200, &[]);
        tokio::spawn(feed(sender));
        reply
    });
    member.on("/never", |_| Reply::Never);
    member.on("/small", |_| Reply::full(200, &[], "small"));
    member
}

async fn feed(stream: StreamSender) {
    let piece = Bytes::from(vec![b'x'; 64 << 10]);
    while !stream.is_gone() {
        let _ = unless_quiet(QUIET, stream.send(piece.clone())).await;
    }
}

/// Answers that nobody reads, over HTTP/2.
async fn unread_answers(client: Client) {
    let Some(connection) = Siege::narrow(client).await else { return };
    let headers = [("authorization", "Bearer answers")];
    loop {
        let mut open = Vec::new();
        for _ in 0..STREAMS {
            let stream = connection.send(Method::GET, &format!("{MEMBER}/endless"), &headers, true).await;
            let Ok(stream) = stream else { return };
            open.push(stream);
        }
        sleep(KEEP).await;
    }
}

/// The same over HTTP/1.1: a connection each.
async fn unread_streams(client: Client) {
    let mut open = Vec::new();
    for _ in 0..STREAMS / 4 {
        let Ok(mut connection) = client.h1().await else { break };
        let headers = [("authorization", "Bearer streams")];
        let _ = connection.request("GET", &format!("{MEMBER}/endless"), &headers, b"").await;
        open.push(connection);
    }
    sleep(3 * KEEP).await;
}

/// Uploads that the member does not read, in short frames and in long ones.
async fn unread_uploads(client: Client) {
    let Ok(connection) = client.h2().await else { return };
    let headers = [("authorization", "Bearer uploads")];
    loop {
        let mut open = Vec::new();
        // Its windows, the gateway's and the member's, are filled.
        for _ in 0..STREAMS / 4 {
            let upload = connection.send(Method::POST, &format!("{MEMBER}/never"), &headers, false).await;
            let Ok(mut upload) = upload else { return };
            for _ in 0..50 {
                let Some(Ok(())) = unless_quiet(QUIET, upload.send(&b"0123456789"[..], false)).await else { break };
            }
            let _ = upload.fill(QUIET / 10).await;
            open.push(upload);
        }
        sleep(KEEP).await;
    }
}

/// Requests with large heads that the member does not answer.
async fn large_heads(client: Client) {
    let Ok(connection) = client.h2().await else { return };
    let value = "x".repeat(300 << 10);
    let headers = [("authorization", "Bearer heads"), ("x-large", value.as_str())];
    loop {
        let mut open = Vec::new();
        for _ in 0..STREAMS {
            let stream = connection.send(Method::GET, &format!("{MEMBER}/never"), &headers, true).await;
            let Ok(stream) = stream else { return };
            open.push(stream);
        }
        sleep(KEEP).await;
    }
}

/// A head that is not finished, an idle connection, or a preface and nothing else.
async fn stranger(client: Client, number: usize) {
    let until_closed = async {
        match number % 3 {
            0 => {
                let Ok(mut connection) = client.h1().await else { return };
                let head = [b"GET / HTTP/1.1\r\nHost: a\r\nX: ".to_vec(), vec![b'x'; 700 << 10]].concat();
                if connection.send(head).await.is_ok() {
                    let _ = connection.read_to_end().await;
                }
            }
            1 => {
                let Ok(mut connection) = client.h1().await else { return };
                let _ = connection.read_to_end().await;
            }
            _ => {
                let Ok(connection) = client.h2().await else { return };
                let _ = connection.closed().await;
            }
        }
    };
    let _ = timeout(WAIT, until_closed).await;
    // Its handshakes are to cost the machine less than everything else.
    sleep(KEEP).await;
}

// === impl Fifth ===

impl Fifth {
    fn prepare() -> Self {
        let ((where_, found), (start, started)) = (mpsc::channel(), oneshot::channel());
        let answers = Arc::<AtomicU64>::default();
        let is_over = Arc::<AtomicBool>::default();
        let (counted, ends) = (Arc::clone(&answers), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let member = FakeMember::start(MemberOptions::default()).await;
                member.on("/small", |_| Reply::full(200, &[], "small"));
                where_.send((member.url(), member.ca_pem())).expect("the test goes on");
                let Ok(client) = started.await else { return };
                Self::go_on(client, member.streams("/api/v1/pods"), &counted, &ends).await;
            });
        });
        let (url, ca) = found.recv().expect("the member starts");
        Self { url, ca, start, answers, is_over, thread }
    }

    /// Gets and watches until all is over; whatever is not answered in time fails.
    async fn go_on(client: Client, mut watches: Streams, answers: &AtomicU64, is_over: &AtomicBool) {
        let connection = client.h2().await.expect("a connection");
        let headers = [("authorization", "Bearer fifth")];
        let (small, watch) = (format!("{FIFTH}/small"), format!("{FIFTH}/api/v1/pods?watch=true"));
        let is_there = async || connection.get(&small, &headers).await.is_ok_and(|head| head.status() == 200);
        becomes(WAIT, "a member", is_there).await;
        let mut watch = connection.get(&watch, &headers).await.expect("a head").body;
        let (_, events) = watches.next().await;
        for number in 0_u64.. {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let event = format!("{number:>20}\n");
            assert!(events.send(event.clone()).await, "the watch was ended");
            let mut line = Vec::new();
            while line.len() < event.len() {
                let piece = within(WAIT, "an event", watch.chunk()).await;
                let Some(Ok(piece)) = piece else { panic!("the watch ended: {piece:?}") };
                line.extend_from_slice(&piece);
            }
            assert_eq!(line, event.into_bytes());
            let answer = async {
                let answer = connection.get(&small, &headers).await.expect("a head");
                (answer.status(), answer.text().await.expect("a body"))
            };
            assert_eq!(within(WAIT, "an answer", answer).await, (200, "small".to_owned()));
            answers.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Does it again and again.
fn keep_on<F: Future<Output = ()> + 'static>(tasks: &mut JoinSet<()>, attack: impl Fn() -> F + 'static) {
    tasks.spawn_local(async move {
        loop {
            attack().await;
        }
    });
}

#[tokio::test]
async fn everything_at_once_stays_within_memory_and_disturbs_nobody_else() {
    // What the kit waits for stays on its thread.
    LocalSet::new().run_until(siege()).await;
}

#[expect(clippy::print_stderr, reason = "what it is run for by hand")]
fn print_figures(resident: u64, answers: u64) {
    eprintln!("{} MiB resident at most; the fifth user had {answers} answers and as many events", resident >> 20);
}

async fn siege() {
    let seconds = std::env::var("ATTACK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let siege = Siege::begin().await;
    let Fifth { start, answers, is_over, thread, .. } = siege.fifth;
    assert!(start.send(siege.client.clone()).is_ok(), "it waits for this");
    // Strangers of the same address would have their places before they are known.
    becomes(WAIT, "an answer", async || answers.load(Ordering::Relaxed) > 0).await;
    let root = siege.client.h2().await.expect("a connection");
    assert_eq!(sheds(&root).await, 0);
    let mut attackers = JoinSet::new();
    for _ in 0..3 {
        let client = siege.client.clone();
        keep_on(&mut attackers, move || unread_answers(client.clone()));
        let client = siege.client.clone();
        keep_on(&mut attackers, move || unread_streams(client.clone()));
        let client = siege.client.clone();
        keep_on(&mut attackers, move || unread_uploads(client.clone()));
        let client = siege.client.clone();
        keep_on(&mut attackers, move || large_heads(client.clone()));
    }
    sleep(KEEP).await;
    for number in 0..STRANGERS {
        let client = siege.client.clone();
        keep_on(&mut attackers, move || stranger(client.clone(), number));
    }
    becomes(WAIT, "somebody who gives way", async || sheds(&root).await > 0).await;
    let before = answers.load(Ordering::Relaxed);
    sleep(Duration::from_secs(seconds)).await;
    is_over.store(true, Ordering::Relaxed);
    // The attack goes on meanwhile: the last answer is one of under attack, too.
    let joined = tokio::task::spawn_blocking(|| thread.join()).await.expect("no panic");
    assert!(joined.is_ok(), "the fifth user was disturbed");
    let (resident, answers) = (siege.process.most_resident(), answers.load(Ordering::Relaxed) - before);
    attackers.shutdown().await;
    print_figures(resident, answers);
    assert!(resident < MEMORY, "{} MiB", resident >> 20);
    assert!(answers >= LEAST_ANSWERS, "{answers} answers");
}

/// How often something had to give way.
async fn sheds(root: &H2Connection) -> u64 {
    let metrics = root.get("/metrics", &[("authorization", "Bearer root")]).await.expect("a head");
    let text = metrics.text().await.expect("a body");
    let count = text.lines().find_map(|line| line.strip_prefix("cluster_gateway_sheds_total ")?.parse().ok());
    count.expect("a metric")
}
