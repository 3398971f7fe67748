//! The binary, with its default flags, under everything at once that makes it hold memory: it stays
//! within its limit, and the well-behaved user does not notice.
//!
//! Some seconds here; for longer by hand: `ATTACK_SECONDS=60 cargo test -p gateway --release --test
//! memory -- --nocapture`.

mod attacks;
mod fifth;
mod strangers_clusters;

use std::net::IpAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kit::client::{Client, H2Connection, H2Options};
use kit::hub::ClusterSecret;
use kit::member::raw::{Act, RawMember};
use kit::member::{FakeMember, MemberOptions, Reply};
use kit::others::Moment;
use kit::pki::{ALPN_H2, Authority, Leaf, Trust};
use kit::process::LoggedProcess;
use kit::wait::{WAIT, becomes};
use serde_json::Value;
use tempfile::TempDir;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::sleep;

use self::fifth::Fifth;

/// Memory that the process may use. Its kernel refuses it more (`RLIMIT_DATA`): the limit is not
/// only a figure that the test checks.
const MEMORY: u64 = 512 << 20;
const STRANGERS: usize = 1000;
/// Addresses of the strangers: at each, fewer of them than may stay there.
const STRANGERS_ADDRESSES: usize = 20;
/// Attackers that send as much as the gateway accepts.
const LOUD: usize = 8;
/// Least number of the well-behaved user's answers meanwhile, each in time: the attack lasts until
/// they are there. A thousand a second on two free cores, and a few where twenty others want them
/// too.
const LEAST_ANSWERS: u64 = 10;
/// Limit for 99 of 100 of its events and answers, where nothing else runs; where others take a part
/// of the machine, with what they leave of it.
const SOON: Duration = Duration::from_secs(5);
/// Least part of the machine that is left to the gateway, in the limits of times.
const LEAST_SHARE: f64 = 0.1;
/// What no share of the machine excuses: [`SOON`] with [`LEAST_SHARE`]. Shorter times are judged
/// together, at the end.
const STUCK: Duration = SOON.saturating_mul(100);
/// Times that requests are given up and made anew.
const ROUNDS: usize = 4;
const MEMBER: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy";
/// Path of a member that reads nothing.
const DEAF: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/deaf/proxy";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

const USERS: [&str; 9] =
    ["answers", "watches", "uploads", "bytewise", "streams", "heads", "largest", "cancelled", "fifth"];

/// The gateway, its members, and its callers.
struct Siege {
    process: LoggedProcess,
    client: Client,
    #[allow(dead_code, reason = "they are there for the gateway")]
    members: (FakeMember, RawMember),
    fifth: Fifth,
    #[allow(dead_code, reason = "the files of the process live in it")]
    directory: TempDir,
}

// === impl Siege ===

impl Siege {
    async fn begin() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let (member, fifth) = (member().await, Fifth::prepare());
        let deaf = RawMember::always(vec![Act::Tls(ALPN_H2), Act::Write(SETTINGS.into()), Act::Hold]).await;
        let authority = Authority::new("gateway-ca");
        let files = authority.issue(&Leaf::server("gateway")).write_to(directory.path(), "gateway").expect("written");
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).expect("the directory is writable");
            path.display().to_string()
        };
        let tokens = USERS.map(|user| format!("{user},{user},{user}\n"));
        // All of them may use every cluster.
        let policy = format!(r#"rules: [{{users: {USERS:?}, clusters: ["*"], verbs: ["*"]}}]"#);
        let clusters = directory.path().join("clusters");
        std::fs::create_dir(&clusters).expect("the directory is writable");
        let registered = [
            ("c1", &member.url(), &member.ca_pem()),
            ("deaf", &deaf.url(), &deaf.ca_pem()),
            ("fifth", &fifth.url, &fifth.ca),
        ];
        for (name, url, ca) in registered {
            let secret = ClusterSecret::new("vela-system", name).endpoint(url).ca(ca).token("t");
            let mut manifest = Value::from(secret);
            manifest["apiVersion"] = "v1".into();
            manifest["kind"] = "Secret".into();
            write(&format!("clusters/{name}.json"), &manifest.to_string());
        }
        let mut command = Command::new("sh");
        command
            .env_clear()
            // `RLIMIT_DATA` counts addresses, which jemalloc keeps when it gives memory back; a
            // container's limit counts pages.
            .env("_RJEM_MALLOC_CONF", "retain:false")
            .args(["-c", &format!("ulimit -d {} && exec \"$0\" \"$@\"", MEMORY >> 10)])
            .arg(env!("CARGO_BIN_EXE_cluster-gateway"))
            .args(["--standalone", "--secure-port=0", "--bind-address=127.0.0.1", "--log-format=json"])
            .arg(format!("--clusters-dir={}", clusters.display()))
            .arg(format!(
                "--token-auth-file={}",
                write("tokens.csv", &(tokens.concat() + "root,root,root,system:masters\n"))
            ))
            .arg(format!("--standalone-policy={}", write("policy.yaml", &policy)))
            .arg(format!("--tls-cert-file={}", files.certificate.display()))
            .arg(format!("--tls-private-key-file={}", files.key.display()));
        let process = LoggedProcess::start(&mut command);
        let address = process.line("serving")["address"].as_str().expect("text").parse().expect("an address");
        let client = Client::new(address, Trust::Authority(&authority), None);
        Self { process, client, members: (member, deaf), fifth, directory }
    }
}

/// All attackers but those that only come and stay.
fn attack(attackers: &mut JoinSet<()>, client: &Client) {
    for _ in 0..3 {
        let endless = |client| attacks::unread_answers(client, "answers", format!("{MEMBER}/endless"));
        keep_on(attackers, client, endless);
        let watches = |client| attacks::unread_answers(client, "watches", format!("{MEMBER}/api/v1/pods?watch=1"));
        keep_on(attackers, client, watches);
        keep_on(attackers, client, attacks::unread_streams);
        keep_on(attackers, client, attacks::unread_uploads);
        keep_on(attackers, client, attacks::bytewise_uploads);
        keep_on(attackers, client, attacks::large_heads);
        keep_on(attackers, client, attacks::largest_heads);
        keep_on(attackers, client, attacks::cancelled_heads);
    }
    for bytes in [attacks::heads_of_fields(), attacks::frames_of_a_byte()] {
        let bytes: Arc<[u8]> = bytes.into();
        for _ in 0..LOUD {
            let bytes = Arc::clone(&bytes);
            keep_on(attackers, client, move |client| attacks::say(client, Arc::clone(&bytes)));
        }
    }
}

/// Does it again and again.
fn keep_on<F: Future<Output = ()> + 'static>(
    attackers: &mut JoinSet<()>,
    client: &Client,
    attack: impl Fn(Client) -> F + 'static,
) {
    let client = client.clone();
    attackers.spawn_local(async move {
        loop {
            attack(client.clone()).await;
            // One that is refused at once would take all of the machine's time, and hold no memory.
            sleep(attacks::PAUSE).await;
        }
    });
}

/// Answers that have no end, answers that never come, and small ones.
async fn member() -> FakeMember {
    let member = FakeMember::start(MemberOptions::default()).await;
    for endless in ["/endless", "/api/v1/pods"] {
        member.on(endless, |_| {
            let (sender, reply) = Reply::stream(200, &[]);
            tokio::spawn(attacks::feed(sender));
            reply
        });
    }
    member.on("/never", |_| Reply::Never);
    member
}

/// Memory of the process after the attack; it has to be still running.
async fn resident_after(attack: impl AsyncFnOnce(&Client, &LoggedProcess)) -> u64 {
    let siege = Siege::begin().await;
    attack(&siege.client, &siege.process).await;
    let root = siege.client.h2().await.expect("a connection");
    assert!(sheds(&root).await < u64::MAX, "it answers");
    let resident = siege.process.most_resident();
    print(&format!("{} MiB resident at most", resident >> 20));
    resident
}

/// Each has the library make 12 MB of 160 KiB.
#[tokio::test]
async fn heads_of_fields_of_a_byte_take_no_more_than_they_may() {
    let bytes = attacks::heads_of_fields();
    let attack = async |client: &Client, process: &LoggedProcess| {
        attacks::at_once(client, process, 100, &bytes).await;
    };
    let resident = resident_after(attack).await;
    assert!(resident < MEMORY, "{} MiB", resident >> 20);
}

/// Each of them has the library keep 2 MB for 41 KB.
#[tokio::test]
async fn frames_of_a_byte_take_no_more_than_they_may() {
    let bytes = attacks::frames_of_a_byte();
    let attack = async |client: &Client, process: &LoggedProcess| {
        attacks::at_once(client, process, 240, &bytes).await;
    };
    let resident = resident_after(attack).await;
    assert!(resident < MEMORY / 2, "{} MiB", resident >> 20);
}

/// 600 KB each, of a user who may have 2,000 in flight, and who goes on when these were given up:
/// what the member has not read must not add up.
#[tokio::test]
async fn heads_of_cancelled_requests_take_no_more_than_they_may() {
    let attack = async |client: &Client, _: &LoggedProcess| {
        for _ in 0..ROUNDS {
            let connections = (0..8).map(|_| attacks::cancelled_heads(client.clone()));
            futures_util::future::join_all(connections).await;
        }
    };
    let resident = resident_after(attack).await;
    assert!(resident < MEMORY / 3, "{} MiB", resident >> 20);
}

/// All of their labels, kept, are half a gibibyte.
#[tokio::test]
async fn labels_of_strangers_clusters_take_no_more_than_they_may() {
    let resident = strangers_clusters::resident_after_lists().await;
    print(&format!("{} MiB resident at most", resident >> 20));
    assert!(resident < MEMORY / 2, "{} MiB", resident >> 20);
}

#[tokio::test]
async fn everything_at_once_stays_within_memory_and_disturbs_nobody_else() {
    // What the kit waits for stays on its thread.
    LocalSet::new().run_until(siege()).await;
}

#[expect(clippy::print_stderr, reason = "what it is run for by hand")]
fn print(figures: &str) {
    eprintln!("{figures}");
}

async fn siege() {
    let seconds = std::env::var("ATTACK_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let siege = Siege::begin().await;
    let Fifth { start, answers, is_over, thread, .. } = siege.fifth;
    // Attackers give up sooner.
    let patient = siege.client.clone().h2_options(H2Options { wait: STUCK, ..H2Options::default() });
    assert!(start.send(patient.clone()).is_ok(), "it waits for this");
    // Strangers of the same address would have their places before they are known.
    becomes(WAIT, "an answer", async || answers.load(Ordering::Relaxed) > 0).await;
    let root = patient.h2().await.expect("a connection");
    assert_eq!(sheds(&root).await, 0);
    let mut attackers = JoinSet::new();
    attack(&mut attackers, &siege.client);
    becomes(3 * WAIT, "somebody who gives way", async || sheds(&root).await > 0).await;
    for number in 0..STRANGERS {
        let from = IpAddr::from([127, 0, 1, u8::try_from(number % STRANGERS_ADDRESSES).expect("few")]);
        keep_on(&mut attackers, &siege.client.clone().from_address(from), move |client| {
            attacks::stranger(client, number)
        });
    }
    let (before, machine) = (answers.load(Ordering::Relaxed), Moment::now().expect("/proc"));
    sleep(Duration::from_secs(seconds)).await;
    while answers.load(Ordering::Relaxed) < before + LEAST_ANSWERS && !thread.is_finished() {
        sleep(attacks::PAUSE).await;
    }
    is_over.store(true, Ordering::Relaxed);
    // The attack goes on meanwhile: the last answer is one of under attack, too.
    let joined = tokio::task::spawn_blocking(|| thread.join()).await.expect("no panic");
    let others = machine.others().expect("/proc");
    let Ok(waited) = joined else {
        panic!("the fifth user was disturbed; the log: {:#?}", siege.process.unread_lines());
    };
    let (resident, answers) = (siege.process.most_resident(), answers.load(Ordering::Relaxed) - before);
    attackers.shutdown().await;
    let p99 = p99(waited.into_iter().skip(usize::try_from(before).expect("few")));
    print(&format!(
        "{} MiB resident at most; the fifth user had {answers} answers and as many events, 99 % in {p99:?}; others \
         took {others:.2} of the machine",
        resident >> 20
    ));
    // Waits for a core grow faster than the share of the cores shrinks.
    let within = SOON.div_f64((1.0 - others).max(LEAST_SHARE).powi(2));
    assert!(p99 <= within, "{p99:?} and not {within:?}: others took {others:.2} of the machine");
    assert!(resident < MEMORY, "{} MiB", resident >> 20);
    assert!(answers >= LEAST_ANSWERS, "{answers} answers");
}

fn p99(waited: impl Iterator<Item = [Duration; 2]>) -> Duration {
    let mut waited: Vec<_> = waited.flatten().collect();
    waited.sort_unstable();
    waited.get((waited.len() * 99).div_ceil(100).saturating_sub(1)).copied().expect("some")
}

/// How often something had to give way.
async fn sheds(root: &H2Connection) -> u64 {
    let metrics = root.get("/metrics", &[("authorization", "Bearer root")]).await.expect("a head");
    let text = metrics.text().await.expect("a body");
    let count = text.lines().find_map(|line| line.strip_prefix("cluster_gateway_sheds_total ")?.parse().ok());
    count.expect("a metric")
}
