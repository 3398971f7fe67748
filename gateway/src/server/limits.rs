//! The limits of client connections, each with its reason.

use std::time::Duration;

use h2::server::Builder;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;

pub struct Limits;

impl Limits {
    /// Client connections of one core.
    pub const CONNECTIONS: usize = 16_384;
    /// Of these, connections without an authenticated request, and those of one address: beyond,
    /// the oldest of the address that has the most gives way to a new one. Callers need their place
    /// for some milliseconds, so they get in beside strangers of their own address too.
    pub const STRANGERS: usize = 1024;
    pub const STRANGERS_OF_ONE: usize = 256;
    /// With so many of them, strangers give way when a core's room is full.
    pub const FEW_STRANGERS: usize = 64;
    /// From the end of the TLS handshake to the end of the first request's head.
    pub const FIRST_REQUEST: Duration = Duration::from_secs(15);
    /// As a kube-apiserver grants its clients.
    pub const TLS_HANDSHAKE: Duration = Duration::from_secs(10);
    /// Request heads: Go's limit, which hubs rely on. A front proxy sends one line per group of the
    /// user.
    pub const HEADER_BYTES: u32 = 1024 * 1024;
    /// Header lines of an HTTP/1.1 head of a front proxy.
    pub const HEADER_LINES: usize = 2048;
    /// And of a client that speaks for itself. The parser clears a table of so many lines for each
    /// head, twice: 2,048 cost a sixth of a request's instructions.
    pub const OWN_HEADER_LINES: usize = 512;
    /// Hubs keep idle connections for 90 s: closing first would race with their next request.
    pub const KEEP_ALIVE: Duration = Duration::from_secs(125);
    /// What one unread upload holds back.
    pub const STREAM_WINDOW: u32 = 256 * 1024;
    /// Largest DATA frame taken: one TLS record. What uploads would gain by larger ones, their
    /// clients do not send.
    pub const FRAME: u32 = 16 * 1024;
    /// Bytes of headers that a client may have us remember (RFC 7541 §4.2), and that we use of what
    /// it remembers.
    pub const HEADER_TABLE: u32 = 4096;
    /// The maximum (RFC 9113 §6.9.1), so that unread uploads never stop another request: what they
    /// can hold back in all is bounded by the streams' windows.
    pub const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
    /// h2 counts what DATA frames below 256 bytes lack to that size against this, and ends the
    /// *connection* when it is used up. Frames that are thrown away, of uploads that were answered
    /// early, count until larger frames make up for them, so that one user's would end the hub's
    /// connection for all. Memory is bounded without it: what nobody reads is taken off h2 before
    /// each turn ([`crate::unread`]), so a stream holds its window, and one turn's frames 4 MB.
    pub const DATA_FRAME_BUDGET: usize = usize::MAX;
    /// Bytes read before requests get their turn. h2 keeps them in frames until then. Short ones
    /// end the turn by their number ([`crate::inbound`]).
    pub const TURN: usize = 1024 * 1024;
    /// So many streams that we reset are remembered for the frames that are on their way, 700 bytes
    /// each. What a client sends comes in order, and none begins a stream in the place of a reset
    /// one before it has read the reset: only as many as it may have open can have frames on their
    /// way. So clients that speak for themselves have that number, 175 KB of memory with 250.
    pub const RESET_STREAMS: usize = 4096;
    /// And so long: h2's default of a second is less than a slow network takes.
    pub const RESET_REMEMBERED: Duration = Duration::from_secs(30);
    /// Uploads that are answered early are reset, and each frame that arrives for one that is
    /// forgotten is answered with `RST_STREAM`, as is each broken head. h2 counts those over the
    /// connection's lifetime, and ends it at 1,024 by default. What the number guards is memory
    /// (RUSTSEC-2024-0003): h2 keeps 700 bytes for each `RST_STREAM` that the client does not read,
    /// 3 MB here, which count ([`crate::inbound`]). A hub's connection has no such number: its
    /// users' refused uploads, and paths that Go passes on and `http` refuses, would end it for all
    /// of them. Go invents no streams, so what is kept follows what was asked for.
    pub const LOCAL_RESETS: usize = 4096;
    /// Requests that the client took back before we had looked at them. A hub sends those of all
    /// its users over one connection, and h2 ends that at 20 by default: any user could end all
    /// users' watches. They wait only within one turn ([`Self::TURN`]) and are dropped before the
    /// handler sees them. So what this bounds is memory, one connection's at a time: 20 MB with
    /// heads of a hub's size. A hub that is not under attack has a few, and one under attack has
    /// 250 requests in flight at most (`--http2-max-streams-per-connection`): Go's client counts
    /// what it has reset until a PING after it was answered.
    pub const PENDING_RESETS: usize = 10_000;
    /// Bytes of header blocks that, over a connection's lifetime, had a late pseudo-header to be
    /// remembered, for which h2 keeps the whole block ([`crate::inbound::Marks::pinned`]). A front
    /// proxy is exempt: its users do not choose how it encodes.
    pub const PINNED: usize = 8 * 1024 * 1024;
    /// From the end of the TLS handshake to the HTTP/2 preface. HTTP/1.1 has its keep-alive limit.
    pub const PREFACE: Duration = Duration::from_secs(10);
    /// A client that vanished without closing is noticed by an unanswered PING, which is sent when
    /// nothing was heard in such a time.
    pub const PING_AFTER: Duration = Duration::from_secs(30);
    pub const PONG_WITHIN: Duration = Duration::from_secs(15);
    /// Most that one response may wait in memory for a slow client.
    pub const SEND_BUFFER: usize = 256 * 1024;
}

/// `many_users`: the client is a front proxy, and one user of it must not be able to end its
/// connection.
pub fn http2(max_streams: u32, many_users: bool) -> Builder {
    let own_streams = Limits::RESET_STREAMS.min(max_streams as usize);
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(max_streams)
        .initial_window_size(Limits::STREAM_WINDOW)
        .initial_connection_window_size(Limits::CONNECTION_WINDOW)
        .max_concurrent_reset_streams(if many_users { Limits::RESET_STREAMS } else { own_streams })
        .reset_stream_duration(Limits::RESET_REMEMBERED)
        .max_local_error_reset_streams((!many_users).then_some(Limits::LOCAL_RESETS))
        .max_pending_accept_reset_streams(Limits::PENDING_RESETS)
        .data_frame_budget(Limits::DATA_FRAME_BUDGET)
        .max_frame_size(Limits::FRAME)
        .header_table_size(Limits::HEADER_TABLE)
        .max_header_list_size(Limits::HEADER_BYTES)
        .max_send_buffer_size(Limits::SEND_BUFFER);
    builder
}

/// `many_users`: the client is a front proxy.
pub fn http1(many_users: bool) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(Limits::KEEP_ALIVE)
        .max_headers(if many_users { Limits::HEADER_LINES } else { Limits::OWN_HEADER_LINES })
        .max_buf_size(Limits::HEADER_BYTES as usize)
        .max_header_size(Limits::HEADER_BYTES as usize)
        .keep_alive(true)
        // A client that closes its side has left: what it asked for is cancelled.
        .half_close(false)
        // What is no request is refused: a proxy before or behind us could read it as another
        // request.
        .ignore_invalid_headers(false)
        .allow_multiple_spaces_in_request_line_delimiters(false)
        .title_case_headers(false)
        .preserve_header_case(false)
        .auto_date_header(true)
        // Marked experimental, and answers to pipelined requests are rare.
        .pipeline_flush(false);
    builder
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::Empty;
    use hyper::Response;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    /// A hub that finds its idle connection closed may have sent a request on it already, and
    /// cannot know whether it was read.
    #[tokio::test(start_paused = true)]
    async fn an_idle_http1_connection_outlives_the_hubs_patience() {
        const HUBS_PATIENCE: Duration = Duration::from_secs(90);
        let (mut client, server) = duplex(4096);
        let service = service_fn(async |_| Ok::<_, Infallible>(Response::new(Empty::<&[u8]>::new())));
        let serving = tokio::spawn(http1(true).serve_connection(TokioIo::new(server), service));
        let mut answer = [0; 512];
        for _ in 0..2 {
            client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
            let length = client.read(&mut answer).await.unwrap();
            assert!(answer[..length].starts_with(b"HTTP/1.1 200"));
            tokio::time::sleep(HUBS_PATIENCE + Duration::from_secs(30)).await;
        }
        let idle = Instant::now();
        assert_eq!(
            client.read(&mut answer).await.unwrap(),
            0,
            "closed in the end, so that nobody holds it for nothing"
        );
        assert!(idle.elapsed() < Limits::KEEP_ALIVE);
        drop(serving.await);
    }
}
