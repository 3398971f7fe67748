//! Events on source objects, for `kubectl describe`.
//!
//! Ten thousand objects may be refused at once. Events wait in a queue of fixed length, of which
//! each namespace has a share, and are sent at a fixed rate. The same Event of an object is not
//! sent again for minutes. An Event for which the queue has no room is counted and left out, since
//! `/debug/sources` has the state of every object. Events that still wait when this replica stops
//! leading are dropped: the next leader sends them.

mod shares;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::shares::{EventPermit, Shares};
use crate::calls::MANAGER;
use crate::term::{Term, within_at_most};

/// Most Events that wait.
const MOST_WAITING: usize = 1024;
/// Time between two Events.
const PAUSE: Duration = Duration::from_millis(50);
/// Time in which the same Event is not published again.
const AGAIN_AFTER: Duration = Duration::from_mins(10);
/// Most Events that are remembered.
const MOST_REMEMBERED: usize = 16_384;
const WITHIN: Duration = Duration::from_secs(5);
/// Longest name of an object that kube derives the Event's name from: it adds a dot and a time in
/// nanoseconds, and a name has at most 253 characters.
const LONGEST_NAME: usize = 236;
/// The longest note that the API accepts (`events.k8s.io/v1`), in bytes.
const LONGEST_NOTE: usize = 1024;

/// Reasons of Events. Scripts and alerts match them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Another object, or a person's Secret, has the name.
    ClusterNameTaken,
    InvalidClusterName,
    /// No cluster can be made of the object's content.
    ClusterRefused,
    /// Another manager has set fields of the cluster's Secret.
    SecretConflict,
    ClusterRegistered,
    /// The object claims another name now; the Secret of its former one stays.
    FormerNameKept,
    /// Too many removals at once.
    RemovalHeld,
    /// A cluster that an administrator accepted could not be set up.
    AcceptanceFailed,
    /// A certificate request is not what an agent writes.
    RequestNotRecognized,
    /// A certificate request of an agent needs a person's approval, or waits.
    RequestNotApproved,
    /// Another manager's `ClusterProfile` has the name.
    ProfileNameTaken,
    /// Another manager has set fields of our `ClusterProfile`.
    ProfileConflict,
    /// A `ManagedServiceAccount` gets no token until a mistake is corrected.
    TokenReportFailed,
    /// The cluster of a `ManagedServiceAccount` does not answer.
    ClusterAway,
    /// A part found the Lease of the controllers that it stands in for.
    StandingBy,
    /// Changes of a Placement's decisions, with upstream's reasons.
    DecisionCreate,
    DecisionUpdate,
    /// An update of a decision that comes with a warning.
    DecisionWarning,
    DecisionDelete,
    ScoreUpdate,
    /// A Placement's own result changes its choice each time.
    Unstable,
    /// Another controller writes the decisions of a Placement.
    SchedulerConflict,
    /// Works of a set could not be written.
    WorksFailed,
    /// Several Placements of a set choose the same cluster.
    PlacementsOverlap,
    /// Another Placement of a set now chooses clusters that this one had chosen.
    WorksHandedOver,
    /// Another program's Secret has the name of a cluster's Secret for Argo CD.
    ArgocdSecretNameTaken,
    /// Another agent, or another cluster's work, keeps what a `ManifestWork` applied on the member.
    ForeignAgent,
    /// Another writer changes an object of a `ManifestWork` back each time.
    ObjectContested,
    /// A `ManifestWork` ended with its cluster, which could not be reached.
    WorkLeft,
    /// A cluster has more labels, conditions or claims than are kept of one.
    ClusterTooLarge,
    /// There are more works than are kept in memory: some are read from the hub each time.
    WorkNotKept,
    /// There are more objects of works than are watched: some are read from time to time.
    WorkNotWatched,
}

/// Publishes Events to one hub. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Events {
    waiting: mpsc::Sender<Pending>,
    shares: Shares,
    left_out: Counter,
    /// Ends the task with the last clone while the term has not begun. During the term the closed
    /// queue ends it.
    _open: Arc<DropGuard>,
}

struct Pending {
    _permit: EventPermit,
    object: ObjectReference,
    related: Option<ObjectReference>,
    reason: Reason,
    note: String,
}

// === impl Reason ===

impl Reason {
    fn as_str(self) -> &'static str {
        match self {
            Self::ClusterNameTaken => "ClusterNameTaken",
            Self::InvalidClusterName => "InvalidClusterName",
            Self::ClusterRefused => "ClusterRefused",
            Self::SecretConflict => "SecretConflict",
            Self::ClusterRegistered => "ClusterRegistered",
            Self::FormerNameKept => "FormerNameKept",
            Self::RemovalHeld => "RemovalHeld",
            Self::AcceptanceFailed => "AcceptanceFailed",
            Self::RequestNotRecognized => "RequestNotRecognized",
            Self::RequestNotApproved => "RequestNotApproved",
            Self::ProfileNameTaken => "ProfileNameTaken",
            Self::ProfileConflict => "ProfileConflict",
            Self::TokenReportFailed => "TokenReportFailed",
            Self::ClusterAway => "ClusterAway",
            Self::StandingBy => "StandingBy",
            Self::DecisionCreate => "DecisionCreate",
            Self::DecisionUpdate | Self::DecisionWarning => "DecisionUpdate",
            Self::DecisionDelete => "DecisionDelete",
            Self::ScoreUpdate => "ScoreUpdate",
            Self::Unstable => "Unstable",
            Self::SchedulerConflict => "SchedulerConflict",
            Self::WorksFailed => "WorksFailed",
            Self::PlacementsOverlap => "PlacementsOverlap",
            Self::WorksHandedOver => "WorksHandedOver",
            Self::ArgocdSecretNameTaken => "ArgocdSecretNameTaken",
            Self::ForeignAgent => "ForeignAgent",
            Self::ObjectContested => "ObjectContested",
            Self::WorkLeft => "WorkLeft",
            Self::ClusterTooLarge => "ClusterTooLarge",
            Self::WorkNotKept => "WorkNotKept",
            Self::WorkNotWatched => "WorkNotWatched",
        }
    }

    fn type_(self) -> EventType {
        match self {
            Self::ClusterRegistered
            | Self::StandingBy
            | Self::DecisionCreate
            | Self::DecisionUpdate
            | Self::DecisionDelete
            | Self::ScoreUpdate
            | Self::WorksHandedOver => EventType::Normal,
            _ => EventType::Warning,
        }
    }

    fn action(self) -> &'static str {
        match self {
            Self::RemovalHeld => "Remove",
            Self::AcceptanceFailed => "Accept",
            Self::RequestNotRecognized | Self::RequestNotApproved => "Approve",
            Self::ProfileNameTaken | Self::ProfileConflict | Self::ArgocdSecretNameTaken => "Publish",
            Self::TokenReportFailed | Self::ClusterAway => "ReportToken",
            Self::StandingBy => "StandBy",
            Self::DecisionCreate => "DecisionCreated",
            Self::DecisionUpdate | Self::DecisionWarning => "DecisionUpdated",
            Self::DecisionDelete => "DecisionDeleted",
            Self::ScoreUpdate => "ScoreUpdated",
            Self::Unstable | Self::SchedulerConflict => "Schedule",
            Self::WorksFailed | Self::PlacementsOverlap | Self::WorksHandedOver => "RollOut",
            Self::ForeignAgent | Self::ObjectContested | Self::WorkLeft | Self::WorkNotKept | Self::WorkNotWatched => {
                "Deliver"
            }
            _ => "Register",
        }
    }
}

// === impl Events ===

impl Events {
    /// Sends to `client`'s hub in `term`, from a task that ends with the term or with the last
    /// clone: before the term at once, during the term once the queue is empty.
    pub fn start(client: Client, left_out: Counter, term: Term) -> Self {
        let (events, queue, closed) = Self::with_room(MOST_WAITING, left_out);
        tokio::spawn(send_all(client, (queue, closed), term));
        events
    }

    /// The sender, its queue, and the token of the last drop.
    fn with_room(most: usize, left_out: Counter) -> (Self, mpsc::Receiver<Pending>, CancellationToken) {
        let ((waiting, queue), closed) = (mpsc::channel(most), CancellationToken::new());
        let open = Arc::new(closed.clone().drop_guard());
        (Self { waiting, shares: Shares::default(), left_out, _open: open }, queue, closed)
    }

    /// Queues an Event with `note` on an object.
    pub fn publish(&self, object: ObjectReference, reason: Reason, note: String) {
        self.publish_with(object, None, reason, note);
    }

    /// The same, on an object without a namespace, of a cluster that `is_accepted` or not: clusters
    /// that are not accepted share fewer places.
    pub fn publish_of(&self, is_accepted: bool, object: ObjectReference, reason: Reason, note: String) {
        let permit = if is_accepted { self.shares.enter(&object) } else { self.shares.enter_stranger(&object) };
        self.queue(permit, (object, None), reason, note);
    }

    /// Like [`Events::publish`], with a related object. For some minutes, Events that differ only
    /// in their notes are one Event with the first note. So a note about one of several names gets
    /// its own related object.
    pub fn publish_with(
        &self,
        object: ObjectReference,
        related: Option<ObjectReference>,
        reason: Reason,
        note: String,
    ) {
        let permit = self.shares.enter(&object);
        self.queue(permit, (object, related), reason, note);
    }

    fn queue(
        &self,
        permit: Option<EventPermit>,
        (object, related): (ObjectReference, Option<ObjectReference>),
        reason: Reason,
        mut note: String,
    ) {
        let end = note.floor_char_boundary(LONGEST_NOTE);
        note.truncate(end);
        let pending = permit.map(|permit| Pending { _permit: permit, object, related, reason, note });
        if pending.is_none_or(|pending| self.waiting.try_send(pending).is_err()) {
            self.left_out.inc();
        }
    }
}

async fn send_all(client: Client, (mut queue, closed): (mpsc::Receiver<Pending>, CancellationToken), term: Term) {
    let may_write = term.may_write();
    // Until then the queue keeps the Events of parts that wait.
    tokio::select! {
        () = term.begins() => {}
        () = closed.cancelled() => return,
    }
    let reporter = Reporter { controller: MANAGER.to_owned(), instance: std::env::var("POD_NAME").ok() };
    let recorder = Recorder::new(client.clone(), reporter.clone());
    let mut recent = Recent::default();
    while let Some(Pending { object, related, reason, note, .. }) = queue.recv().await {
        if !recent.remember(&object, reason, &note, Instant::now()) {
            continue;
        }
        let Ok(within) = within_at_most(may_write(), WITHIN) else { return };
        let event = Event {
            type_: reason.type_(),
            reason: reason.as_str().to_owned(),
            note: Some(note),
            action: reason.action().to_owned(),
            secondary: related,
        };
        let send = async {
            if object.name.as_ref().is_some_and(|name| name.len() > LONGEST_NAME) {
                create(&client, &reporter, event, object).await
            } else {
                recorder.publish(&event, &object).await
            }
        };
        match timeout(within, send).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, reason = reason.as_str(), "an Event was not accepted"),
            Err(_) => tracing::debug!(reason = reason.as_str(), "no answer to an Event in time"),
        }
        sleep(PAUSE).await;
    }
}

/// Creates an Event with a generated name, because its object's name is too long for kube's.
async fn create(client: &Client, reporter: &Reporter, event: Event, object: ObjectReference) -> kube::Result<()> {
    // As kube does for objects without a namespace.
    let namespace = object.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let event = v1::Event {
        metadata: ObjectMeta { generate_name: Some(format!("{MANAGER}-")), ..ObjectMeta::default() },
        action: Some(event.action),
        event_time: Some(MicroTime(Timestamp::now())),
        note: event.note,
        reason: Some(event.reason),
        regarding: Some(object),
        related: event.secondary,
        reporting_controller: Some(reporter.controller.clone()),
        reporting_instance: reporter.instance.clone().or_else(|| Some(reporter.controller.clone())),
        type_: Some(if matches!(event.type_, EventType::Normal) { "Normal" } else { "Warning" }.to_owned()),
        ..v1::Event::default()
    };
    Api::namespaced(client.clone(), &namespace).create(&PostParams::default(), &event).await.map(drop)
}

/// Recently published Events, and their times.
#[derive(Default)]
struct Recent(HashMap<(String, Reason, String), Instant>);

// === impl Recent ===

impl Recent {
    /// Records an Event as published now. Returns whether it is new.
    fn remember(&mut self, object: &ObjectReference, reason: Reason, note: &str, now: Instant) -> bool {
        if self.0.len() >= MOST_REMEMBERED {
            self.0.retain(|_, told| now < *told + AGAIN_AFTER);
            if self.0.len() >= MOST_REMEMBERED {
                self.0.clear();
            }
        }
        let key = (object.uid.clone().unwrap_or_default(), reason, note.to_owned());
        match self.0.get(&key) {
            Some(told) if now < *told + AGAIN_AFTER => false,
            _ => {
                self.0.insert(key, now);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;
    use crate::scripted;

    #[tokio::test(start_paused = true)]
    async fn the_same_is_told_again_after_a_while_only() {
        let (mut recent, object) = (Recent::default(), ObjectReference { uid: Some("1".into()), ..Default::default() });
        let start = Instant::now();
        assert!(recent.remember(&object, Reason::ClusterRefused, "no token", start));
        assert!(!recent.remember(&object, Reason::ClusterRefused, "no token", start + AGAIN_AFTER / 2));
        assert!(recent.remember(&object, Reason::ClusterRefused, "no CA", start), "another mistake");
        assert!(recent.remember(&object, Reason::ClusterRefused, "no token", start + AGAIN_AFTER));
        for number in 0..2 * MOST_REMEMBERED {
            recent.remember(&object, Reason::ClusterRefused, &number.to_string(), start);
        }
        assert!(recent.0.len() <= MOST_REMEMBERED);
    }

    #[tokio::test]
    async fn who_does_not_lead_says_nothing() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let hub = scripted::answering(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(scripted::text(200, ""))
        });
        let (events, queue, closed) = Events::with_room(2, Counter::default());
        for note in ["one", "two"] {
            events.publish(ObjectReference::default(), Reason::ClusterRefused, note.to_owned());
        }
        let (begin, term) = Term::ahead();
        let mut sending = pin!(send_all(hub, (queue, closed), term));
        assert!(sending.as_mut().now_or_never().is_none(), "its term has not begun");
        assert_eq!(asked.load(Ordering::Relaxed), 0);
        let terms = Mutex::new(vec![Duration::ZERO, Duration::from_secs(1)]);
        begin.now(Arc::new(move || terms.lock().pop().unwrap_or_default()));
        // The task ends with the term, although Events wait and more could come.
        sending.await;
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn an_object_with_the_longest_name_has_its_event() {
        let (sent, mut bodies) = mpsc::unbounded_channel();
        let hub = scripted::client(move |_, event| {
            let _ = sent.send(event.clone());
            Some((200, event))
        });
        let events = Events::start(hub, Counter::default(), Term::endless());
        for length in [LONGEST_NAME, 253] {
            let name = Some("a".repeat(length));
            let object = ObjectReference { name, uid: Some(length.to_string()), ..ObjectReference::default() };
            events.publish(object.clone(), Reason::InvalidClusterName, "why".to_owned());
            let event = bodies.recv().await.unwrap();
            let name = event["metadata"]["name"].as_str().or(event["metadata"]["generateName"].as_str()).unwrap();
            assert!(name.len() <= 253 && !name.ends_with('.'), "{name}");
            assert_eq!(event["regarding"]["name"].as_str(), object.name.as_deref());
            assert_eq!((&event["reason"], &event["type"]), (&"InvalidClusterName".into(), &"Warning".into()));
        }
    }

    /// One object that changes all the time, each time with other words.
    #[tokio::test(start_paused = true)]
    async fn one_namespace_keeps_no_other_from_being_told() {
        let (sent, mut bodies) = mpsc::unbounded_channel();
        let hub = scripted::client(move |head, _| {
            let _ = sent.send(head.uri.path().to_owned());
            Some((200, json!({})))
        });
        let events = Events::start(hub, Counter::default(), Term::endless());
        let of = |namespace: &str| ObjectReference {
            kind: Some("Secret".into()),
            namespace: Some(namespace.to_owned()),
            name: Some("s".into()),
            uid: Some(namespace.to_owned()),
            ..ObjectReference::default()
        };
        for number in 0..2 * MOST_WAITING {
            events.publish(of("busy"), Reason::ClusterRefused, number.to_string());
        }
        events.publish(of("other"), Reason::ClusterRefused, "why".to_owned());
        let began = Instant::now();
        while !bodies.recv().await.unwrap().contains("/namespaces/other/") {}
        assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_replica_that_is_dropped_before_its_term_keeps_no_task() {
        let hub = scripted::client(|_, _| None);
        let (events, queue, closed) = Events::with_room(1, Counter::default());
        events.publish(ObjectReference::default(), Reason::ClusterRefused, "one".to_owned());
        // The sender that could begin the term still exists.
        let (_begin, term) = Term::ahead();
        let mut sending = pin!(send_all(hub, (queue, closed), term));
        assert!(sending.as_mut().now_or_never().is_none());
        let other = events.clone();
        drop(events);
        assert!(sending.as_mut().now_or_never().is_none(), "a clone is left");
        drop(other);
        assert!(sending.now_or_never().is_some());
    }

    #[tokio::test]
    async fn what_finds_no_room_is_counted() {
        let (events, mut queue, _closed) = Events::with_room(1, Counter::default());
        for _ in 0..3 {
            events.publish(ObjectReference::default(), Reason::ClusterRefused, "é".repeat(LONGEST_NOTE));
        }
        assert_eq!(events.left_out.get(), 2);
        let Pending { note, .. } = queue.try_recv().unwrap();
        assert_eq!(note.len(), LONGEST_NOTE, "what an Event holds");
    }
}
