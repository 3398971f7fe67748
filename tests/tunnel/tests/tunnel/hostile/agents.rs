//! Agents that may link, and then say whatever they like on the link: those who use other clusters
//! of the same tunnel-server, on the same connection of a frontend, do not notice.

use std::io;

use kit::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, PING, PRIORITY,
    PUSH_PROMISE, RST_STREAM, SETTINGS, STATUS_200, WINDOW_UPDATE, encode, in_frames, literals, setting,
};
use kit::pki::{ALPN_H1, Leaf, Trust, client_config};
use kit::wait::{WAIT, becomes, within};
use rustls_pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tunnel::register::{self, Registration};
use tunnel::{ClusterName, Destination, OpenError};
use tunnel_tests::{AgentSpec, Caller, Frontend, Testbed, measure, testbed::CLUSTER};

const EVIL: &str = "evil";
/// Frames of one seed, and seeds.
const RANDOM: usize = 200;
const SEEDS: u32 = 40;

type Link = Frames<net::prefixed::Prefixed<TlsStream<TcpStream>>>;

/// What an agent says when it is asked for the stream: this, so many times.
struct Row {
    name: &'static str,
    says: fn(u32) -> Vec<u8>,
    times: usize,
}

const ROWS: &[Row] = &[
    Row { name: "another protocol", says: |_| b"SSH-2.0-OpenSSH_9.9\r\n".repeat(100), times: 10 },
    Row { name: "zeros", says: |_| vec![0; 64 << 10], times: 10 },
    Row { name: "a head without an end", says: |stream| endless(stream, 16_000), times: 2_000 },
    Row { name: "a head in frames without a byte", says: |stream| endless(stream, 0), times: 2_000 },
    Row { name: "a head of megabytes", says: |stream| in_frames(0, stream, &large()), times: 1 },
    Row { name: "early hints without an end", says: hint, times: 50_000 },
    Row { name: "a storm of PINGs", says: |_| encode(PING, 0, 0, b"are you?").repeat(100), times: 200 },
    Row { name: "a storm of SETTINGS", says: |_| encode(SETTINGS, 0, 0, &[]).repeat(100), times: 200 },
    Row { name: "a storm of goodbyes", says: |_| encode(GOAWAY, 0, 0, &[0; 8]).repeat(100), times: 100 },
    Row { name: "a storm of PRIORITYs", says: |_| encode(PRIORITY, 0, 99, &[0, 0, 0, 99, 1]).repeat(100), times: 200 },
    Row { name: "a push", says: |stream| encode(PUSH_PROMISE, END_HEADERS, stream, &[0, 0, 0, 2, 0x82]), times: 1 },
    Row { name: "the end of a stream that nobody opened", says: |_| encode(RST_STREAM, 0, 9_999, &[0; 4]), times: 1 },
    Row { name: "an answer on a stream that nobody opened", says: |_| in_frames(0, 9_999, STATUS_200), times: 1 },
    Row { name: "a window beyond the largest", says: |_| window(0, 0x7fff_ffff), times: 2 },
    Row { name: "a window of nothing more", says: |_| window(0, 0), times: 1 },
    Row { name: "a stream's window beyond the largest", says: |stream| window(stream, 0x7fff_ffff), times: 2 },
    Row {
        name: "windows of streams beyond the largest",
        says: |_| encode(SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, 1 << 31)),
        times: 1,
    },
    Row { name: "bytes before an answer", says: |stream| encode(DATA, 0, stream, b"early"), times: 1 },
    Row { name: "a frame larger than is taken", says: |stream| encode(DATA, 0, stream, &vec![0; 2 << 20]), times: 1 },
    Row { name: "a value with a line break", says: split, times: 1 },
    Row { name: "an answer, and bytes beyond its window", says: beyond, times: 1 },
    Row { name: "an answer, and a second", says: |stream| in_frames(0, stream, STATUS_200).repeat(2), times: 1 },
    Row { name: "a refusal with a body without an end", says: refusal, times: 500 },
];

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

fn split(stream: u32) -> Vec<u8> {
    in_frames(END_STREAM, stream, &literals(&[(":status", "502"), ("tunnel-error-message", "a\r\nb: c")]))
}

fn beyond(stream: u32) -> Vec<u8> {
    [in_frames(0, stream, STATUS_200), encode(DATA, 0, stream, &vec![0; 32 << 10]).repeat(1000)].concat()
}

fn refusal(stream: u32) -> Vec<u8> {
    [in_frames(0, stream, &literals(&[(":status", "502")])), encode(DATA, 0, stream, &[b'x'; 16_000])].concat()
}

/// Numbers that look random, the same in each run (xorshift).
struct Random(u32);

// === impl Random ===

impl Random {
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

/// Links as an agent of [`EVIL`], by its own certificate.
async fn linked(testbed: &Testbed) -> Link {
    let identity = testbed.pki.agents.issue(&Leaf::client(format!("system:tunnel-agent:{EVIL}")));
    let tls = TlsConnector::from(client_config(Trust::Authority(&testbed.pki.serving), Some(&identity), ALPN_H1));
    let socket = TcpStream::connect(testbed.server(0).agent_address()).await.expect("connected");
    let io = tls.connect(ServerName::try_from("localhost").expect("a name"), socket).await.expect("TLS");
    let cluster = ClusterName::parse(EVIL).expect("a name");
    let registration = Registration { cluster, agent: "evil-1".to_owned(), link: 0, version: "1".to_owned() };
    let registered = register::register(io, "localhost", &registration, None, WAIT).await.expect("registered");
    let link = Frames::server(registered.io, 1000).await.expect("HTTP/2");
    let cluster = ClusterName::parse(EVIL).expect("a name");
    becomes(WAIT, "the link", async || testbed.server(0).registry().is_linked(&cluster)).await;
    link
}

/// Says `bytes` to whoever asks for a stream, as often as it is taken; then goes.
async fn says(mut link: Link, mut bytes: impl FnMut(u32) -> Vec<u8>, times: usize) -> io::Result<()> {
    let stream = loop {
        let frame = link.read().await?;
        if frame.kind == HEADERS {
            break frame.stream;
        }
    };
    for _ in 0..times {
        link.send_all(&bytes(stream)).await?;
    }
    link.shutdown().await
}

/// Has a frontend ask for a stream of [`EVIL`] on the link that its other streams are on.
async fn asked(caller: &Caller, row: &str) {
    let (to, cluster) = (Destination::parse("127.0.0.1:443").expect("one"), ClusterName::parse(EVIL).expect("a name"));
    let link = caller.link().await.expect("a link");
    let opened = within(2 * WAIT, format!("an answer after {row}"), link.open(&to, Some(&cluster))).await;
    match opened {
        // Whatever it is worth; that the frontend's link is still there, its other stream shows.
        Ok(_) | Err(OpenError::Lost(_)) => {}
        Err(OpenError::Refused(refusal)) => {
            assert!(refusal.reason.status().is_server_error(), "{row}: {refusal:?}");
        }
        Err(error @ OpenError::NotSent(_)) => panic!("{row}: {error}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_an_agent_says_on_its_link_other_clusters_do_not_notice() {
    let testbed = Testbed::builder().agent(AgentSpec::new(CLUSTER)).start().await;
    let (shared, apart) = (testbed.caller(Frontend::H2), testbed.caller(Frontend::Tls));
    let authority = testbed.api_server.authority();
    let mut victims = [shared.must(&authority).await, apart.must(&authority).await];
    let random = (1..=SEEDS).map(|seed| {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9));
        let says: Box<dyn FnMut(u32) -> Vec<u8> + Send> = Box::new(move |stream| random.frame(stream));
        (format!("random frames, seed {seed}"), says, RANDOM)
    });
    let rows = ROWS.iter().map(|row| {
        let says: Box<dyn FnMut(u32) -> Vec<u8> + Send> = Box::new(row.says);
        (row.name.to_owned(), says, row.times)
    });
    for (name, bytes, times) in rows.chain(random) {
        let link = linked(&testbed).await;
        let saying = tokio::spawn(says(link, bytes, times));
        asked(&shared, &name).await;
        for victim in &mut victims {
            measure::echo_p99(victim, 3).await.unwrap_or_else(|error| panic!("after {name}: {error}"));
        }
        saying.abort();
        let cluster = ClusterName::parse(EVIL).expect("a name");
        becomes(WAIT, format!("the end of the link of {name}"), async || {
            !testbed.server(0).registry().is_linked(&cluster)
        })
        .await;
    }
    drop(victims);
    testbed.wait_idle().await;
}
