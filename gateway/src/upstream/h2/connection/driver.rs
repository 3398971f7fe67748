//! Drives a connection to a member: pings it, retires it, and says why it was lost.

mod retirement;

use std::pin::pin;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use h2::{Ping, PingPong};
use net::gather::{Driven, Gathered};
use net::seal::Seal;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, timeout};

use super::Connection;
use super::settings::Settings;
use crate::inbound::Marks;
use crate::metrics::InFlight;
use crate::unread::Collecting;
use crate::upstream::Lost;
use crate::upstream::shed::{Counted, GaveWay};

pub(super) use self::retirement::retired;

pub(super) type Driver<T> = Collecting<Driven<h2::client::Connection<Gathered<T>, Bytes>, T>>;

/// Drives the connection to its end. Sends a PING after a long silence. Without an answer the
/// connection is dropped, which ends its streams with an error, so that watches do not hang.
pub(super) async fn drive<T: AsyncRead + AsyncWrite + Seal + Unpin>(
    mut driver: Counted<Driver<T>>,
    mut pings: PingPong,
    marks: Marks,
    connection: std::sync::Weak<Connection>,
    open: InFlight,
    retired: impl Future<Output = ()>,
) {
    let mut retired = pin!(retired);
    let mut look = tokio::time::interval(Settings::PING_AFTER);
    let mut idle_looks = 0;
    let end = loop {
        tokio::select! {
            // Otherwise each poll would choose the order by a random number. The retirement first,
            // because what waits by tokio's rules is not looked at after a driver that has used up
            // the task's budget, and a member that never stops sending may use it up in every poll.
            biased;
            () = &mut retired => break None,
            end = &mut driver => break failure(end),
            // Whatever is left of the budget: such a member must not keep a connection unused.
            _ = unconstrained(look.tick()) => {}
        }
        let Some(shared) = connection.upgrade() else { continue };
        if shared.traffic.swap(false, Ordering::Relaxed) {
            idle_looks = 0;
            continue;
        }
        idle_looks = if shared.is_unused() { idle_looks + 1 } else { 0 };
        if idle_looks >= Settings::IDLE_LOOKS {
            // Leases are made on this core's thread, so there can be none since the check above.
            shared.close();
            break None;
        }
        let patient = !shared.is_unused();
        drop(shared);
        tokio::select! {
            biased;
            () = &mut retired => break None,
            // Before the timeout: when that fires, the answer may be in the socket.
            end = &mut driver => break failure(end),
            answers = unconstrained(answers(&mut pings, &marks, patient)) => if !answers {
                break Some("no answer to PING".into());
            },
        }
    };
    if let Some(connection) = connection.upgrade() {
        connection.close();
    }
    if let Some(reason) = end {
        tracing::debug!(%reason, "connection to member ended");
    }
    drop((driver, open));
}

/// Why the connection ended, unless it ended cleanly.
fn failure(end: Result<Result<(), h2::Error>, GaveWay>) -> Option<Lost> {
    match end {
        Ok(end) => end.err().map(Lost::from),
        Err(gave_way) => Some(gave_way.into()),
    }
}

/// Whether the member answers a PING. With `patient`, any other bytes count as a sign of life for
/// some time.
async fn answers(pings: &mut PingPong, marks: &Marks, patient: bool) -> bool {
    let mut pong = pin!(pings.ping(Ping::opaque()));
    let asked = Instant::now();
    loop {
        let heard = marks.bytes();
        if let Ok(pong) = timeout(Settings::PONG_WITHIN, &mut pong).await {
            return pong.is_ok();
        }
        if !patient || marks.bytes() == heard || asked.elapsed() >= Settings::PONG_BEHIND {
            return false;
        }
    }
}
