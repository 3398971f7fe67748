//! Reads the marker, and again once if that fails.

use std::time::Duration;

use tokio::time::sleep;

use super::{Misread, Route, Shared};
use crate::report::REPLACED;

/// Pause between two reads.
const PACE: Duration = Duration::from_millis(100);
/// Pause after both tries failed.
const PAUSE: Duration = Duration::from_millis(300);

pub(super) async fn run(shared: &Shared, route: &Route) {
    let (report, counts) = (&shared.report, &shared.report.counts);
    let who = format!("a reader of {}", route.name);
    while !shared.is_over() {
        let before = report.weather.now();
        counts.reads.add();
        let is_same = || report.weather.now() == before;
        let worked = || {
            if before.what.starts_with(REPLACED) && is_same() {
                counts.reads_replaced.add();
            }
        };
        let Err(first) = route.read_marker().await.inspect(|()| worked()) else {
            sleep(PACE).await;
            continue;
        };
        counts.reads_retried.add();
        let second = route.read_marker().await.inspect(|()| worked());
        for misread in [Some(&first), second.as_ref().err()].into_iter().flatten() {
            if let Misread::Wrong(text) = misread {
                report.violation(&who, &format!("told what is not so: {text}"));
            }
        }
        if let Err(second) = second {
            counts.reads_failed.add();
            if before.is_gentle && is_same() {
                report.violation(&who, &format!("two reads in a row failed: {first:?}, then {second:?}"));
            }
            sleep(PAUSE).await;
        }
    }
}
