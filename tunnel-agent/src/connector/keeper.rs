//! One address: the links through it, and the next one.
//!
//! The task owns its links and alone decides the next step ([`LinkKeeper::next`]); it makes one
//! attempt at a time. A link that is asked to leave, or whose credential is not the current one,
//! ends only when its replacement exists, or after a while.

mod live;
mod rest;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use net::random::fraction;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tunnel::LinkError;

use self::live::{Event, Live};
use self::rest::Rest;
use super::attempt::{self, AttemptError, NewLink};
use super::backoff::{Backoff, Kind};
use super::{Connector, Server};
use crate::links::Number;

/// A link that lived this long was good: the next failure counts as the first.
const STEADY: Duration = Duration::from_secs(10);
/// After a change of the credential, links are replaced over this time, not all at once.
const RENEW_WITHIN: Duration = Duration::from_secs(2);
/// For this long after a link, the keeper does not look for other servers behind its address.
const SETTLE: Duration = Duration::from_secs(1);
/// Links through an address that the name no longer resolves to end after this time, if there are
/// others.
const RETIRE_AFTER: Duration = Duration::from_mins(5);
/// The same complaint is logged at most this often while there is no link at all,
const COMPLAIN_EVERY: Duration = Duration::from_mins(1);
/// and while there is one: a name may resolve to addresses that are unreachable from here.
const COMPLAIN_EVERY_WHEN_LINKED: Duration = Duration::from_mins(10);
/// Two events per link.
const EVENTS: usize = 64;

/// See the module.
pub(super) struct LinkKeeper {
    connector: Arc<Connector>,
    server: Arc<Server>,
    /// None if a proxy resolves the server's name.
    address: Option<SocketAddr>,
    /// Id of this keeper in [`crate::links::Links`].
    id: u64,
    live: BTreeMap<u16, Live>,
    /// Numbers of lost links: a new link with the old one's number makes the server forget the old
    /// one, even if the server has not noticed the loss yet.
    spare: Vec<Arc<Number>>,
    attempt: Option<Attempt>,
    backoff: Backoff,
    rest: Rest,
    present: watch::Receiver<bool>,
    gone_since: Option<Instant>,
    renew_from: Instant,
    linked_at: Instant,
    complaint: Option<(String, Instant)>,
    events: mpsc::Receiver<Event>,
    reporter: mpsc::Sender<Event>,
}

struct Attempt {
    number: Arc<Number>,
    /// Whether the new link replaces the one with the same number.
    replaces: bool,
    made: Pin<Box<dyn Future<Output = Result<NewLink, AttemptError>> + Send>>,
}

/// The next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Make one more link.
    Link,
    /// Make a link in place of this one, whose credential is old.
    Renew(u16),
    /// End the links of an address that is gone.
    Retire,
}

// === impl LinkKeeper ===

impl LinkKeeper {
    pub(super) fn new(
        connector: Arc<Connector>,
        server: Arc<Server>,
        address: Option<SocketAddr>,
        present: watch::Receiver<bool>,
    ) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let (reporter, events) = mpsc::channel(EVENTS);
        Self {
            connector,
            server,
            address,
            id: IDS.fetch_add(1, Ordering::Relaxed),
            live: BTreeMap::new(),
            spare: Vec::new(),
            attempt: None,
            backoff: Backoff::default(),
            rest: Rest::default(),
            present,
            gone_since: None,
            renew_from: Instant::now(),
            linked_at: Instant::now(),
            complaint: None,
            events,
            reporter,
        }
    }

    /// Runs until the drain, or until the name no longer resolves to this address and the last link
    /// has ended.
    pub(super) async fn run(mut self) {
        let drain = self.connector.drain.clone();
        let mut links = self.connector.links.changed();
        let mut identities = self.connector.credentials.changes();
        let mut present = self.present.clone();
        loop {
            if self.gone_since.is_some() && self.live.is_empty() {
                break;
            }
            self.connector.links.wanted_through(self.id, Some(self.wanted()));
            let next = if self.attempt.is_none() { self.next() } else { None };
            let due = next.map_or_else(Instant::now, |(due, _)| due);
            tokio::select! {
                biased;
                () = drain.soft() => {
                    self.attempt = None;
                    self.end_all().await;
                    break;
                }
                Some(event) = self.events.recv() => self.on_event(event),
                // Before the attempt: a failure with the new credential must still count.
                Ok(()) = identities.changed() => self.on_identity(),
                made = made(&mut self.attempt) => self.on_made(made),
                Ok(()) = present.changed() => self.on_presence(*present.borrow_and_update()),
                () = sleep_until(due), if next.is_some() => self.take(next.map(|(_, step)| step)),
                // Links of other keepers came or went: it may be time to look again.
                Ok(()) = links.changed() => self.rest.on_change(self.connector.links.summary().servers),
            }
        }
        self.connector.links.wanted_through(self.id, None);
    }

    /// The next step, and when it is due. Links are renewed even if the name no longer resolves to
    /// the address: a DNS answer may contain only a part of the addresses, and the old credential
    /// may expire before a later answer contains this one.
    fn next(&self) -> Option<(Instant, Step)> {
        let now = Instant::now();
        let links = &self.connector.links;
        let from = self.backoff.until().unwrap_or(now);
        let rested = from.max(self.rest.until().unwrap_or(now));
        let more = if let Some(since) = self.gone_since {
            Some((since + RETIRE_AFTER, Step::Retire))
        } else if self.live.len() < links.per_server() {
            Some((rested, Step::Link))
        } else if self.live.len() < 2 * links.per_server() && links.wants_more_through(self.id) {
            // Other keepers may be about to find the missing server.
            Some((rested.max(self.linked_at + SETTLE), Step::Link))
        } else {
            None
        };
        let generation = *self.connector.credentials.changes().borrow();
        let old = self.live.iter().find(|(_, live)| live.generation < generation);
        let renew = old.map(|(number, _)| (from.max(self.renew_from), Step::Renew(*number)));
        [more, renew].into_iter().flatten().min_by_key(|(due, _)| *due)
    }

    /// Number of wanted links. Links that would only lead to servers with enough links do not count
    /// as missing.
    fn wanted(&self) -> usize {
        let resting = self.rest.until().is_some() || self.gone_since.is_some();
        if resting { self.live.len() } else { self.connector.links.per_server().max(self.live.len()) }
    }

    fn take(&mut self, step: Option<Step>) {
        let (number, replaces) = match step {
            Some(Step::Link) => (self.spare.pop().or_else(|| self.connector.links.number().map(Arc::new)), false),
            Some(Step::Renew(number)) => (self.live.get(&number).map(|live| Arc::clone(&live.number)), true),
            Some(Step::Retire) => return self.retire(),
            None => return,
        };
        let Some(number) = number else { return };
        let (connector, server) = (Arc::clone(&self.connector), Arc::clone(&self.server));
        let identity = self.connector.credentials.current();
        let made = Box::pin(attempt::make(connector, server, self.address, number.get(), identity));
        self.attempt = Some(Attempt { number, replaces, made });
    }

    fn on_made(&mut self, made: Result<NewLink, AttemptError>) {
        let Some(Attempt { number, replaces, .. }) = self.attempt.take() else { return };
        match made {
            Ok(made) => self.link(made, &number, replaces),
            Err(error) => {
                if !replaces {
                    self.spare.push(number);
                }
                self.complain(&error);
                self.backoff.failed(error.kind(), self.asked_to_wait(&error));
                self.server.look_again.notify_one();
            }
        }
    }

    /// The wait that the server asked for. But a server that is shutting down speaks only for
    /// itself: if there is no link at all, other servers behind the address are worth an attempt
    /// soon.
    fn asked_to_wait(&self, error: &AttemptError) -> Option<Duration> {
        let alone = self.connector.links.summary().links == 0;
        let most = if alone && error.is_unavailable() { SETTLE } else { Duration::MAX };
        error.retry_after().map(|asked| asked.min(most))
    }

    fn link(&mut self, made: NewLink, number: &Arc<Number>, replaces: bool) {
        let (metrics, link) = (&self.connector.metrics, number.get());
        metrics.registrations.inc();
        self.complaint = None;
        // The link to replace may have been lost meanwhile.
        self.spare.retain(|spare| spare.get() != link);
        let old = if replaces { self.live.remove(&link) } else { None };
        let server = made.registered.server.clone();
        let Some(live) = Live::start(&self.connector, self.id, made, number, old.is_some(), &self.reporter) else {
            tracing::debug!(address = %self, server, "this server has enough links, one more is not needed");
            return self.rest.found_nothing_new();
        };
        tracing::info!(address = %self, server, link, "linked");
        self.rest.end();
        self.linked_at = Instant::now();
        self.live.insert(link, live);
        if let Some(old) = old {
            metrics.links_replaced.inc();
            old.drain();
        }
    }

    fn complain(&mut self, error: &AttemptError) {
        self.connector.metrics.not_registered(error.word());
        let reason = error.to_string();
        let linked = self.connector.links.summary().links > 0;
        let every = if linked { COMPLAIN_EVERY_WHEN_LINKED } else { COMPLAIN_EVERY };
        if self.complaint.as_ref().is_some_and(|(last, at)| *last == reason && at.elapsed() < every) {
            return;
        }
        let advice = error.advice(&self.connector);
        tracing::warn!(address = %self, reason, advice, "not linked, trying again");
        self.complaint = Some((reason, Instant::now()));
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Leaving { link, id } => self.on_leaving(link, id),
            Event::Ended { link, id, how } => self.on_ended(link, id, &how),
        }
    }

    /// The link with `id`, if it is not already leaving.
    fn remove(&mut self, link: u16, id: u64) -> Option<Live> {
        let known = self.live.get(&link).is_some_and(|live| live.id() == id);
        if known { self.live.remove(&link) } else { None }
    }

    fn on_leaving(&mut self, link: u16, id: u64) {
        let Some(live) = self.remove(link, id) else { return };
        tracing::info!(address = %self, server = %live.server, link, "the server asks to link elsewhere");
        self.connector.metrics.links_replaced.inc();
        if live.since.elapsed() < STEADY {
            self.backoff.failed(Kind::Passing, None);
        } else {
            self.backoff.reset();
        }
        self.rest.end();
        self.server.look_again.notify_one();
        live.leave(&self.connector);
    }

    fn on_ended(&mut self, link: u16, id: u64, how: &Result<(), LinkError>) {
        let Some(live) = self.remove(link, id) else { return };
        self.connector.metrics.links_lost.inc();
        let reason = how.as_ref().map_or_else(ToString::to_string, |()| "the server closed it".to_owned());
        let lived = live.since.elapsed();
        tracing::warn!(address = %self, server = %live.server, link, reason, ?lived, "link lost");
        self.spare.push(Arc::clone(&live.number));
        if lived >= STEADY {
            self.backoff.reset();
        }
        // Links to one server end together, which is one failure.
        if !self.backoff.is_waiting() {
            self.backoff.failed(Kind::Passing, None);
        }
        self.rest.end();
        self.server.look_again.notify_one();
    }

    /// A new credential may be accepted where the old one was refused.
    fn on_identity(&mut self) {
        self.renew_from = Instant::now() + RENEW_WITHIN.mul_f64(fraction());
        self.backoff.reset();
    }

    fn on_presence(&mut self, present: bool) {
        if present == self.gone_since.is_none() {
            return;
        }
        self.gone_since = (!present).then(Instant::now);
        if !present {
            // A new link would be useless. Existing links stay for a while, and need the current
            // credential.
            self.attempt.take_if(|attempt| !attempt.replaces);
            tracing::info!(address = %self, server = %self.server.name, "the name no longer resolves here");
        }
    }

    /// The address has been gone for long: ends its links, if there are others.
    fn retire(&mut self) {
        self.gone_since = Some(Instant::now());
        if self.connector.links.summary().links > self.live.len() {
            for live in std::mem::take(&mut self.live).into_values() {
                live.drain();
            }
        }
    }

    /// Sends GOAWAY on all links; returns when the last has ended.
    async fn end_all(&mut self) {
        let leaving: Vec<_> = std::mem::take(&mut self.live).into_values().map(Live::drain).collect();
        for ended in leaving {
            ended.cancelled().await;
        }
    }
}

/// Waits for the attempt, or forever if there is none.
async fn made(attempt: &mut Option<Attempt>) -> Result<NewLink, AttemptError> {
    match attempt {
        Some(attempt) => attempt.made.as_mut().await,
        None => std::future::pending().await,
    }
}

/// The address, or the name that a proxy resolves.
impl std::fmt::Display for LinkKeeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.address {
            Some(address) => address.fmt(f),
            None => self.server.name.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests;
