//! wrk: the load generator for HTTP/1.1.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::child::{self, duration};
use crate::route::Route;
use crate::tool;

pub struct Wrk {
    program: PathBuf,
}

/// Its results at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    pub requests: f64,
    pub elapsed: Duration,
    pub p50: Duration,
    pub p99: Duration,
}

// === impl Wrk ===

impl Wrk {
    pub fn find() -> Result<Self> {
        Ok(Self { program: tool::find("wrk", "wrk")? })
    }

    /// GETs of `path`, one at a time on each of `connections`, for about `time`: it counts in whole
    /// seconds. Fails when a request does.
    pub fn run(&self, route: &Route, path: &str, connections: usize, time: Duration) -> Result<Summary> {
        let seconds = time.as_secs().max(1);
        let mut arguments =
            vec!["-t1".to_owned(), format!("-c{connections}"), format!("-d{seconds}s"), "--latency".to_owned()];
        arguments.extend(route.headers.iter().map(|header| format!("-H{header}")));
        arguments.push(route.url(path));
        let said = child::said(&self.program, &arguments, Duration::from_secs(seconds))?;
        parse(&said).with_context(|| format!("wrk said: {said}"))
    }
}

fn parse(said: &str) -> Result<Summary> {
    if let Some(wrong) = said.lines().find(|line| line.contains("Socket errors:") || line.contains("Non-2xx")) {
        bail!("{}", wrong.trim());
    }
    let percentile =
        |name: &str| said.lines().find_map(|line| duration(line.trim().strip_prefix(name)?)).context(name.to_owned());
    let total = said.lines().find_map(|line| line.trim().split_once(" requests in ")).context("no total")?;
    let elapsed = total.1.split(',').next().and_then(duration).context("no time")?;
    Ok(Summary { requests: total.0.parse()?, elapsed, p50: percentile("50%")?, p99: percentile("99%")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of version 4.1.0.
    const SAID: &str = include_str!("wrk/said.txt");

    #[test]
    fn its_summary_is_understood() {
        let (p50, p99) = (Duration::from_micros(450), Duration::from_micros(69_220));
        let expected = Summary { requests: 18_173.0, elapsed: Duration::from_millis(1090), p50, p99 };
        assert_eq!(parse(SAID).unwrap(), expected);
    }

    #[test]
    fn other_answers_and_broken_connections_are_errors() {
        let with = |line: &str| {
            parse(&SAID.replace("Requests/sec", &format!("{line}\nRequests/sec"))).unwrap_err().to_string()
        };
        assert_eq!(with("  Non-2xx or 3xx responses: 5511"), "Non-2xx or 3xx responses: 5511");
        assert!(with("  Socket errors: connect 0, read 12, write 0, timeout 0").contains("read 12"));
        assert!(parse("").is_err());
    }
}
