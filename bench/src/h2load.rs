//! h2load (nghttp2): the load generator for HTTP/2.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};

use crate::child::{self, duration};
use crate::route::Route;
use crate::tool;

/// Bytes that a stream may send unread, as 2^n: as Go's clients allow (4 MiB).
const WINDOW_BITS: u8 = 22;
/// The longest time of another run, after one that ended before its first answer: on a busy
/// machine, a moment is over before the connections are made.
const LONGEST: Duration = Duration::from_secs(10);
/// The factor by which each such run is longer than the one before.
const LONGER: u32 = 6;

pub struct H2load {
    program: PathBuf,
}

/// The request, and the number of them at once.
#[derive(Clone, Debug)]
pub struct Shape {
    pub path: &'static str,
    pub connections: usize,
    /// Streams at once on each connection.
    pub streams: usize,
    pub amount: Amount,
    /// A file to POST; none: GET.
    pub upload: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug)]
pub enum Amount {
    /// As many requests as are answered in this time.
    For(Duration),
    Requests(usize),
}

/// Its results at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Answered with 2xx.
    pub requests: f64,
    pub elapsed: Duration,
    /// Mean time from sending a request until the end of its answer.
    pub mean: Duration,
}

// === impl Shape ===

impl Shape {
    /// GETs of `path`, `streams` at once on each of `connections`.
    pub const fn get(path: &'static str, connections: usize, streams: usize) -> Self {
        Self { path, connections, streams, amount: Amount::Requests(1), upload: None }
    }
}

// === impl Amount ===

impl Amount {
    fn time(self) -> Duration {
        match self {
            Self::For(time) => time,
            Self::Requests(_) => Duration::ZERO,
        }
    }

    /// The next amount to try, if nothing was answered.
    fn longer(self) -> Option<Self> {
        match self {
            Self::For(time) if time < LONGEST => Some(Self::For((LONGER * time).min(LONGEST))),
            Self::For(_) | Self::Requests(_) => None,
        }
    }
}

// === impl H2load ===

impl H2load {
    pub fn find() -> Result<Self> {
        Ok(Self { program: tool::find("h2load", "nghttp2-client")? })
    }

    /// Fails when a request does, or when none is answered.
    pub fn run(&self, route: &Route, shape: &Shape) -> Result<Summary> {
        let mut shape = shape.clone();
        loop {
            let said = child::said(&self.program, &arguments(route, &shape), shape.amount.time())?;
            let summary = parse(&said).with_context(|| format!("h2load said: {said}"))?;
            match (summary, shape.amount.longer()) {
                (Some(summary), _) => return Ok(summary),
                (None, Some(longer)) => shape.amount = longer,
                (None, None) => bail!("nothing was answered; h2load said: {said}"),
            }
        }
    }
}

fn arguments(route: &Route, shape: &Shape) -> Vec<String> {
    let mut arguments = vec![
        format!("-c{}", shape.connections),
        format!("-m{}", shape.streams),
        format!("-w{WINDOW_BITS}"),
        match shape.amount {
            Amount::For(time) => format!("-D{}ms", time.as_millis()),
            Amount::Requests(number) => format!("-n{number}"),
        },
    ];
    arguments.extend(shape.upload.iter().map(|file| format!("-d{}", file.display())));
    arguments.extend(route.headers.iter().map(|header| format!("-H{header}")));
    arguments.push(route.url(shape.path));
    arguments
}

/// `None` if nothing was answered.
fn parse(said: &str) -> Result<Option<Summary>> {
    let line = |start: &str| said.lines().find_map(|line| line.strip_prefix(start)).context(start.to_owned());
    let count = |line: &str, kind: &str| -> Result<u64> {
        let count = line.split(", ").find_map(|part| part.strip_suffix(kind)).context(kind.to_owned())?;
        Ok(count.trim().parse()?)
    };
    let elapsed = line("finished in ")?.split(',').next().and_then(duration).context("no time")?;
    let (requests, statuses) = (line("requests: ")?, line("status codes: ")?);
    for wrong in ["3xx", "4xx", "5xx"] {
        let count = count(statuses, wrong)?;
        ensure!(count == 0, "{count} answers were {wrong}");
    }
    for wrong in [" failed", " errored", " timeout"] {
        let count = count(requests, wrong)?;
        ensure!(count == 0, "{count} requests:{wrong}");
    }
    let requests = count(requests, " succeeded")?;
    if requests == 0 {
        return Ok(None);
    }
    let mean = line("time for request:")?.split_whitespace().nth(2).and_then(duration).context("no mean")?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    Ok(Some(Summary { requests: requests as f64, elapsed, mean }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of version 1.52.
    const SAID: &str = include_str!("h2load/said.txt");

    #[test]
    fn its_summary_is_understood() {
        let summary = parse(SAID).unwrap();
        let (elapsed, mean) = (Duration::from_secs(1), Duration::from_micros(826));
        assert_eq!(summary, Some(Summary { requests: 33_949.0, elapsed, mean }));
        let nothing = parse(&SAID.replace("33949 succeeded", "0 succeeded"));
        assert_eq!(nothing.unwrap(), None);
    }

    #[test]
    fn what_had_no_answer_in_a_moment_is_tried_for_longer_and_not_forever() {
        let times: Vec<Duration> =
            std::iter::successors(Some(Amount::For(Duration::from_millis(300))), |last| last.longer())
                .map(Amount::time)
                .collect();
        assert_eq!(times, [Duration::from_millis(300), Duration::from_millis(1800), LONGEST]);
        assert!(Amount::Requests(1).longer().is_none());
    }

    #[test]
    fn other_answers_and_failures_are_errors() {
        let error = |old: &str, new: &str| parse(&SAID.replace(old, new)).unwrap_err().to_string();
        assert_eq!(error(" 0 4xx", " 7 4xx"), "7 answers were 4xx");
        assert_eq!(error(" 0 failed", " 3 failed"), "3 requests: failed");
        assert!(parse("").is_err());
    }
}
