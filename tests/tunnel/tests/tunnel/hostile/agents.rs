//! Agents that may link, and then send anything on the link: users of other clusters of the same
//! tunnel-server, on the same connection of a frontend, do not notice.

mod embedded;
mod floods;

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kit::client::Client;
use kit::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, PING, PRIORITY,
    PUSH_PROMISE, RST_STREAM, SETTINGS, STATUS_200, WINDOW_UPDATE, encode, in_frames, literals, setting,
};
use kit::pki::{ALPN_H1, Leaf, Trust};
use kit::wait::{WAIT, becomes, unless_quiet, within};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use tunnel::register::{self, Registration};
use tunnel::{ClusterName, Destination, OpenError, Reason, Stream};
use tunnel_tests::pki::Pki;
use tunnel_tests::{AgentSpec, Caller, Frontend, Testbed, Tunnel, measure, testbed::CLUSTER};

const EVIL: &str = "evil";
/// Streams that its agents take.
const STREAMS: u32 = 2_000;
/// Frames of one seed, and seeds.
const RANDOM: usize = 200;
const SEEDS: u32 = 40;
/// The first of them, for a run that failed; otherwise each run has others.
const FIRST_SEED: &str = "AGENTS_SEED";

type AgentLink = Frames<net::prefixed::Prefixed<TlsStream<TcpStream>>>;

/// The bytes of an agent when it is asked for the stream, repeated so many times. Then what its
/// caller gets, and the fate of the link.
struct Row {
    name: &'static str,
    says: fn(u32) -> Vec<u8>,
    times: usize,
    gets: Gets,
    fate: Fate,
}

/// What the caller of such an agent gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gets {
    /// A stream, whether or not it is of use.
    Stream,
    Refused(Reason),
    /// The end of its own stream; the frontend's link stays, as its other stream shows.
    Reset,
    /// Nothing yet.
    Nothing,
}

/// The fate of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    Ends,
}

const ROWS: &[Row] = &[
    ends("another protocol", |_| b"SSH-2.0-OpenSSH_9.9\r\n".repeat(100), 10),
    ends("zeros", |_| vec![0; 64 << 10], 10),
    ends("a head without an end", |stream| endless(stream, 16_000), 2_000),
    ends("a head in frames without a byte", |stream| endless(stream, 0), 2_000),
    ends("a head of megabytes", |stream| in_frames(0, stream, &large()), 1),
    ends("early hints without an end", hint, 5_000),
    stays("a storm of PINGs", |_| encode(PING, 0, 0, b"are you?").repeat(100), 200, Gets::Nothing),
    ends("a storm of SETTINGS", |_| encode(SETTINGS, 0, 0, &[]).repeat(100), 200),
    ends("windows that go up and down", up_and_down, 200),
    ends("a storm of goodbyes", |_| encode(GOAWAY, 0, 0, &[0; 8]).repeat(100), 100),
    ends("a storm of PRIORITYs", |_| encode(PRIORITY, 0, 99, &[0, 0, 0, 99, 1]).repeat(100), 200),
    ends("a push", |stream| encode(PUSH_PROMISE, END_HEADERS, stream, &[0, 0, 0, 2, 0x82]), 1),
    ends("the end of a stream that nobody opened", |_| encode(RST_STREAM, 0, 9_999, &[0; 4]), 1),
    ends("an answer on a stream that nobody opened", |_| in_frames(0, 9_999, STATUS_200), 1),
    ends("a window beyond the largest", |_| window(0, 0x7fff_ffff), 2),
    ends("a window of nothing more", |_| window(0, 0), 1),
    stays(
        "a stream's window beyond the largest",
        |stream| window(stream, 0x7fff_ffff),
        2,
        Gets::Refused(Reason::NoLink),
    ),
    ends(
        "windows of streams beyond the largest",
        |_| encode(SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, 1 << 31)),
        1,
    ),
    ends("bytes before an answer", |stream| encode(DATA, 0, stream, b"early"), 1),
    ends("a frame larger than is taken", |stream| encode(DATA, 0, stream, &vec![0; 2 << 20]), 1),
    ends("a value with a line break", split, 1),
    stays("an answer, and bytes beyond its window", beyond, 1, Gets::Stream),
    stays("an answer, and a second", |stream| in_frames(0, stream, STATUS_200).repeat(2), 1, Gets::Reset),
    stays("a refusal with a body without an end", refusal, 500, Gets::Refused(Reason::Unreachable)),
];

const fn ends(name: &'static str, says: fn(u32) -> Vec<u8>, times: usize) -> Row {
    Row { name, says, times, gets: Gets::Refused(Reason::NoLink), fate: Fate::Ends }
}

const fn stays(name: &'static str, says: fn(u32) -> Vec<u8>, times: usize, gets: Gets) -> Row {
    Row { name, says, times, gets, fate: Fate::Stays }
}

fn endless(stream: u32, bytes: usize) -> Vec<u8> {
    let part = encode(CONTINUATION, 0, stream, &literals(&[("x", &"x".repeat(bytes))])[..bytes]);
    [encode(HEADERS, 0, stream, STATUS_200), part].concat()
}

fn large() -> Vec<u8> {
    [STATUS_200.to_vec(), literals(&[("x", &"x".repeat(4 << 20))])].concat()
}

fn hint(stream: u32) -> Vec<u8> {
    encode(HEADERS, END_HEADERS, stream, &[0x08, 3, b'1', b'0', b'3'])
}

fn window(stream: u32, bytes: u32) -> Vec<u8> {
    encode(WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes())
}

fn up_and_down(_: u32) -> Vec<u8> {
    [65_535, 65_536].map(|bytes| encode(SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, bytes))).concat().repeat(50)
}

fn split(stream: u32) -> Vec<u8> {
    in_frames(END_STREAM, stream, &literals(&[(":status", "502"), ("tunnel-error-message", "a\r\nb: c")]))
}

fn beyond(stream: u32) -> Vec<u8> {
    [in_frames(0, stream, STATUS_200), encode(DATA, 0, stream, &vec![0; 32 << 10]).repeat(1000)].concat()
}

fn refusal(stream: u32) -> Vec<u8> {
    [in_frames(0, stream, &literals(&[(":status", "502")])), encode(DATA, 0, stream, &[b'x'; 16_000])].concat()
}

/// Numbers that look random, the same for the same seed (xorshift).
struct Random(u32);

// === impl Random ===

impl Random {
    /// Seeds beside each other begin far from each other, and none with 0, where the row ends.
    fn of(seed: u32) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9).max(1))
    }

    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[1]
    }

    /// A frame of any kind, most of them of kinds and streams that there are.
    fn frame(&mut self, stream: u32) -> Vec<u8> {
        let kind = self.byte() % 12;
        let flags = if self.byte() < 128 { self.byte() } else { 0 };
        let stream = [0, stream, stream, self.next() & 0xff, self.next()][self.byte() as usize % 5];
        let length = [0, 4, 5, 6, 8, usize::from(self.byte())][self.byte() as usize % 6];
        let payload: Vec<u8> = (0..length).map(|_| self.byte()).collect();
        encode(kind, flags, stream, &payload)
    }
}

/// The server to which such agents link, and the callers that ask for their streams there.
trait Stage {
    /// A stream that was opened.
    type Opened;

    fn pki(&self) -> &Pki;

    /// Of the agents' listener.
    fn address(&self) -> SocketAddr;

    /// Whether an agent of [`EVIL`] is.
    async fn is_linked(&self) -> bool;

    /// Asks for a stream of [`EVIL`], on the connection that others have theirs on.
    async fn open(&self, row: &str) -> (Gets, Option<Self::Opened>);

    /// How a caller sees there what the table lists.
    fn seen(gets: Gets) -> Gets;
}

/// Links as an agent of [`EVIL`], by its own certificate.
async fn linked(stage: &impl Stage) -> AgentLink {
    let pki = stage.pki();
    let identity = pki.agents.issue(&Leaf::client(format!("system:tunnel-agent:{EVIL}")));
    let client = Client::new(stage.address(), Trust::Authority(&pki.serving), Some(&identity));
    let io = client.tls(ALPN_H1).await.expect("TLS");
    let registration = Registration { cluster: evil(), agent: "evil-1".to_owned(), link: 0, version: "1".to_owned() };
    let registered = register::register(io, "localhost", &registration, None, WAIT).await.expect("registered");
    let link = Frames::server(registered.io, STREAMS).await.expect("HTTP/2");
    becomes(WAIT, "the link", || stage.is_linked()).await;
    link
}

/// The stream of the next frame of this kind.
async fn next(link: &mut AgentLink, kind: u8) -> u32 {
    loop {
        let frame = link.read().await.expect("a frame");
        if frame.kind == kind {
            return frame.stream;
        }
    }
}

/// Sends `bytes` to each caller that asks for a stream, as often as they are taken, and then
/// returns the fate of the link. It stays as it is until it is `released`.
async fn says(
    mut link: AgentLink,
    mut bytes: impl FnMut(u32) -> Vec<u8>,
    times: usize,
    fate: oneshot::Sender<Fate>,
    released: CancellationToken,
) {
    let stream = next(&mut link, HEADERS).await;
    for _ in 0..times {
        if link.send_all(&bytes(stream)).await.is_err() {
            break;
        }
    }
    fate.send(if link.settled().await.is_ok() { Fate::Stays } else { Fate::Ends }).expect("the test waits");
    tokio::select! {
        _ = link.ignore() => {}
        () = released.cancelled() => {}
    }
    let _ = link.shutdown().await;
}

/// Asks for a stream of [`EVIL`] until the agent has sent all.
async fn asked(stage: &impl Stage, row: &str, mut fate: oneshot::Receiver<Fate>) -> (Gets, Fate) {
    /// An answer that is there already comes sooner.
    const QUIET: Duration = Duration::from_millis(200);
    let (mut opening, mut opened) = (pin!(stage.open(row)), None);
    let told = async {
        loop {
            tokio::select! {
                fate = &mut fate => return fate.expect("it is told"),
                early = &mut opening, if opened.is_none() => opened = Some(early),
            }
        }
    };
    let fate = within(WAIT, format!("the fate of the link of {row}"), told).await;
    if opened.is_none() {
        opened = unless_quiet(QUIET, opening).await;
    }
    (opened.map_or(Gets::Nothing, |(gets, _)| gets), fate)
}

fn evil() -> ClusterName {
    ClusterName::parse(EVIL).expect("a name")
}

type Says = Box<dyn FnMut(u32) -> Vec<u8> + Send>;

/// The seed of this run: the time, unless one is given.
fn first_seed() -> u32 {
    let given = std::env::var(FIRST_SEED).ok();
    let given = given.map(|text| text.parse().unwrap_or_else(|_| panic!("{FIRST_SEED} is a number")));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    given.unwrap_or_else(|| u32::try_from(since.as_millis() % u128::from(u32::MAX)).unwrap_or_default())
}

/// The rows, and some that are not in the table: of these, any outcome is right.
fn all(first: u32) -> impl Iterator<Item = (String, Says, usize, Option<(Gets, Fate)>)> {
    let rows = ROWS.iter().map(|row| {
        let says: Says = Box::new(row.says);
        (row.name.to_owned(), says, row.times, Some((row.gets, row.fate)))
    });
    let random = (0..SEEDS).map(move |number| {
        let seed = first.wrapping_add(number);
        let mut random = Random::of(seed);
        let says: Says = Box::new(move |stream| random.frame(stream));
        // `.ci/run` takes it for final: another run has other frames.
        let name = format!("VIOLATION  random frames, again: {FIRST_SEED}={seed} cargo test -p tunnel-tests hostile");
        (name, says, RANDOM, None)
    });
    rows.chain(random)
}

/// Goes through all of them, while what others have open goes on.
async fn whatever_they_say<S: Stage>(stage: &S, mut others: impl AsyncFnMut() -> io::Result<()>) {
    let (mut wrong, first) = (Vec::new(), first_seed());
    // A failure that gives no name, such as a panic of the server, needs it too.
    print(&format!("{FIRST_SEED}={first}"));
    for (name, bytes, times, expected) in all(first) {
        let expected = expected.map(|(gets, fate)| (S::seen(gets), fate));
        let link = linked(stage).await;
        let (told, fate) = oneshot::channel();
        let released = CancellationToken::new();
        let saying = tokio::spawn(says(link, bytes, times, told, released.clone()));
        let (got, goes_on) = tokio::join!(asked(stage, &name, fate), others());
        goes_on.unwrap_or_else(|error| panic!("during {name}: {error}"));
        // While the link is as the agent left it.
        others().await.unwrap_or_else(|error| panic!("after {name}: {error}"));
        let got = match expected {
            // Its last bytes may have been answered before the link ends.
            Some((gets, Fate::Ends)) if got == (gets, Fate::Stays) => {
                becomes(WAIT, format!("the end of the link after {name}"), async || !stage.is_linked().await).await;
                (gets, Fate::Ends)
            }
            _ => got,
        };
        if expected.is_some_and(|expected| expected != got) {
            wrong.push(format!("{name}: {got:?}"));
        }
        if expected == Some((got.0, Fate::Stays)) {
            assert!(stage.is_linked().await, "{name}: it is not linked any more");
        }
        released.cancel();
        saying.await.expect("no panic");
        becomes(WAIT, format!("the end of the link of {name}"), async || !stage.is_linked().await).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[expect(clippy::print_stderr, reason = "what a failed run is repeated with")]
fn print(seed: &str) {
    eprintln!("{seed}");
}

/// A tunnel-server, and a frontend of it.
struct Server<'a> {
    testbed: &'a Testbed,
    frontend: &'a Caller,
}

// === impl Server ===

impl Stage for Server<'_> {
    type Opened = Stream;

    fn pki(&self) -> &Pki {
        &self.testbed.pki
    }

    fn address(&self) -> SocketAddr {
        self.testbed.server(0).agent_address()
    }

    async fn is_linked(&self) -> bool {
        self.testbed.server(0).registry().is_linked(&evil())
    }

    async fn open(&self, row: &str) -> (Gets, Option<Stream>) {
        let link = self.frontend.link().await.expect("a link");
        let to = Destination::parse("127.0.0.1:443").expect("one");
        match link.open(&to, Some(&evil())).await {
            Ok(stream) => (Gets::Stream, Some(stream)),
            Err(OpenError::Refused(refusal)) => (Gets::Refused(refusal.reason), None),
            Err(OpenError::Lost(_)) => (Gets::Reset, None),
            Err(error @ OpenError::NotSent(_)) => panic!("{row}: {error}"),
        }
    }

    fn seen(gets: Gets) -> Gets {
        gets
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_an_agent_says_on_its_link_other_clusters_do_not_notice() {
    let testbed = Testbed::builder().agent(AgentSpec::new(CLUSTER)).start().await;
    let (shared, apart) = (testbed.caller(Frontend::H2), testbed.caller(Frontend::Tls));
    let authority = testbed.api_server.authority();
    let mut victims = [shared.must(&authority).await, apart.must(&authority).await];
    whatever_they_say(&Server { testbed: &testbed, frontend: &shared }, async || echoed(&mut victims).await).await;
    drop(victims);
    testbed.wait_idle().await;
}

/// A few bytes there and back on each stream that was open before.
async fn echoed(victims: &mut [Tunnel; 2]) -> io::Result<()> {
    for victim in victims {
        measure::echo_p99(victim, 3).await?;
    }
    Ok(())
}
