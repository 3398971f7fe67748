//! The same request again and again, as Go's clients (client-go, and so the hub's aggregator) put
//! it on the wire: a header that was sent before is one byte. The `h2` crate writes each further
//! value of a name in full every time, which makes twenty groups twice as dear to read as they are.

mod block;
mod frames;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::BytesMut;
use http::Method;
use kit::pki::Issued;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use self::block::Blocks;
use self::frames::{Arrived, Frame};
use super::closed::{GRACE, Summary};
use super::{Caller, LIMIT};
use crate::route::Route;

/// Read at a time.
const PIECE: usize = 64 << 10;
/// Received bytes of a connection that may be unacknowledged.
const UNACKNOWLEDGED: usize = 1 << 30;

/// The server to ask, and the request.
#[derive(Clone)]
pub struct Indexed {
    caller: Caller,
    blocks: Blocks,
}

/// One connection's state.
struct Lane<'a> {
    blocks: &'a Blocks,
    /// Bytes to write.
    out: BytesMut,
    /// Requests sent, answers complete.
    sent: u32,
    answered: u32,
    unacknowledged: usize,
}

// === impl Indexed ===

impl Indexed {
    /// GETs of `path` along `route`, with the way's headers or with `headers` in their place
    /// (`Name: value`), as the owner of `identity`.
    pub fn new(route: &Route, path: &str, headers: Option<&[String]>, identity: Option<&Issued>) -> Result<Self> {
        let caller = Caller::with(route, headers.unwrap_or(&route.headers), identity)?;
        let blocks = Blocks::of(&caller.head(Method::GET, path)?)?;
        Ok(Self { caller, blocks })
    }

    /// Keeps `streams` requests in flight on each of `connections` for `time`. Fails when one is
    /// not answered 200.
    pub async fn run(&self, connections: usize, streams: u32, time: Duration) -> Result<Summary> {
        let mut open = Vec::new();
        for _ in 0..connections {
            open.push(timeout(LIMIT, self.caller.secured()).await??);
        }
        let start = Instant::now();
        let mut lanes = JoinSet::new();
        for io in open {
            let blocks = self.blocks.clone();
            lanes.spawn(async move { ask(io, &blocks, streams, start + time).await });
        }
        Summary::of(lanes, start, u32::try_from(connections)? * streams).await
    }
}

/// Asks until `end` and takes the last answers; how many there were.
async fn ask(mut io: impl AsyncRead + AsyncWrite + Unpin, blocks: &Blocks, streams: u32, end: Instant) -> Result<u32> {
    let mut lane = Lane { blocks, out: BytesMut::new(), sent: 0, answered: 0, unacknowledged: 0 };
    frames::preface(&mut lane.out);
    (0..streams).for_each(|_| lane.request());
    let mut input = BytesMut::new();
    while lane.answered < lane.sent {
        timeout_at(end + GRACE, io.write_all_buf(&mut lane.out)).await.context("nobody reads")??;
        input.reserve(PIECE);
        let read = timeout_at(end + GRACE, io.read_buf(&mut input)).await.context("no answer in time")??;
        ensure!(read > 0, "closed after {} answers", lane.answered);
        let before = lane.answered;
        while let Some(frame) = frames::next(&mut input)? {
            lane.take(&frame)?;
        }
        if Instant::now() < end {
            (before..lane.answered).for_each(|_| lane.request());
        }
    }
    Ok(lane.answered)
}

// === impl Lane ===

impl Lane<'_> {
    fn request(&mut self) {
        let block = if self.sent == 0 { &self.blocks.first } else { &self.blocks.again };
        frames::request(&mut self.out, 2 * self.sent + 1, block);
        self.sent += 1;
    }

    fn take(&mut self, frame: &Frame) -> Result<()> {
        match frame.arrived()? {
            Arrived::Head => ensure!(block::is_ok(&frame.payload), "an answer other than 200"),
            Arrived::Data => self.acknowledge(frame.payload.len()),
            Arrived::Settings => frames::settings_acknowledged(&mut self.out),
            Arrived::Ping => frames::pong(&mut self.out, &frame.payload),
            Arrived::Other => {}
        }
        self.answered += u32::from(frame.ends_stream());
        Ok(())
    }

    /// Streams need none: an answer is smaller than what one may send.
    fn acknowledge(&mut self, bytes: usize) {
        self.unacknowledged += bytes;
        if self.unacknowledged >= UNACKNOWLEDGED {
            frames::window(&mut self.out, self.unacknowledged);
            self.unacknowledged = 0;
        }
    }
}

#[cfg(test)]
mod tests;
