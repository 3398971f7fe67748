//! How long the hops took to open a stream, as reported in a 200.
//!
//! The header is that of W3C's Server Timing (<https://www.w3.org/TR/server-timing/>). It helps
//! people to find a slow hop: an end works the same without it, and older ones send none.

use std::num::NonZeroU32;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};

/// The header.
pub(crate) const TIMING: &str = "server-timing";
/// The metric of the tunnel-server: its wait for the agent's answer.
const AGENT: &str = "agent";
/// The metric of the agent: its dial of the destination.
const DIAL: &str = "dial";
/// Longest value that is read, in bytes; ours has 40 at most.
const LONGEST: usize = 256;
/// Most values that are read of one answer.
const MOST_VALUES: usize = 4;

#[cfg(test)]
pub(crate) const LIMITS: (usize, usize) = (MOST_VALUES, LONGEST);

/// The times that the hops report. Small, because it lasts as long as its stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timing {
    agent: Option<Micros>,
    dial: Option<Micros>,
}

/// At least one, so that `None` takes no extra room; at most 71 minutes, and no dial lasts so long.
type Micros = NonZeroU32;

// === impl Timing ===

impl Timing {
    /// What an agent reports whose dial of the destination, including the lookup of its name, took
    /// `took`.
    pub fn of_dial(took: Duration) -> Self {
        Self { dial: Some(micros(took)), ..Self::default() }
    }

    /// Adds what a tunnel-server reports: its wait for the agent's answer.
    #[must_use]
    pub fn with_agent(self, took: Duration) -> Self {
        Self { agent: Some(micros(took)), ..self }
    }

    /// From the tunnel-server's request to the agent's answer, including the agent's dial.
    pub fn agent(self) -> Option<Duration> {
        self.agent.map(duration)
    }

    /// The agent's dial.
    pub fn dial(self) -> Option<Duration> {
        self.dial.map(duration)
    }

    /// Reads an answer. Skips what cannot be read.
    pub fn read(headers: &HeaderMap) -> Self {
        let mut timing = Self::default();
        let values = headers.get_all(TIMING).iter().take(MOST_VALUES);
        let texts = values.filter_map(|value| value.to_str().ok()).filter(|text| text.len() <= LONGEST);
        for (name, took) in texts.flat_map(|text| text.split(',')).filter_map(metric) {
            match name {
                AGENT => timing.agent = Some(took),
                DIAL => timing.dial = Some(took),
                _ => {}
            }
        }
        timing
    }

    /// Writes the header, unless there is nothing to report.
    pub(crate) fn write(self, headers: &mut HeaderMap) {
        let told = [(AGENT, self.agent), (DIAL, self.dial)].into_iter();
        let told = told.filter_map(|(name, took)| took.map(|took| format!("{name};dur={}", millis(took))));
        let value = told.collect::<Vec<_>>().join(", ");
        if let Ok(value) = HeaderValue::try_from(value)
            && !value.is_empty()
        {
            headers.insert(TIMING, value);
        }
    }
}

/// A metric's name and its duration.
fn metric(text: &str) -> Option<(&str, Micros)> {
    let (name, params) = text.split_once(';')?;
    let value = params.split(';').find_map(|param| {
        let (key, value) = param.split_once('=')?;
        (key.trim() == "dur").then(|| value.trim())
    });
    let millis: f64 = value?.parse().ok()?;
    let longest = f64::from(Micros::MAX.get()) / 1000.0;
    (0.0..longest).contains(&millis).then(|| (name.trim(), micros(Duration::from_secs_f64(millis / 1000.0))))
}

fn micros(took: Duration) -> Micros {
    let micros = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
    Micros::new(micros).unwrap_or(Micros::MIN)
}

fn duration(took: Micros) -> Duration {
    Duration::from_micros(took.get().into())
}

/// In milliseconds, the unit of the header.
fn millis(took: Micros) -> String {
    format!("{}.{:03}", took.get() / 1000, took.get() % 1000)
}

#[cfg(test)]
mod tests;
