//! A watch of `virtualclusters`: one watch of the Secrets and, if the hub has the kind, one of the
//! `ManagedCluster`s.

use std::collections::VecDeque;
use std::sync::Arc;

use api::list_options::{InvalidListOptions, ListOptions, WatchOptions};
use api::secret::CREDENTIAL_TYPE_LABEL;
use api::served::Form;
use api::status::Status;
use api::virtual_cluster::RESOURCE;
use api::watch_event::{self, EventWriter};
use auth::Permission;
use bytes::Bytes;
use http::Request;
use net::cancellation::Cancellation;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};

use super::in_order::InOrder;
use super::virtual_sources::Sources;
use super::virtual_tracker::{ObjectsAtStart, Source, Tracker};
use super::watch::{self, Step, Watch};
use super::weight::{self, Weight};
use crate::clusters::managed::{Kind, ManagedClusters, is_absence};
use crate::error::Error;
use crate::hub::{Collection, Hub, Line, Watching};
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

/// Both watches, merged for the watcher.
pub struct VirtualWatch {
    secrets: Watching,
    managed: Option<Watching>,
    /// Whether the hub has `ManagedCluster`s; that may change.
    kinds: Arc<ManagedClusters>,
    kinds_changed: Receiver<()>,
    hub: Hub,
    /// Lines that wait for the other stream.
    order: InOrder,
    tracker: Tracker,
    lines: VecDeque<Bytes>,
    until: Instant,
    drain: Cancellation,
    closing: bool,
    over: bool,
    /// Counts what the hub sent and was not passed on yet, and what is kept of it.
    weight: Weight,
}

enum Next {
    /// A line need not wait any longer.
    Turn(Source, Line),
    /// A line has arrived, and waits for the other stream.
    Line(Source, Line),
    Settled,
    KindsChanged,
    /// The watch has reached its lifetime, or the gateway drains.
    TimeIsUp,
}

// === impl VirtualWatch ===

impl Watch for VirtualWatch {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.over {
                return None;
            }
            let step = match self.wait().await {
                Next::Line(source, line) => {
                    self.receive(source, line);
                    Step::Nothing
                }
                Next::Turn(source, Line::Whole(line)) => self.tracker.line(source, &line),
                Next::Turn(_, Line::TooLong) => Step::Last(watch::too_long()),
                Next::Turn(Source::Managed, Line::End) if kind_is_gone(self.hub.clone()).await => {
                    Step::Last(list_anew())
                }
                Next::KindsChanged if self.kinds.current().kind().is_some() != self.managed.is_some() => {
                    Step::Last(list_anew())
                }
                Next::KindsChanged | Next::Settled => Step::Nothing,
                // One stream was too slow for the other: a watch that continues from any sent
                // version could miss events.
                Next::Turn(_, Line::End) | Next::TimeIsUp if self.order.is_behind() => Step::Last(list_anew()),
                Next::Turn(_, Line::End) | Next::TimeIsUp => return None,
            };
            if let Some(line) = step.line(&mut self.over) {
                return Some(line);
            }
        }
    }
}

impl VirtualWatch {
    pub async fn begin(
        gateway: &RequestNeeds,
        hub: &Hub,
        permission: &Permission,
        options: WatchOptions,
        form: Form,
        request: &Request<RequestBody>,
    ) -> Result<Self, Error> {
        let kinds = gateway.managed.clone().unwrap_or_default();
        let kinds_changed = kinds.subscribe();
        let lifetime = watch::lifetime(options.timeout_seconds);
        let query = |label| options.to_hub(label, false, lifetime.as_secs());
        let failed = |failure| Error::hub(failure, RESOURCE);
        let reader = Some(permission.user().owner());
        let secrets = hub.watch(reader, Collection::Secrets, &query(CREDENTIAL_TYPE_LABEL)).await.map_err(failed)?;
        let managed = match hub.watch(reader, Collection::ManagedClusters, &query("")).await {
            Ok(watching) => Some(watching),
            Err(failure) if is_absence(&failure) => None,
            Err(failure) => return Err(failed(failure)),
        };
        let initial = options.wants_initial_events();
        if managed.is_some() && !initial {
            check_start(&kinds, &options.resource_version)?;
        }
        // After the watches have begun, so that changes that this list lacks arrive as events.
        let known = if initial || managed.is_none() {
            ObjectsAtStart::default()
        } else {
            known(&weight::asked_by(request, hub)).await?
        };
        let mut tracker = Tracker::new(EventWriter::new(form), options, managed.is_some(), known);
        let lines = if initial { tracker.local().into_iter().collect() } else { VecDeque::new() };
        let until = Instant::now() + lifetime + watch::GRACE;
        let mut weight = Weight::of(request);
        weight.set(tracker.held());
        Ok(Self {
            order: InOrder::new(managed.is_some()),
            secrets,
            managed,
            kinds,
            kinds_changed,
            hub: hub.clone(),
            tracker,
            lines,
            until,
            drain: gateway.drain.soft(),
            closing: false,
            over: false,
            weight,
        })
    }

    fn receive(&mut self, source: Source, line: Line) {
        let version = match &line {
            Line::Whole(line) => watch_event::version(line),
            Line::TooLong | Line::End => None,
        };
        // Once one of its streams has ended, the watch does not need the other.
        self.closing |= version.is_none();
        self.order.put(source, version, line, Instant::now());
    }

    async fn wait(&mut self) -> Next {
        let managed = self.managed.as_ref().map_or(0, |watching| watching.lines.held());
        self.weight.set(self.secrets.lines.held() + managed + self.order.held() + self.tracker.held());
        if let Some((source, line)) = self.order.take(Instant::now()) {
            return Next::Turn(source, line);
        }
        let settled = self.order.due().unwrap_or(self.until);
        let managed = async {
            match &mut self.managed {
                Some(watching) => watching.lines.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            line = self.secrets.lines.next(), if !self.closing => Next::Line(Source::Secrets, line),
            line = managed, if !self.closing => Next::Line(Source::Managed, line),
            _ = self.kinds_changed.changed() => Next::KindsChanged,
            () = sleep_until(settled), if settled < self.until => Next::Settled,
            () = sleep_until(self.until) => Next::TimeIsUp,
            () = &mut self.drain => Next::TimeIsUp,
        }
    }
}

async fn known(hub: &Hub) -> Result<ObjectsAtStart, Error> {
    let mut sources = Sources::list(hub, &ListOptions::default()).await?;
    let managed = sources.take_managed().map(|cluster| (cluster.name.clone(), cluster));
    let managed = managed.collect();
    Ok(ObjectsAtStart { secrets: sources.secrets().map(|cluster| cluster.name).collect(), managed })
}

/// Whether a watch ended because the kind is gone: a client that just watches again would keep the
/// deleted objects.
async fn kind_is_gone(hub: Hub) -> bool {
    matches!(hub.list(Collection::ManagedClusters, "limit=1").await, Err(failure) if is_absence(&failure))
}

/// Refuses a list from before the kind was noticed: it may lack clusters that no watch from its
/// version would show.
fn check_start(kinds: &ManagedClusters, version: &str) -> Result<(), Error> {
    let missed = if let Some(Kind { since }) = kinds.current().kind() {
        version.parse().unwrap_or(u64::MAX) < since
    } else {
        kinds.look();
        true
    };
    if missed { Err(Error::List(InvalidListOptions::TooOld(version.to_owned()))) } else { Ok(()) }
}

fn list_anew() -> Bytes {
    let reason =
        InvalidListOptions::TooOld("the events of Secrets and ManagedClusters have no version in common".to_owned());
    EventWriter::error(&Status::from(reason))
}
