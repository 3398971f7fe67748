//! The numbers of our HTTP/2 connections to members.

use std::time::Duration;

use h2::client::Builder;
use net::http2;

/// All numbers of our HTTP/2 connections to members, each with its reason.
pub struct Settings;

impl Settings {
    /// What one unread response may hold back in our memory, and what one fast one may have in
    /// flight.
    pub const STREAM_WINDOW: u32 = 512 * 1024;
    /// The maximum: with less, a few unread streams would stop every other stream of the
    /// connection.
    pub const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
    /// Larger frames, fewer of them; 64 KiB is where it stops paying.
    pub const FRAME: u32 = 64 * 1024;
    /// What h2 takes before it ends the *connection*; what is passed on is less (`headers::size`).
    /// An API server relays up to 10 MiB of head from whatever is behind `…/proxy/…`
    /// (`net/http.Transport.MaxResponseHeaderBytes`). h2 counts 32 bytes more for each field, so
    /// that lines of three bytes make 110 MiB of it, and ends the connection at four times this.
    /// With 1 MiB, 352 KiB of a pod's headers ended everybody's watches. One connection decodes one
    /// head at a time, and what is not passed on goes at once.
    pub const HEADER_LIST: u32 = 36 * 1024 * 1024;
    /// Bytes of headers that a member may have us remember (RFC 7541 §4.2).
    pub const HEADER_TABLE: u32 = 4096;
    /// h2 counts what DATA frames below 256 bytes lack to that size against this, and ends the
    /// *connection* when it is used up. Frames that are thrown away, of streams that were given up,
    /// count until larger frames make up for them: a log follower that leaves a flood of short
    /// frames would end everybody's watches. Memory is bounded without it: what nobody reads is
    /// taken off h2 before each turn ([`crate::unread`]), so a stream holds its window, and one
    /// turn's frames 4 MB.
    pub const DATA_FRAME_BUDGET: usize = usize::MAX;
    /// Bytes read before readers get their turn. h2 keeps them in frames until then. Short ones end
    /// the turn by their number ([`crate::inbound`]).
    pub const TURN: usize = 1024 * 1024;
    /// Streams that we reset are remembered for their frames in flight. h2 counts frames of
    /// forgotten ones as errors over the connection's lifetime, and by default a thousand of them
    /// end it: a few dozen log followers that leave at once would end all watches on it, and so
    /// would, with any number, a client that leaves often.
    pub const RESET_STREAMS: usize = 4096;
    /// Its count is over the lifetime of a connection, which abandoned answers would use up in the
    /// end. What a member that does not read may be owed is bounded where its frames come in
    /// ([`crate::inbound`]).
    pub const LOCAL_RESETS: Option<usize> = None;
    /// How long they are remembered. A second, h2's default, is less than a slow network takes.
    pub const RESET_REMEMBERED: Duration = Duration::from_secs(30);
    /// Silence after which a PING asks whether the member is still there, and how long it may take
    /// to answer (the values of `k8s.io/apimachinery/pkg/util/net.SetTransportDefaults`).
    pub const PING_AFTER: Duration = Duration::from_secs(30);
    /// So many looks in a row without a stream end an idle connection: thousands of members must
    /// not cost a connection each for being used once a day.
    pub const IDLE_LOOKS: u32 = 10;
    pub const PONG_WITHIN: Duration = Duration::from_secs(15);
    /// And how long if something else comes meanwhile: nothing may come between the frames of a
    /// head (RFC 9113 §4.3), and one of 10 MiB takes minutes on a slow line.
    pub const PONG_BEHIND: Duration = Duration::from_mins(10);

    pub fn builder() -> Builder {
        let mut builder = Builder::new();
        builder
            .initial_window_size(Self::STREAM_WINDOW)
            .initial_connection_window_size(Self::CONNECTION_WINDOW)
            .max_frame_size(Self::FRAME)
            .max_header_list_size(Self::HEADER_LIST)
            .max_send_buffer_size(Self::STREAM_WINDOW as usize)
            .data_frame_budget(Self::DATA_FRAME_BUDGET)
            .header_table_size(Self::HEADER_TABLE)
            .max_concurrent_reset_streams(Self::RESET_STREAMS)
            .reset_stream_duration(Self::RESET_REMEMBERED)
            .max_local_error_reset_streams(Self::LOCAL_RESETS)
            .initial_max_send_streams(http2::UNKNOWN_STREAM_LIMIT)
            .enable_push(false);
        builder
    }
}
