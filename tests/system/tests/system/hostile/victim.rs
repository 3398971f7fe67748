//! A well-behaved client: a watch and a followed log, on a connection that may be others' too.

use kit::frames::Wire;
use kit::member::StreamSender;
use system_tests::prelude::*;

use super::Fixture;

/// Bytes of the log for each look.
const PIECE: usize = 3000;

pub(super) struct Victim {
    watch: u32,
    log: u32,
    events: StreamSender,
    lines: StreamSender,
    /// Bytes of the log so far.
    logged: usize,
    seen: usize,
    /// The member's number of the connection of both.
    pub(super) connection: usize,
}

// === impl Victim ===

impl Victim {
    pub(super) async fn begin(wire: &mut Wire, fixture: &Fixture) -> Self {
        let (mut watches, mut logs) = (fixture.member.streams("/watch"), fixture.member.streams("/log"));
        let watch = wire.request("GET", &proxied(CLUSTER, "/watch?watch=1"), &[], true).await;
        let (recorded, events) = watches.next().await;
        let log = wire.request("GET", &proxied(CLUSTER, "/log?follow=true"), &[], true).await;
        let (beside, lines) = logs.next().await;
        assert_eq!(recorded.connection, beside.connection);
        let mut victim = Self { watch, log, events, lines, logged: 0, seen: 0, connection: recorded.connection };
        victim.goes_on(wire, "nothing").await;
        victim
    }

    /// Sees an event that happens now, and all of the log, a part of which was written before.
    pub(super) async fn goes_on(&mut self, wire: &mut Wire, after: &str) {
        self.seen += 1;
        let event = format!("event {}\n", self.seen);
        assert!(self.events.send(event.clone()).await, "{after}: the watch was given up");
        assert!(self.lines.send(bytes(self.logged, PIECE)).await, "{after}: the log was given up");
        let (watch, log) = (self.watch, self.log);
        wire.until(&format!("the victim's event and log after {after}"), |wire| {
            let came = |stream, bytes| wire.seen(stream).is_some_and(|seen| seen.is_over() || seen.body.len() >= bytes);
            came(watch, event.len()) && came(log, PIECE)
        })
        .await;
        let open = |stream| !wire.is_over() && wire.seen(stream).is_some_and(|seen| !seen.is_over());
        assert!(open(watch) && open(log), "{after}: the victim was cut off: {wire:?}");
        assert_eq!(String::from_utf8_lossy(&wire.take(watch)), event, "{after}");
        assert!(wire.take(log) == bytes(self.logged, PIECE), "{after}: the log is another");
        self.logged += PIECE;
    }
}

/// Part of a log: the value of each byte depends on its position.
fn bytes(from: usize, length: usize) -> Vec<u8> {
    (from..from + length).map(|at| u8::try_from(at % 251).expect("below 251")).collect()
}
