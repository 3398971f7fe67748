//! Every number of the tunnel's HTTP/2 connections, each with its reason.

use std::time::Duration;

/// The numbers of one connection. [`Settings::default`] fits both ends; the flags of the programs
/// change the times.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Most unread bytes of one stream in flight when a link starts. This over the round trip is
    /// the throughput of a stream, and it is the most memory that a stalled stream costs. The `h2`
    /// crate has one such number for all streams of a connection, so it follows the link: see
    /// `stream_window_max`.
    pub stream_window: u32,
    /// The largest window, for a link that needs more (a fast path with a long round trip: 80 MB/s
    /// over 100 ms). The window is doubled when the bytes received within a round trip come near
    /// it; on a short path it stays at `stream_window`.
    pub stream_window_max: u32,
    /// The maximum: with less, stalled streams that add up to it would stop every other stream of
    /// the link.
    pub connection_window: u32,
    /// Most streams that the peer may have open at a time.
    pub max_streams: u32,
    /// Largest DATA frame accepted. Larger frames are fewer; beyond four TLS records that no longer
    /// pays.
    pub max_frame: u32,
    /// Most bytes of one stream that wait in HTTP/2 for the socket. Enough to keep it busy, and no
    /// more: a peer that reads nothing has each of its streams hold as much.
    pub send_buffer: usize,
    /// Silence after which a PING asks whether the peer is still there. Also how long we stay
    /// silent ourselves before we send one: a peer that sends and receives nothing would take us
    /// for dead.
    pub keepalive: Duration,
    /// How long the peer may then stay silent; the link is dead `keepalive + keepalive_timeout`
    /// after the last byte received.
    pub keepalive_timeout: Duration,
    /// Time for the preface and SETTINGS, for one HTTP/1.1 head of the registration, and for the
    /// answer to `POST /leave`.
    pub handshake_timeout: Duration,
    /// h2's budget for short frames: it adds up what unread DATA frames below 256 bytes lack to
    /// that size, and ends the *connection* when the budget is used up. One stalled stream of short
    /// frames would end all streams. So by default there is no limit: windows bound each stream,
    /// and [`crate::splice`], [`crate::bridge`] and the reader of a [`crate::Stream`] that a
    /// [`crate::Link`] opened take short frames off h2 at once into buffers of their own, where a
    /// byte takes one byte. A limit is for what slips through.
    pub short_frames: usize,
}

/// Values that no installation has a reason to change.
impl Settings {
    /// With its head of nine bytes (RFC 9113 §4.1), four full TLS records: one byte more would be a
    /// record of its own.
    pub const LARGEST_FRAME: u32 = 4 * 16 * 1024 - 9;
    /// Most bytes that TLS below a link may hold. rustls's own limit of 64 KiB is a few bytes less
    /// than a frame and its records' heads, and the rest would be sent by itself.
    pub const TLS_BUFFER: usize = 128 * 1024;
    /// Largest header list of one request or answer, as h2 counts it. A `CONNECT` needs a few
    /// hundred bytes.
    pub(crate) const HEADER_LIST: u32 = 16 * 1024;
    /// Most streams that are remembered after we reset them, for their frames in flight. As many as
    /// a link may have: a frontend that goes away resets all of its own at once.
    pub(crate) const RESET_STREAMS: usize = 10_000;
    /// Most resets that h2 sends by itself, for frames of forgotten streams. h2 counts them over
    /// the connection's *lifetime* and ends it at a thousand by default; a link lives for months,
    /// and agents would have to dial again. An honest peer's frames are too late only where more
    /// streams were reset within a round trip than are remembered. Still a limit: for a peer that
    /// does not read, each may wait in memory, 700 bytes, on each of the links that one credential
    /// may have.
    pub(crate) const LOCAL_RESETS: usize = 1 << 12;
    /// How long they are remembered. On a slow path, frames may be in flight for longer than h2's
    /// default of a second.
    pub(crate) const RESET_REMEMBERED: Duration = Duration::from_secs(30);
    /// Most bytes of headers that the peer may have us remember (RFC 7541 §4.2).
    pub(crate) const HEADER_TABLE: u32 = 4096;
    /// Most streams that the peer opened and reset before we accepted them. h2's default of 20 ends
    /// the link when a few clients give up together.
    pub(crate) const PENDING_RESETS: usize = 10_000;
    /// Interval of the PINGs that only measure the round trip.
    pub(crate) const RTT_EVERY: Duration = Duration::from_mins(1);
    /// An unanswered `open` makes a link suspect only if there was this much time for an answer.
    pub(crate) const SUSPECT_AFTER: Duration = Duration::from_secs(1);
}

// === impl Settings ===

impl Settings {
    pub(crate) fn client(&self) -> h2::client::Builder {
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(self.stream_window)
            .initial_connection_window_size(self.connection_window)
            .max_concurrent_streams(0)
            .max_frame_size(self.max_frame)
            .max_header_list_size(Self::HEADER_LIST)
            .max_send_buffer_size(self.send_buffer)
            .data_frame_budget(self.short_frames)
            .header_table_size(Self::HEADER_TABLE)
            .max_concurrent_reset_streams(Self::RESET_STREAMS)
            .reset_stream_duration(Self::RESET_REMEMBERED)
            .max_local_error_reset_streams(Some(Self::LOCAL_RESETS))
            .initial_max_send_streams(net::http2::UNKNOWN_STREAM_LIMIT)
            .enable_push(false);
        builder
    }

    pub(crate) fn server(&self) -> h2::server::Builder {
        let mut builder = h2::server::Builder::new();
        builder
            .initial_window_size(self.stream_window)
            .initial_connection_window_size(self.connection_window)
            .max_concurrent_streams(self.max_streams)
            .max_frame_size(self.max_frame)
            .max_header_list_size(Self::HEADER_LIST)
            .max_send_buffer_size(self.send_buffer)
            .data_frame_budget(self.short_frames)
            .header_table_size(Self::HEADER_TABLE)
            .max_concurrent_reset_streams(Self::RESET_STREAMS)
            .reset_stream_duration(Self::RESET_REMEMBERED)
            .max_local_error_reset_streams(Some(Self::LOCAL_RESETS))
            .max_pending_accept_reset_streams(Self::PENDING_RESETS);
        builder
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stream_window: 1024 * 1024,
            stream_window_max: 8 * 1024 * 1024,
            connection_window: (1 << 31) - 1,
            max_streams: 10_000,
            max_frame: Self::LARGEST_FRAME,
            send_buffer: 256 * 1024,
            keepalive: Duration::from_secs(10),
            keepalive_timeout: Duration::from_secs(10),
            handshake_timeout: Duration::from_secs(10),
            short_frames: usize::MAX / 2,
        }
    }
}
