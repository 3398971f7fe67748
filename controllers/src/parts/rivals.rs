//! Upstream's controllers: a part stands in for them and never beside them. Two would write the
//! same objects, and what one takes away the other would give back.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use net::backoff::Backoff;
use net::words::causes;
use register::ocm::rival::Hold;
use telemetry::readiness::Readiness;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};

use super::hub::now;
use crate::term::Term;

/// Without a Lease that runs out, nothing is to be looked at but what the watch tells.
const LONG: Duration = Duration::from_hours(1);
/// Between two tries to watch.
const TRIES: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(10));
/// Of tries that failed, one this long ago does not count any more.
const FORGIVEN: Duration = Duration::from_mins(2);
/// For so long, in milliseconds, nobody is taken to have come while the hub says nothing: less than
/// any of upstream's takes to start and to get its Lease. What was held is held until the hub says
/// otherwise.
const SILENCE: i64 = 10_000;
/// After a rival is gone, until the work begins: the longer, the more often one came lately.
/// Whoever makes a Lease come and go would have everything listed each time.
const QUIET: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5));
/// A rival this long ago does not count any more.
const LATELY: Duration = Duration::from_mins(30);
/// Of a holder's name, in bytes, is told.
const LONGEST_HOLDER: usize = 128;

/// Controllers that a part stands in for.
pub struct Rival {
    /// Name of the Lease that they hold.
    pub lease: &'static str,
    /// Whether a Lease in a namespace can be theirs.
    pub may_be_theirs: fn(&str) -> bool,
    /// In `/readyz` while they run.
    pub reason: &'static str,
}

/// Who holds which Lease.
struct Leases {
    may_be_theirs: fn(&str) -> bool,
    /// By namespace.
    held: BTreeMap<String, Holder>,
    /// When the watch of them failed, in milliseconds since 1970, unless a list succeeded since.
    lost: Option<i64>,
}

struct Holder {
    identity: String,
    until: Option<i64>,
    version: Option<String>,
}

/// What is known of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rivals {
    /// Not asked yet, or the hub does not say.
    Unknown,
    None,
    /// One of them: the namespace of its Lease, and who holds it.
    Alive {
        namespace: String,
        holder: String,
    },
}

/// Does `work` while no rival runs, and begins it anew after each. `report` gets what is known,
/// each time that it is something else. In `term`, the program is not ready while one runs: before,
/// that would keep a Deployment from being rolled out. Never ends.
pub async fn while_alone<W: Future<Output = ()>>(
    client: &Client,
    rival: &Rival,
    (readiness, term): (&Readiness, &Term),
    report: impl Fn(&Rivals),
    work: impl Fn() -> W,
) {
    let (sender, mut rivals) = watch::channel(Rivals::Unknown);
    let stand_in = async {
        let mut quiet = Quiet::default();
        loop {
            tokio::select! {
                biased;
                never = not_ready(readiness, term, rival) => match never {},
                () = wait_alone(&report, &mut rivals, &mut quiet) => {}
            }
            let is_alone = |rivals: &Rivals| *rivals == Rivals::None;
            tokio::select! {
                () = Box::pin(work()) => {}
                _ = async { rivals.wait_for(|rivals| !is_alone(rivals)).await.map(drop) } => {
                    // It may be gone already.
                    if *rivals.borrow() != Rivals::Unknown {
                        quiet.came();
                    }
                }
            }
        }
    };
    tokio::join!(follow(client.clone(), rival, sender), stand_in);
}

/// Until it is dropped, from the beginning of the term.
async fn not_ready(readiness: &Readiness, term: &Term, rival: &Rival) -> Infallible {
    term.begins().await;
    let _not_ready = readiness.block(rival.reason);
    std::future::pending().await
}

/// Completes when none runs, and none has for a while.
async fn wait_alone(report: impl Fn(&Rivals), rivals: &mut watch::Receiver<Rivals>, quiet: &mut Quiet) {
    let mut last_reported = None;
    loop {
        let known = rivals.borrow_and_update().clone();
        let is_alone = known == Rivals::None;
        if matches!(known, Rivals::Alive { .. }) {
            quiet.came();
        }
        quiet.began(is_alone);
        if !is_alone && last_reported.as_ref().is_none_or(|last| known.is_news_after(last)) {
            report(&known);
            last_reported = Some(known);
        }
        tokio::select! {
            () = sleep_until(quiet.until), if is_alone => {
                report(&Rivals::None);
                return;
            }
            changed = rivals.changed() => if changed.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Tells `rivals` as it changes. Never ends.
async fn follow(client: Client, rival: &Rival, rivals: watch::Sender<Rivals>) {
    // An installation may have another namespace than the usual one.
    let api: Api<Lease> = Api::all(client);
    let only = watcher::Config::default().fields(&format!("metadata.name={}", rival.lease));
    // One that failed begins anew, with a list: a watch that goes on does not say so before
    // something changes.
    let begin = || watcher::watcher(api.clone(), only.clone()).boxed();
    let (mut events, mut begins) = (begin(), Instant::now());
    let (mut failures, mut failed) = (0, None::<Instant>);
    let (mut leases, mut listed) = (Leases::unlisted(rival), None);
    loop {
        let wait = leases.next_end().map_or(LONG, |end| Duration::from_millis(u64::try_from(end - now()).unwrap_or(0)));
        let next = async {
            sleep_until(begins).await;
            events.next().await
        };
        tokio::select! {
            event = next => match event {
                Some(Ok(event)) => leases.see(event, &mut listed),
                Some(Err(error)) => {
                    let (error, lease) = (causes(&error), rival.lease);
                    tracing::warn!(error, lease, "cannot watch the Leases of other controllers");
                    failures = if failed.is_none_or(|last| last.elapsed() > FORGIVEN) { 0 } else { failures + 1 };
                    (failed, begins) = (Some(Instant::now()), Instant::now() + TRIES.wait(failures));
                    events = begin();
                    leases.lost.get_or_insert_with(now);
                }
                None => return,
            },
            () = sleep(wait) => {}
        }
        rivals.send_if_modified(|known| {
            let seen = leases.alive(now());
            let is_news = *known != seen;
            *known = seen;
            is_news
        });
    }
}

fn namespace(lease: &Lease) -> String {
    lease.namespace().unwrap_or_default()
}

// === impl Rivals ===

impl Rivals {
    /// A holder may have any number of names.
    fn is_news_after(&self, told: &Self) -> bool {
        match (self, told) {
            (Self::Alive { namespace, .. }, Self::Alive { namespace: told, .. }) => namespace != told,
            _ => self != told,
        }
    }
}

// === impl Leases ===

impl Leases {
    /// Before the first list.
    fn unlisted(rival: &Rival) -> Self {
        Self { may_be_theirs: rival.may_be_theirs, held: BTreeMap::new(), lost: Some(i64::MIN) }
    }

    fn see(&mut self, event: Event<Lease>, listed: &mut Option<Self>) {
        let may_be_theirs = self.may_be_theirs;
        let new = move || Self { may_be_theirs, held: BTreeMap::new(), lost: None };
        match event {
            Event::Init => *listed = Some(new()),
            Event::InitApply(lease) => {
                if let Some(listed) = listed {
                    listed.take(&lease, self.held.get(&namespace(&lease)));
                }
            }
            Event::InitDone => *self = listed.take().unwrap_or_else(new),
            Event::Apply(lease) => {
                let known = self.held.remove(&namespace(&lease));
                self.take(&lease, known.as_ref());
            }
            Event::Delete(lease) => drop(self.held.remove(&namespace(&lease))),
        }
    }

    fn take(&mut self, lease: &Lease, known: Option<&Holder>) {
        if !(self.may_be_theirs)(&namespace(lease)) {
            return;
        }
        let version = lease.resource_version();
        let spec = lease.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
        let renewed = spec.and_then(|spec| Some(spec.renew_time.as_ref()?.0.as_millisecond()));
        let hold = Hold { holder: &holder, renewed, seconds: spec.and_then(|spec| spec.lease_duration_seconds) };
        let changed = known.is_some_and(|known| known.version != version).then(now);
        let until = hold.until(changed, now());
        let identity = holder[..holder.floor_char_boundary(LONGEST_HOLDER)].to_owned();
        self.held.insert(namespace(lease), Holder { identity, until, version });
    }

    /// While the hub says nothing, nobody gives up what he has.
    fn alive(&self, now: i64) -> Rivals {
        let heard = self.lost.map_or(now, |lost| lost.min(now));
        let alive = self.held.iter().find(|(_, held)| held.until.is_some_and(|until| until > heard));
        if let Some((namespace, held)) = alive {
            return Rivals::Alive { namespace: namespace.clone(), holder: held.identity.clone() };
        }
        if now.saturating_sub(heard) < SILENCE { Rivals::None } else { Rivals::Unknown }
    }

    /// When another may be known of without anything being told.
    fn next_end(&self) -> Option<i64> {
        let now = now();
        let ends = self.held.values().filter_map(|held| held.until);
        let silence = self.lost.map(|lost| lost.saturating_add(SILENCE));
        ends.chain(silence).filter(|until| *until > now).min()
    }
}

/// Since when nobody is there, and how often somebody came.
#[derive(Debug)]
struct Quiet {
    /// Until then the work does not begin.
    until: Instant,
    times: u32,
    last: Option<Instant>,
    is_there: bool,
}

// === impl Quiet ===

impl Default for Quiet {
    fn default() -> Self {
        Self { until: Instant::now(), times: 0, last: None, is_there: false }
    }
}

impl Quiet {
    fn came(&mut self) {
        if std::mem::replace(&mut self.is_there, true) {
            return;
        }
        let is_lately = self.last.is_some_and(|last| last.elapsed() < LATELY);
        self.times = if is_lately { self.times.saturating_add(1) } else { 1 };
        self.last = Some(Instant::now());
    }

    /// What is known has changed: nobody is there from now on, or somebody.
    fn began(&mut self, is_alone: bool) {
        if is_alone {
            self.is_there = false;
            let wait = self.times.checked_sub(1).map_or(Duration::ZERO, |before| QUIET.wait(before));
            self.until = Instant::now() + wait;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEIRS: Rival = Rival { lease: "theirs", may_be_theirs: |_| true, reason: "" };

    fn held(holder: &str, until: i64) -> Holder {
        Holder { identity: holder.to_owned(), until: Some(until), version: None }
    }

    fn alive(leases: &Leases, now: i64) -> String {
        match leases.alive(now) {
            Rivals::Unknown => "unknown".to_owned(),
            Rivals::None => "none".to_owned(),
            Rivals::Alive { namespace, holder } => format!("{namespace}/{holder}"),
        }
    }

    #[test]
    fn a_hold_runs_out_only_while_the_hub_says_so() {
        let mut leases = Leases::unlisted(&THEIRS);
        assert_eq!(alive(&leases, 0), "unknown", "nothing was listed");
        leases.see(Event::Init, &mut None);
        assert_eq!(alive(&leases, 0), "unknown", "nor is that all");
        leases.see(Event::InitDone, &mut None);
        assert_eq!(alive(&leases, 0), "none");
        leases.held.insert("b".to_owned(), held("b", 50_000));
        leases.held.insert("a".to_owned(), held("a", 20_000));
        assert_eq!(alive(&leases, 10_000), "a/a", "always the same of several");
        assert_eq!((alive(&leases, 30_000).as_str(), alive(&leases, 60_000).as_str()), ("b/b", "none"));
        leases.lost = Some(40_000);
        assert_eq!(alive(&leases, 1_000_000), "b/b", "it may have been renewed");
        leases.lost = Some(60_000);
        assert_eq!(alive(&leases, 60_000 + SILENCE - 1), "none", "nobody comes so soon");
        assert_eq!(alive(&leases, 60_000 + SILENCE), "unknown");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_comes_and_goes_is_waited_for_ever_longer() {
        let (sender, mut rivals) = watch::channel(Rivals::None);
        let mut quiet = Quiet::default();
        let mut waits = Vec::new();
        for _ in 0..6 {
            let began = Instant::now();
            wait_alone(|_| {}, &mut rivals, &mut quiet).await;
            waits.push(began.elapsed());
            sender.send_replace(Rivals::Alive { namespace: "n".into(), holder: "h".into() });
            let gone = async {
                tokio::task::yield_now().await;
                sender.send_replace(Rivals::None);
            };
            // Who comes is seen while it is waited for its end.
            tokio::select! {
                biased;
                () = wait_alone(|_| {}, &mut rivals, &mut quiet) => panic!("it is there"),
                () = gone => {}
            }
        }
        assert_eq!(waits[0], Duration::ZERO);
        assert!(waits[1] >= Duration::from_millis(500) && waits[5] >= Duration::from_secs(8), "{waits:?}");
    }
}
