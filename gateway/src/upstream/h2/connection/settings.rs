//! The settings of HTTP/2 connections to members.

use std::time::Duration;

use h2::client::Builder;
use net::http2;

use crate::inbound::LIST_OF_MEMBERS;

/// All settings of HTTP/2 connections to members, each with its reason.
pub struct Settings;

impl Settings {
    /// Most bytes that one unread response may hold in our memory, and that one fast response may
    /// have in flight.
    pub const STREAM_WINDOW: u32 = 512 * 1024;
    /// The maximum: with a smaller window, a few unread streams would stop all other streams of the
    /// connection.
    pub const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
    /// Larger frames, and fewer of them; above 64 KiB there is no further gain.
    pub const FRAME: u32 = 64 * 1024;
    /// More than any head that is passed on (`headers::size`). An API server relays heads of up to
    /// 10 MiB from a server behind `…/proxy/…` (`net/http.Transport.MaxResponseHeaderBytes`), and
    /// h2 counts 32 more bytes for each field. It resets the stream of a longer list, but ends the
    /// *connection* for a multiple of it, or for many frames: with 1 MiB, 352 KiB of a pod's
    /// headers ended all callers' watches. One connection decodes one head at a time, and heads
    /// that are not passed on are freed at once.
    pub const HEADER_LIST: u32 = LIST_OF_MEMBERS;
    /// Bytes of headers that a member may make us remember (RFC 7541 §4.2).
    pub const HEADER_TABLE: u32 = 4096;
    /// h2 counts against this how much DATA frames are shorter than 256 bytes, and ends the
    /// *connection* when it is used up. Discarded frames, of cancelled streams, count until larger
    /// frames make up for them: a log follower that leaves a flood of short frames behind would end
    /// all callers' watches. Memory is bounded without it: unread frames are taken from h2 before
    /// each turn ([`crate::unread`]), so a stream holds its window, and one turn's frames take 4
    /// MB.
    pub const DATA_FRAME_BUDGET: usize = usize::MAX;
    /// Bytes read before the readers get their turn. h2 keeps their frames until then. Short frames
    /// end the turn by their number ([`crate::inbound`]).
    pub const TURN: usize = 1024 * 1024;
    /// h2 remembers streams that we reset, for their frames in flight. It counts frames of
    /// forgotten streams as errors over the connection's lifetime, and by default ends it after a
    /// thousand: a few dozen log followers that leave together would end all watches on it. So
    /// would, with any limit, a client that leaves often.
    pub const RESET_STREAMS: usize = 4096;
    /// Off: the count is over a connection's lifetime, so abandoned responses would eventually use
    /// it up. [`crate::inbound`] bounds what a member that does not read may be owed.
    pub const LOCAL_RESETS: Option<usize> = None;
    /// How long reset streams are remembered. One second, h2's default, is less than a slow network
    /// needs.
    pub const RESET_REMEMBERED: Duration = Duration::from_secs(30);
    /// Silence after which a PING checks the member, and the time for its answer (the values of
    /// `k8s.io/apimachinery/pkg/util/net.SetTransportDefaults`).
    pub const PING_AFTER: Duration = Duration::from_secs(30);
    /// Consecutive checks without a stream that end an idle connection: thousands of members that
    /// are used once a day must not keep a connection each.
    pub const IDLE_LOOKS: u32 = 10;
    pub const PONG_WITHIN: Duration = Duration::from_secs(15);
    /// The time for the answer while other bytes arrive: nothing may come between the frames of a
    /// head (RFC 9113 §4.3), and a head of 10 MiB takes minutes on a slow line.
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
