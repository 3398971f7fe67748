//! Container logs: one line for each second that a container ran.
//!
//! Nothing is stored. A line is a function of the pod's name and its number, and how many there are follows
//! from the container's state, so a log survives any number of readers in no memory at all.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use time::{Duration, OffsetDateTime};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{
    clock::{self, Clock},
    kind::Kind,
    object::{Key, Object},
    request::Query,
    sample,
    status::Refusal,
    watch::Hub,
};

/// Lines that a kubelet would still have after rotating its files.
const RETAINED: i64 = 500;

/// What the client asked for: the parameters of `pods/<name>/log`.
#[derive(Debug)]
pub(crate) struct LogOptions {
    container: String,
    follow: bool,
    previous: bool,
    timestamps: bool,
    tail: Option<i64>,
    since: Option<i64>,
    limit: Option<u64>,
}

/// An open log.
#[derive(Debug)]
pub(crate) struct LogStream {
    hub: Arc<Hub>,
    key: Key,
    options: LogOptions,
    clock: watch::Receiver<OffsetDateTime>,
    /// Number of the next line.
    position: i64,
    /// Bytes that may still be sent.
    budget: u64,
    stop: CancellationToken,
    opened: bool,
}

/// The stretch of time a container ran, which is also the extent of its log.
#[derive(Clone, Copy, Debug)]
struct Run {
    started: OffsetDateTime,
    /// Seconds, and lines.
    length: i64,
    running: bool,
}

// === impl LogOptions ===

impl LogOptions {
    /// Reads the query.
    pub(crate) fn parse(query: &Query) -> Result<Self, Refusal> {
        let lines = |key: &str| -> Result<Option<i64>, Refusal> {
            let number = query.number(key)?;
            Ok(number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)))
        };
        Ok(Self {
            container: query.text("container").to_owned(),
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            tail: lines("tailLines")?,
            since: lines("sinceSeconds")?,
            limit: query.number("limitBytes")?,
        })
    }
}

// === impl LogStream ===

impl LogStream {
    /// Opens the log of a pod's container; refuses what a kubelet would refuse, in its words.
    pub(crate) fn open(
        hub: Arc<Hub>,
        key: Key,
        mut options: LogOptions,
        clock: &Clock,
        stop: CancellationToken,
    ) -> Result<Self, Refusal> {
        let clock = clock.subscribe();
        let missing = || Refusal::NoSuchObject { kind: Kind::Pod, name: key.name.clone() };
        let pod = hub.get(&key).ok_or_else(missing)?;
        options.container = choose_container(&pod, &options.container)?;
        let now = *clock.borrow();
        let run = Run::of(&pod, &options.container, now)?;
        if options.previous && run.running {
            let text =
                format!("previous terminated container \"{}\" in pod \"{}\" not found", options.container, key.name);
            return Err(Refusal::BadRequest(text));
        }
        let wanted = options.tail.unwrap_or(RETAINED).min(options.since.unwrap_or(RETAINED)).min(RETAINED);
        let position = (run.length - wanted).max(0);
        let budget = options.limit.unwrap_or(u64::MAX);
        Ok(Self { hub, key, options, clock, position, budget, stop, opened: false })
    }

    /// The next piece of the log; `None` when it is over.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.opened && !self.wait_for_more().await {
                return None;
            }
            self.opened = true;
            let now = *self.clock.borrow_and_update();
            // A pod that is gone ends its log, as the kubelet does.
            let pod = self.hub.get(&self.key)?;
            let run = Run::of(&pod, &self.options.container, now).ok()?;
            let text = self.lines_up_to(&run);
            if !run.running {
                self.options.follow = false;
            }
            if !text.is_empty() {
                return Some(Bytes::from(text));
            }
        }
    }

    /// Whether there can be more: waits for the next second if the log is followed.
    async fn wait_for_more(&mut self) -> bool {
        if !self.options.follow || self.budget == 0 {
            return false;
        }
        tokio::select! {
            () = self.stop.cancelled() => false,
            beat = self.clock.changed() => beat.is_ok(),
        }
    }

    fn lines_up_to(&mut self, run: &Run) -> String {
        let mut text = String::new();
        while self.position < run.length && self.budget > 0 {
            let at = run.started + Duration::seconds(self.position);
            let stamp = if self.options.timestamps { clock::timestamp(at) + " " } else { String::new() };
            let mut line = format!("{stamp}{}\n", line(&self.key.name, self.position));
            line.truncate(usize::try_from(self.budget).unwrap_or(usize::MAX).min(line.len()));
            self.budget -= line.len() as u64;
            self.position += 1;
            text.push_str(&line);
        }
        text
    }
}

// === impl Run ===

impl Run {
    fn of(pod: &Object, container: &str, now: OffsetDateTime) -> Result<Self, Refusal> {
        let statuses = pod.body["status"]["containerStatuses"].as_array();
        let status = statuses.into_iter().flatten().find(|status| status["name"] == container);
        let waiting = || {
            let reason = status.and_then(|status| status["state"]["waiting"]["reason"].as_str()).unwrap_or("Pending");
            let text = format!("container \"{container}\" in pod \"{}\" is waiting to start: {reason}", pod.key.name);
            Refusal::BadRequest(text)
        };
        let status = status.ok_or_else(waiting)?;
        let moment = |value: &Value| value.as_str().and_then(clock::parse_timestamp);
        if let Some(started) = moment(&status["state"]["running"]["startedAt"]) {
            return Ok(Self { started, length: (now - started).whole_seconds(), running: true });
        }
        [&status["state"]["terminated"], &status["lastState"]["terminated"]]
            .into_iter()
            .find_map(|ended| Some((moment(&ended["startedAt"])?, moment(&ended["finishedAt"])?)))
            .map(|(started, finished)| Self { started, length: (finished - started).whole_seconds(), running: false })
            .ok_or_else(waiting)
    }
}

/// The container asked for, or the only one.
fn choose_container(pod: &Object, asked: &str) -> Result<String, Refusal> {
    let containers = pod.body["spec"]["containers"].as_array();
    let names: Vec<&str> = containers.into_iter().flatten().filter_map(|c| c["name"].as_str()).collect();
    match names.as_slice() {
        [only] if asked.is_empty() => Ok((*only).to_owned()),
        names if names.contains(&asked) => Ok(asked.to_owned()),
        names if asked.is_empty() => Err(Refusal::BadRequest(format!(
            "a container name must be specified for pod {}, choose one of: [{}]",
            pod.key.name,
            names.join(" ")
        ))),
        _ => Err(Refusal::BadRequest(format!("container {asked} is not valid for pod {}", pod.key.name))),
    }
}

/// The text of one line.
fn line(pod: &str, number: i64) -> String {
    const PATHS: [&str; 6] = ["/", "/cart", "/search?q=tea", "/api/items", "/healthz", "/checkout"];
    let chance = sample::hash(&[pod, &number.to_string()]);
    // The low bits of FNV-1a repeat with the last digit.
    let path = PATHS[usize::try_from((chance >> 40) % 6).unwrap_or_default()];
    let status = if (chance >> 24).is_multiple_of(32) { 503 } else { 200 };
    format!("level=info n={number} path={path} status={status} duration={}ms", 1 + (chance >> 32) % 90)
}

#[cfg(test)]
mod tests;
