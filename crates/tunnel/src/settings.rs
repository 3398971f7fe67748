//! Every number of the tunnel's HTTP/2 connections, each with its reason.

use std::time::Duration;

/// The numbers. [`Settings::default`] is right for both ends; the flags of the programs change the
/// times.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Bytes of one stream that may be in flight unread when a link starts: the throughput of a
    /// stream is this over the round trip, and what one stalled stream costs in memory at most.
    /// HTTP/2 in the `h2` crate has one such number for all streams of a connection, so it follows
    /// the link: see `stream_window_max`.
    pub stream_window: u32,
    /// Where the window ends when a link shows that it needs more (a fast path with a long round
    /// trip: 80 MB/s over 100 ms). It is doubled when what was received within a round trip came
    /// near it; on a short path it stays at `stream_window`.
    pub stream_window_max: u32,
    /// The maximum: with less, stalled streams that add up to it would stop every other stream of
    /// the link.
    pub connection_window: u32,
    /// Streams the peer may have open at a time.
    pub max_streams: u32,
    /// Largest DATA frame taken. Larger frames, fewer of them; four TLS records are where it stops
    /// paying.
    pub max_frame: u32,
    /// Bytes of one stream that wait in HTTP/2 for the socket. Enough to keep it busy, and no more:
    /// what waits here has left the reach of [`crate::Budget`].
    pub send_buffer: usize,
    /// Silence after which a PING asks whether the peer is still there. Also how long we stay
    /// silent ourselves before we send one: a peer that sends and hears nothing would take us for
    /// dead.
    pub keepalive: Duration,
    /// How long the peer may then stay silent; the link is dead `keepalive + keepalive_timeout`
    /// after the last byte heard.
    pub keepalive_timeout: Duration,
    /// For the preface and SETTINGS, for one HTTP/1.1 head of the registration, and for the answer
    /// to `POST /leave`.
    pub handshake_timeout: Duration,
    /// h2 counts what unread DATA frames below 256 bytes lack to that size and ends the
    /// *connection* when this is used up: one stalled stream of short frames would end everybody's.
    /// So by default there is no limit: windows bound each stream, and [`crate::splice`],
    /// [`crate::bridge`] and the reader of a [`crate::Stream`] that a [`crate::Link`] opened take
    /// short frames off h2 into buffers of their own at once, where a byte is a byte. A limit is
    /// for what slips through.
    pub short_frames: usize,
}

/// What no installation has a reason to change.
impl Settings {
    /// With its head of nine bytes (RFC 9113 §4.1) four full TLS records: not a byte more, which
    /// would be a record of its own.
    pub const LARGEST_FRAME: u32 = 4 * 16 * 1024 - 9;
    /// Bytes that TLS below a link may hold: rustls's own 64 KiB are a few bytes less than a frame
    /// and its records' heads, and the rest would go out by itself.
    pub const TLS_BUFFER: usize = 128 * 1024;
    /// Headers of one request or answer, as h2 counts them. A `CONNECT` needs a few hundred bytes.
    pub(crate) const HEADER_LIST: u32 = 16 * 1024;
    /// Streams we reset are remembered for their frames in flight. As many as a link may have: a
    /// frontend that goes away resets all of its own at once.
    pub(crate) const RESET_STREAMS: usize = 10_000;
    /// Resets that h2 sends by itself, for frames of forgotten streams. It counts them over the
    /// connection's *lifetime* and ends it at a thousand by default; a link lives for months, and
    /// agents dial anew. An honest peer's frames are too late only where more streams were reset
    /// within a round trip than are remembered. Still a bound: each may wait in memory, 700 bytes,
    /// for a peer that does not read, on each of the links that one credential may have.
    pub(crate) const LOCAL_RESETS: usize = 1 << 12;
    /// How long they are remembered. A second, h2's default, is less than frames may be in flight
    /// on a slow path.
    pub(crate) const RESET_REMEMBERED: Duration = Duration::from_secs(30);
    /// Bytes of headers that the peer may have us remember (RFC 7541 §4.2).
    pub(crate) const HEADER_TABLE: u32 = 4096;
    /// Streams that the peer opened and reset before we looked. The default of 20 ends the link
    /// when a few clients give up together.
    pub(crate) const PENDING_RESETS: usize = 10_000;
    /// Between the PINGs that only measure the round trip.
    pub(crate) const RTT_EVERY: Duration = Duration::from_mins(1);
    /// An unanswered `open` says something about a link only when there was time for an answer.
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
