//! A member that speaks HTTP/2 frame by frame, for what no library's server does on purpose (RFC 9113).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kit::pki::{ALPN_H2, Authority, ClientAuth, Leaf, server_config};
use system_tests::rig::Reachable;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

const PREFACE: usize = 24;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// Of SETTINGS and PING.
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const REFUSED_STREAM: u32 = 7;
/// `:status: 200` by its index in the static table (RFC 7541 appendix A).
const STATUS_200: &[u8] = &[0x88];
/// The same and `content-length: 10`, a literal with an indexed name.
const LENGTH_10: &[u8] = &[0x88, 0x0f, 0x0d, 2, b'1', b'0'];

/// What a connection does with each request.
#[derive(Clone, Copy, Debug)]
pub(super) enum OnRequest {
    /// 200 without a body.
    Answer,
    /// GOAWAY that names an earlier stream as the last one, then the end.
    LeaveOut,
    /// GOAWAY that names this stream as the last one, with this error code, then the end.
    GiveUp(u32),
    /// 200 with a length of ten, five bytes, and the end of the stream.
    Shorten,
    /// `RST_STREAM` with `REFUSED_STREAM`.
    Refuse,
}

/// A running member. It stops when dropped.
pub(super) struct FrameMember {
    url: String,
    authority: Authority,
    requests: Arc<AtomicUsize>,
    _connections: JoinSet<()>,
}

// === impl FrameMember ===

impl FrameMember {
    /// Starts a member whose connections, numbered from 0, treat requests as `script` says.
    pub(super) async fn start(script: impl Fn(usize) -> OnRequest + Send + 'static) -> Self {
        let authority = Authority::new("member-ca");
        let identity = authority.issue(&Leaf::server("kube-apiserver"));
        let tls = TlsAcceptor::from(server_config(&identity, ClientAuth::None, ALPN_H2));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let url = format!("https://{}", listener.local_addr().expect("bound"));
        let requests = Arc::new(AtomicUsize::new(0));
        let mut connections = JoinSet::new();
        let counted = requests.clone();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            for number in 0.. {
                let Ok((tcp, _)) = listener.accept().await else { return };
                let (tls, counted, on_request) = (tls.clone(), counted.clone(), script(number));
                // An error is the caller leaving.
                open.spawn(async move { serve(tls, tcp, on_request, &counted).await.ok() });
            }
        });
        Self { url, authority, requests, _connections: connections }
    }

    /// Requests seen on all connections.
    pub(super) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Reachable for FrameMember {
    fn url(&self) -> String {
        self.url.clone()
    }

    fn ca_pem(&self) -> String {
        self.authority.root_pem()
    }
}

async fn serve(tls: TlsAcceptor, tcp: TcpStream, on_request: OnRequest, requests: &AtomicUsize) -> std::io::Result<()> {
    let mut io = tls.accept(tcp).await?;
    io.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    io.read_exact(&mut [0; PREFACE]).await?;
    loop {
        let mut head = [0; 9];
        io.read_exact(&mut head).await?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        io.read_exact(&mut payload).await?;
        match (kind, flags & ACK) {
            (SETTINGS, 0) => io.write_all(&frame(SETTINGS, ACK, 0, &[])).await?,
            (HEADERS, _) => {
                requests.fetch_add(1, Ordering::SeqCst);
                let stream = u32::from_be_bytes(stream);
                match on_request {
                    OnRequest::Answer => {
                        io.write_all(&frame(HEADERS, END_STREAM | END_HEADERS, stream, STATUS_200)).await?;
                    }
                    OnRequest::Refuse => {
                        io.write_all(&frame(RST_STREAM, 0, stream, &REFUSED_STREAM.to_be_bytes())).await?;
                    }
                    OnRequest::LeaveOut => leave(&mut io, 0, 0).await?,
                    OnRequest::GiveUp(code) => leave(&mut io, stream, code).await?,
                    OnRequest::Shorten => {
                        io.write_all(&frame(HEADERS, END_HEADERS, stream, LENGTH_10)).await?;
                        io.write_all(&frame(DATA, END_STREAM, stream, b"hello")).await?;
                    }
                }
            }
            _ => {}
        }
        io.flush().await?;
    }
}

/// Says goodbye: streams after `last` were not and will not be acted on.
async fn leave(io: &mut TlsStream<TcpStream>, last: u32, code: u32) -> std::io::Result<()> {
    let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    io.write_all(&frame(GOAWAY, 0, 0, &payload)).await?;
    io.shutdown().await
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a small frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
