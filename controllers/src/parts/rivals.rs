//! Upstream's controllers: a part stands in for them and never beside them. Two would write the
//! same objects, and what one takes away the other would give back.

mod pods;
mod quiet;
mod sought;

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

use self::pods::KnownPods;
pub use self::pods::Workload;
use self::quiet::Quiet;
pub use self::sought::{Place, Rival, Sought};
use super::catch_up::WATCH;
use super::hub_calls::{now_millis, renewed};
use crate::calls::paged;
use crate::raw::{Bounded, CONTENTS};
use crate::term::{Begin, Term};
use crate::together;

/// With no Lease that runs out, only the watches bring news.
const LONG: Duration = Duration::from_hours(1);
/// Between two tries to watch: no longer than [`SILENCE`].
const TRIES: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(10));
/// Of tries that failed, one this long ago does not count any more.
const FORGIVEN: Duration = Duration::from_mins(2);
/// For so long, in milliseconds, no rival counts as come while the hub says nothing: less than any
/// of upstream's takes to start and to get its Lease. What was held is held until the hub says
/// otherwise.
const SILENCE: i64 = 10_000;
/// Bytes of a holder's name that are reported.
const LONGEST_HOLDER: usize = 128;
/// Reported of a Lease whose contents cannot be read.
const UNREADABLE_HOLDER: &str = "(its contents cannot be read)";

/// The holder of each Lease.
struct Leases<'a> {
    sought: Sought<'a>,
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
    /// One runs: the namespace and the holder of its Lease, or the namespace of its Deployment and,
    /// as holder, the Deployment's name.
    Alive {
        namespace: String,
        holder: String,
    },
}

/// Does `work` while no rival runs, and begins it anew after each. `report` gets what is known,
/// each time that it is something else. In `term`, the program is not ready while one runs: before,
/// that would keep a Deployment from being rolled out. The term that `work` gets begins when the
/// hub has said, in `term`, that none runs. Never ends.
pub async fn while_alone<W: Future<Output = ()>>(
    client: &Client,
    sought: Sought<'_>,
    (readiness, term): (&Readiness, &Term),
    report: impl Fn(&Rivals),
    work: impl Fn(Term) -> W,
) {
    let (sender, mut rivals) = watch::channel(Rivals::Unknown);
    let asked = watch::Sender::new(false);
    let deployment = sought.rival.deployment;
    let pods = watch::Sender::new(KnownPods::before(deployment));
    let stand_in = async {
        let mut quiet = Quiet::default();
        loop {
            tokio::select! {
                biased;
                never = not_ready(readiness, term, sought.rival) => match never {},
                () = wait_alone(&report, &mut rivals, &mut quiet) => {}
            }
            let is_alone = |rivals: &Rivals| *rivals == Rivals::None;
            let (begin, own) = Term::ahead();
            tokio::select! {
                // The rivals are known before the term begins.
                biased;
                _ = async { rivals.wait_for(|rivals| !is_alone(rivals)).await.map(drop) } => {
                    // It may be gone already.
                    if *rivals.borrow() != Rivals::Unknown {
                        quiet.came();
                    }
                }
                never = begins(term, &asked, &begin) => match never {},
                () = Box::pin(work(own)) => {}
            }
        }
    };
    let found = follow_leases(client.clone(), sought, term, (sender, &asked), pods.subscribe());
    let looked = pods::look(client.clone(), deployment, term, &pods);
    // The work may have a hundred events a second, and these watches have hardly any.
    together::three(Box::pin(found), Box::pin(looked), Box::pin(stand_in)).await;
}

/// Has `begin` begin with the term, after the hub was asked for rivals in it.
async fn begins(term: &Term, asked: &watch::Sender<bool>, begin: &Begin) -> Infallible {
    term.begins().await;
    // The sender lives as long as this does.
    let _ = asked.subscribe().wait_for(|asked| *asked).await;
    begin.now(term.may_write());
    std::future::pending().await
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

/// Tells `rivals` as it changes, and when the hub has said in `term` who there is. Never ends.
async fn follow_leases(
    client: Client,
    sought: Sought<'_>,
    term: &Term,
    (rivals, asked): (watch::Sender<Rivals>, &watch::Sender<bool>),
    mut pods: watch::Receiver<KnownPods>,
) {
    // An installation may have another namespace than the usual one.
    let api: Api<Bounded<Lease>> = Api::all(client);
    let lease = sought.rival.lease;
    let only = paged().fields(&format!("metadata.name={lease}")).timeout(WATCH);
    // One that failed begins anew, with a list: a watch that goes on does not say so before
    // something changes.
    let begin = || (watcher::watcher(api.clone(), only.clone()).boxed(), term.has_begun());
    let ((mut events, mut is_of_term), mut begins) = (begin(), Instant::now());
    let (mut failures, mut failed) = (0, None::<Instant>);
    let (mut leases, mut listing, mut is_listed_in_term) = (Leases::unlisted(sought), None, false);
    loop {
        let wait =
            leases.next_end().map_or(LONG, |end| Duration::from_millis(u64::try_from(end - now_millis()).unwrap_or(0)));
        let next = async {
            sleep_until(begins).await;
            events.next().await
        };
        tokio::select! {
            event = next => match event {
                Some(Ok(event)) => {
                    is_listed_in_term |= is_of_term && matches!(event, Event::InitDone);
                    leases.see(event, &mut listing);
                }
                Some(Err(error)) => {
                    let error = causes(&error);
                    tracing::warn!(error, lease, "cannot watch the Leases of other controllers");
                    failures = if failed.is_none_or(|last| last.elapsed() > FORGIVEN) { 0 } else { failures + 1 };
                    (failed, begins) = (Some(Instant::now()), Instant::now() + TRIES.wait(failures));
                    (events, is_of_term) = begin();
                    leases.lost.get_or_insert_with(now_millis);
                }
                None => return,
            },
            // The last events may be long ago: a connection may break without a word.
            () = term.begins(), if !is_of_term => (events, is_of_term) = begin(),
            Ok(()) = pods.changed() => {}
            () = sleep(wait) => {}
        }
        let known = *pods.borrow_and_update();
        let seen = known.pods.beside(leases.alive(now_millis()), sought.rival.deployment);
        rivals.send_if_modified(|last| {
            let is_news = *last != seen;
            *last = seen;
            is_news
        });
        if is_listed_in_term && known.is_of_term {
            asked.send_replace(true);
        }
    }
}

fn namespace(lease: &Bounded<Lease>) -> String {
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

impl<'a> Leases<'a> {
    /// Before the first list.
    fn unlisted(sought: Sought<'a>) -> Self {
        Self { sought, held: BTreeMap::new(), lost: Some(i64::MIN) }
    }

    fn see(&mut self, event: Event<Bounded<Lease>>, listing: &mut Option<Self>) {
        let sought = self.sought;
        let new = move || Self { sought, held: BTreeMap::new(), lost: None };
        match event {
            Event::Init => *listing = Some(new()),
            Event::InitApply(lease) => {
                if let Some(listing) = listing {
                    listing.take(&lease, self.held.get(&namespace(&lease)));
                }
            }
            Event::InitDone => *self = listing.take().unwrap_or_else(new),
            Event::Apply(lease) => {
                let known = self.held.remove(&namespace(&lease));
                self.take(&lease, known.as_ref());
            }
            Event::Delete(lease) => drop(self.held.remove(&namespace(&lease))),
        }
    }

    /// One that cannot be read counts as held from its first sight, and from each change of it.
    fn take(&mut self, lease: &Bounded<Lease>, known: Option<&Holder>) {
        if !self.sought.may_be_in(&namespace(lease)) {
            return;
        }
        let version = lease.resource_version();
        let changed = known.is_some_and(|known| known.version != version).then(now_millis);
        let (holder, until) = if lease.left_out == Some(CONTENTS) {
            let seen = Hold { holder: UNREADABLE_HOLDER, renewed: Some(now_millis()), seconds: None };
            let same = known.filter(|_| changed.is_none());
            (UNREADABLE_HOLDER.to_owned(), same.map_or_else(|| seen.until(None, now_millis()), |same| same.until))
        } else {
            let spec = lease.object.spec.as_ref();
            let holder = spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
            let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
            let hold = Hold { holder: &holder, renewed: renewed(&lease.object), seconds };
            let until = hold.until(changed, now_millis());
            (holder, until)
        };
        let identity = holder[..holder.floor_char_boundary(LONGEST_HOLDER)].to_owned();
        self.held.insert(namespace(lease), Holder { identity, until, version });
    }

    /// At `now`, in milliseconds since 1970. While the hub says nothing, every holder keeps its
    /// Lease.
    fn alive(&self, now: i64) -> Rivals {
        let heard = self.lost.map_or(now, |lost| lost.min(now));
        let alive = self.held.iter().find(|(_, held)| held.until.is_some_and(|until| until > heard));
        if let Some((namespace, held)) = alive {
            return Rivals::Alive { namespace: namespace.clone(), holder: held.identity.clone() };
        }
        if now.saturating_sub(heard) < SILENCE { Rivals::None } else { Rivals::Unknown }
    }

    /// When another may be known of without any event.
    fn next_end(&self) -> Option<i64> {
        let now = now_millis();
        let ends = self.held.values().filter_map(|held| held.until);
        let silence = self.lost.map(|lost| lost.saturating_add(SILENCE));
        ends.chain(silence).filter(|until| *until > now).min()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use k8s_openapi::jiff::Timestamp;
    use parking_lot::Mutex;
    use serde_json::{Value, json};
    use tokio::time::timeout;

    use super::*;
    use crate::scripted;

    const THEIRS: Sought<'_> =
        Sought { rival: &Rival { lease: "theirs", deployment: None, place: Place::Any, reason: "" }, namespaces: &[] };

    fn held(holder: &str, until: i64) -> Holder {
        Holder { identity: holder.to_owned(), until: Some(until), version: None }
    }

    fn alive(leases: &Leases<'_>, now: i64) -> String {
        match leases.alive(now) {
            Rivals::Unknown => "unknown".to_owned(),
            Rivals::None => "none".to_owned(),
            Rivals::Alive { namespace, holder } => format!("{namespace}/{holder}"),
        }
    }

    #[test]
    fn a_hold_runs_out_only_while_the_hub_says_so() {
        let mut leases = Leases::unlisted(THEIRS);
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

    #[test]
    fn whoever_may_write_leases_elsewhere_is_nobody() {
        let (namespaces, held_in) = (["b".to_owned()], |sought| {
            let mut leases = Leases::unlisted(sought);
            for event in [Event::Init, Event::InitDone, Event::Apply(lease("a", 3600)), Event::Apply(lease("b", 3600))]
            {
                leases.see(event, &mut None);
            }
            leases.held.into_keys().collect::<Vec<_>>()
        });
        assert_eq!(held_in(THEIRS), ["a", "b"]);
        assert_eq!(held_in(Sought { namespaces: &namespaces, ..THEIRS }), ["b"]);
        let usual = Rival { place: Place::Usual(|namespace| namespace == "a"), ..*THEIRS.rival };
        assert_eq!(held_in(Sought { rival: &usual, namespaces: &[] }), ["a"]);
        assert_eq!(held_in(Sought { rival: &usual, namespaces: &namespaces }), ["a", "b"]);
    }

    /// Its time is one that a hub takes and this program cannot read.
    #[test]
    fn a_lease_that_cannot_be_read_is_held_where_its_namespace_counts() {
        let bad = |namespace: &str, version: &str| -> Bounded<Lease> {
            let metadata = json!({"name": "theirs", "namespace": namespace, "resourceVersion": version});
            let spec = json!({"holderIdentity": "h", "renewTime": "9999-12-31T23:59:59.000000Z"});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        let namespaces = ["b".to_owned()];
        let mut leases = Leases::unlisted(Sought { namespaces: &namespaces, ..THEIRS });
        let mut listing = None;
        for event in [Event::Init, Event::InitApply(bad("a", "1")), Event::InitDone] {
            leases.see(event, &mut listing);
        }
        assert_eq!(alive(&leases, now_millis()), "none", "whoever may write Leases elsewhere is nobody");
        leases.see(Event::Apply(bad("b", "1")), &mut listing);
        assert_eq!(alive(&leases, now_millis()), format!("b/{UNREADABLE_HOLDER}"));
        // Listed again, it is as old as it was, unless it has changed.
        for (version, is_held) in [("1", false), ("2", true)] {
            leases.held.get_mut("b").unwrap().until = Some(1);
            for event in [Event::Init, Event::InitApply(bad("b", version)), Event::InitDone] {
                leases.see(event, &mut listing);
            }
            assert_eq!(alive(&leases, now_millis()) != "none", is_held, "{version}");
        }
    }

    fn lease(namespace: &str, seconds: i32) -> Bounded<Lease> {
        let now = MicroTime(Timestamp::now());
        serde_json::from_value(json!({"metadata": {"name": "theirs", "namespace": namespace, "resourceVersion": "2"},
            "spec": {"holderIdentity": "h", "leaseDurationSeconds": seconds, "renewTime": now}}))
        .unwrap()
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

    /// A hub with these Leases and Deployments, whose watches send no events.
    fn hub(objects: &Arc<Mutex<[Vec<Value>; 2]>>) -> Client {
        let objects = Arc::clone(objects);
        scripted::client(move |head, _| {
            if head.uri.query().is_some_and(|query| query.contains("watch=")) {
                return None;
            }
            let [leases, deployments] = &*objects.lock();
            let items = if head.uri.path().ends_with("/leases") { leases } else { deployments };
            let metadata = json!({"resourceVersion": "1"});
            Some((200, json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items})))
        })
    }

    #[tokio::test(start_paused = true)]
    async fn who_came_while_the_watches_were_dead_is_there_before_the_term_begins() {
        let begun_beside = async |comes: [Vec<Value>; 2]| {
            let (objects, begun) = (Arc::<Mutex<[Vec<Value>; 2]>>::default(), AtomicBool::new(false));
            let (begin, term) = Term::ahead();
            let (client, readiness) = (hub(&objects), Readiness::default());
            let work = |own: Term| {
                let begun = &begun;
                async move {
                    own.begins().await;
                    begun.store(true, Ordering::Relaxed);
                    std::future::pending::<()>().await;
                }
            };
            let deployment = Some(Workload { namespace: "n", name: "theirs" });
            let theirs = Rival { lease: "theirs", deployment, place: Place::Any, reason: "" };
            let sought = Sought { rival: &theirs, namespaces: &[] };
            let mut running = pin!(while_alone(&client, sought, (&readiness, &term), |_| {}, work));
            assert!(timeout(Duration::from_secs(5), &mut running).await.is_err());
            *objects.lock() = comes;
            begin.now(Arc::new(|| Duration::MAX));
            assert!(timeout(Duration::from_secs(5), &mut running).await.is_err());
            begun.load(Ordering::Relaxed)
        };
        let held = serde_json::to_value(lease("n", 3600).object).unwrap();
        let runs = json!({"metadata": {"name": "theirs", "namespace": "n", "resourceVersion": "2"},
            "status": {"replicas": 1}});
        assert!(begun_beside([vec![], vec![]]).await);
        assert!(!begun_beside([vec![held], vec![]]).await);
        assert!(!begun_beside([vec![], vec![runs]]).await);
    }
}
