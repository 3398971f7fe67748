//! The limits of client connections, each with its reason.

use std::time::Duration;

use h2::server::Builder;
use hyper::server::conn::http1;
use hyper_util::rt::TokioTimer;

pub struct Limits;

impl Limits {
    /// Most client connections of one core.
    pub const CONNECTIONS: usize = 16_384;
    /// Most of these without an authenticated request, and most of those from one address. Beyond,
    /// the oldest of the address with the most gives way to a new one. A caller is a stranger only
    /// for some milliseconds, so it gets in even beside strangers from its own address.
    pub const STRANGERS: usize = 1024;
    pub const STRANGERS_OF_ONE: usize = 256;
    /// With at least this many strangers, strangers give way when a core's room is full.
    pub const FEW_STRANGERS: usize = 64;
    /// From the end of the TLS handshake to the end of the first request's head.
    pub const FIRST_REQUEST: Duration = Duration::from_secs(15);
    /// The same as a kube-apiserver grants its clients.
    pub const TLS_HANDSHAKE: Duration = Duration::from_secs(10);
    /// Size of request heads: Go's limit, which hubs rely on. A front proxy sends one line for each
    /// group of the user.
    pub const HEADER_BYTES: u32 = 1024 * 1024;
    /// Most header lines of an HTTP/1.1 head from a front proxy.
    pub const HEADER_LINES: usize = 2048;
    /// The same for other clients. The parser clears a table of this many lines for each head,
    /// twice: 2,048 lines cost a sixth of a request's instructions.
    pub const OWN_HEADER_LINES: usize = 512;
    /// Hubs keep idle connections for 90 s. To close one earlier would race with the hub's next
    /// request.
    pub const KEEP_ALIVE: Duration = Duration::from_secs(125);
    /// Most bytes that one unread upload holds.
    pub const STREAM_WINDOW: u32 = 256 * 1024;
    /// Largest DATA frame that is accepted: one TLS record. Clients do not send the larger frames
    /// from which uploads would gain.
    pub const FRAME: u32 = 16 * 1024;
    /// Bytes of headers that a client may make us remember (RFC 7541 §4.2), and that we use of its
    /// own table.
    pub const HEADER_TABLE: u32 = 4096;
    /// The maximum (RFC 9113 §6.9.1), so that unread uploads never stop another request. The
    /// streams' windows bound what they hold together.
    pub const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
    /// h2 counts against this how much DATA frames are shorter than 256 bytes, and ends the
    /// *connection* when it is used up. Discarded frames, of uploads that got an early response,
    /// count until larger frames make up for them, so one user's frames would end the hub's
    /// connection for all users. Memory is bounded without it: unread frames are taken from h2
    /// before each turn ([`crate::unread`]), so a stream holds its window, and one turn's frames
    /// take 4 MB.
    pub const DATA_FRAME_BUDGET: usize = usize::MAX;
    /// Bytes read before the requests get their turn. h2 keeps their frames until then. Short
    /// frames end the turn by their number ([`crate::inbound`]).
    pub const TURN: usize = 1024 * 1024;
    /// Most streams that h2 remembers after we reset them, for their frames in flight, at 700 bytes
    /// each. A client's frames arrive in order, and it opens no stream in place of a reset one
    /// before it has read the reset. So only as many streams as it may have open can have frames in
    /// flight. Clients other than front proxies get that number: 175 KB of memory with 250 streams.
    pub const RESET_STREAMS: usize = 4096;
    /// How long they are remembered: h2's default of one second is less than a slow network needs.
    pub const RESET_REMEMBERED: Duration = Duration::from_secs(30);
    /// Uploads that get an early response are reset. Each frame that arrives for a forgotten one is
    /// answered with `RST_STREAM`, and so is each broken head. h2 counts these over the
    /// connection's lifetime, and by default ends it at 1,024. The limit protects memory
    /// (RUSTSEC-2024-0003): h2 keeps 700 bytes for each `RST_STREAM` that the client does not read,
    /// 3 MB here, which count ([`crate::inbound`]). A hub's connection has no such limit: its
    /// users' refused uploads, and paths that Go passes on and `http` refuses, would end it for all
    /// of them. Go sends no frames for streams that it did not open, so the number of resets
    /// follows the number of requests.
    pub const LOCAL_RESETS: usize = 4096;
    /// Most requests that the client reset before we processed them. A hub sends the resets of all
    /// its users over one connection, and h2 ends that at 20 by default: any user could end all
    /// users' watches. Such requests wait only within one turn ([`Self::TURN`]), and are dropped
    /// before the handler sees them. So this bounds memory, for one connection at a time: 20 MB
    /// with heads of a hub's size. A hub that is not under attack has a few of them, and one under
    /// attack has at most 250 requests in flight (`--http2-max-streams-per-connection`): Go's
    /// client counts a reset request until a PING after it was answered.
    pub const PENDING_RESETS: usize = 10_000;
    /// Most bytes of header blocks, over a connection's lifetime, with a late pseudo-header that h2
    /// must remember: it keeps the whole block for one ([`crate::inbound::Marks::pinned`]). A front
    /// proxy is exempt, because its users do not choose how it encodes.
    pub const PINNED: usize = 8 * 1024 * 1024;
    /// From the end of the TLS handshake to the HTTP/2 preface. For HTTP/1.1, the keep-alive limit
    /// applies.
    pub const PREFACE: Duration = Duration::from_secs(10);
    /// An unanswered PING detects a client that vanished without closing. It is sent after this
    /// much silence.
    pub const PING_AFTER: Duration = Duration::from_secs(30);
    pub const PONG_WITHIN: Duration = Duration::from_secs(15);
    /// Most bytes of one response that wait in memory for a slow client.
    pub const SEND_BUFFER: usize = 256 * 1024;
}

/// `many_users`: the client is a front proxy, so no single user may be able to end its connection.
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
        // A client that closes its side has left: its requests are cancelled.
        .half_close(false)
        // Invalid requests are refused: a proxy before or behind us could read them as other
        // requests.
        .ignore_invalid_headers(false)
        .allow_multiple_spaces_in_request_line_delimiters(false)
        .title_case_headers(false)
        .preserve_header_case(false)
        .auto_date_header(true)
        // Experimental, and responses to pipelined requests are rare.
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
