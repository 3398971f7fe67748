//! Follows a log that never ends, and downloads one that does.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, sleep, timeout};

use super::{AGAIN, BOOK, BOOK_LINES, Route, Shared, TALKER};
use crate::lines::{After, Lines};

/// A log is followed for so long at most, then from its beginning again.
const FOLLOW: Duration = Duration::from_secs(30);
/// Pause for each 8 KiB of a download, so that it is still open when a fault comes.
const SLOWLY: Duration = Duration::from_millis(4);
const PIECE: usize = 8 << 10;
/// Pause between two downloads.
const PACE: Duration = Duration::from_secs(2);

pub(super) async fn follow(shared: &Shared, route: &Route) {
    let who = format!("a follower of {}", route.name);
    while let Some(body) = open(shared, route, &format!("pods/{TALKER}/log?follow=true")).await {
        shared.report.counts.follows.add();
        let (lines, end) = read(body, Instant::now() + FOLLOW, Duration::ZERO).await;
        shared.report.counts.lines.add_many(lines.count());
        match end {
            End::Wrong(what) => shared.report.violation(&who, &what),
            End::Clean => {
                // Not even a gateway that leaves may say that the log is over.
                let _ = lines.end(After::Nothing).map_err(|what| shared.report.violation(&who, &what));
            }
            End::Left | End::Cut => {}
        }
    }
}

pub(super) async fn download(shared: &Shared, route: &Route) {
    let who = format!("a download of {}", route.name);
    while let Some(body) = open(shared, route, &format!("pods/{BOOK}/log")).await {
        let counts = &shared.report.counts;
        counts.downloads.add();
        let (lines, end) = read(body, Instant::now() + 3 * FOLLOW, SLOWLY).await;
        match end {
            End::Wrong(what) => shared.report.violation(&who, &what),
            End::Clean => {
                let _ = lines.end(After::Lines(BOOK_LINES)).map_err(|what| shared.report.violation(&who, &what));
            }
            End::Left | End::Cut => counts.downloads_cut.add(),
        }
        sleep(PACE).await;
    }
}

/// The next answer, with pauses between tries. `None`: it is over.
async fn open(shared: &Shared, route: &Route, path: &str) -> Option<Incoming> {
    let mut failures = 0;
    while !shared.is_over() {
        match route.caller.open(Method::GET, &route.path(path), Bytes::new()).await {
            Ok(response) if response.status() == StatusCode::OK => return Some(response.into_body()),
            _ => failures += 1,
        }
        sleep(AGAIN.wait(failures)).await;
    }
    None
}

enum End {
    Clean,
    Cut,
    /// Ended by its reader.
    Left,
    Wrong(String),
}

/// Reads to the end, or for some time, and waits for `pause` for each [`PIECE`].
async fn read(mut body: Incoming, until: Instant, pause: Duration) -> (Lines, End) {
    let mut lines = Lines::default();
    loop {
        let end = match timeout(until.saturating_duration_since(Instant::now()), body.frame()).await {
            Ok(Some(Ok(frame))) => {
                let bytes = frame.into_data().unwrap_or_default();
                if let Err(what) = lines.take(&bytes) {
                    return (lines, End::Wrong(what));
                }
                sleep(pause * u32::try_from(bytes.len() / PIECE).unwrap_or(1)).await;
                continue;
            }
            Ok(Some(Err(_))) => End::Cut,
            Ok(None) => End::Clean,
            Err(_) => End::Left,
        };
        return (lines, end);
    }
}
