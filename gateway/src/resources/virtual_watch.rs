//! A watch of `virtualclusters`: one watch of the Secrets and, where the hub has them, one of the `ManagedCluster`s.

use std::collections::VecDeque;
use std::sync::Arc;

use api::list_options::{InvalidListOptions, WatchOptions};
use api::secret::CREDENTIAL_TYPE_LABEL;
use api::served::Form;
use api::status::Status;
use api::virtual_cluster::RESOURCE;
use api::watch_event::EventWriter;
use bytes::Bytes;
use futures_util::stream::unfold;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, sleep_until};

use super::virtual_tracker::{Known, Memory, Nothing, Source, Tracker};
use super::watch::{self, Events, Step};
use crate::clusters::managed::{Kind, ManagedClusters, is_absence};
use crate::error::Error;
use crate::hub::{Collection, Hub, Line, Watching};
use crate::shared::Shared;

/// Both watches on their way to the watcher.
pub struct VirtualWatch {
    secrets: Watching,
    managed: Option<Watching>,
    /// Whether the hub has `ManagedCluster`s; it may get and lose them.
    kinds: Arc<ManagedClusters>,
    kinds_changed: Receiver<()>,
    hub: Hub,
    tracker: Tracker,
    lines: VecDeque<Bytes>,
    until: Instant,
    over: bool,
}

enum Next {
    Line(Source, Line),
    KindsChanged,
    TimeIsUp,
}

// === impl VirtualWatch ===

impl VirtualWatch {
    pub async fn begin(shared: &Shared, hub: &Hub, options: WatchOptions, form: Form) -> Result<Self, Error> {
        let kinds = shared.managed.clone().unwrap_or_default();
        let kinds_changed = kinds.subscribe();
        let lifetime = watch::lifetime(options.timeout_seconds);
        let query = |label| options.to_hub(label, false, lifetime.as_secs());
        let failed = |failure| Error::hub(failure, RESOURCE);
        let secrets = hub.watch(Collection::Secrets, &query(CREDENTIAL_TYPE_LABEL)).await.map_err(failed)?;
        let managed = match hub.watch(Collection::ManagedClusters, &query("")).await {
            Ok(watching) => Some(watching),
            Err(failure) if is_absence(&failure) => None,
            Err(failure) => return Err(failed(failure)),
        };
        let initial = options.wants_initial_events();
        if managed.is_some() && !initial {
            check_start(&kinds, &options.resource_version)?;
        }
        let memory: Box<dyn Memory> = if initial {
            Box::new(Nothing)
        } else {
            Box::new(Known { clusters: Arc::clone(&shared.clusters), managed: Arc::clone(&kinds) })
        };
        let mut tracker = Tracker::new(EventWriter::new(form), options, managed.is_some(), memory);
        let lines = if initial { tracker.local().into_iter().collect() } else { VecDeque::new() };
        let until = Instant::now() + lifetime + watch::GRACE;
        Ok(Self { secrets, managed, kinds, kinds_changed, hub: hub.clone(), tracker, lines, until, over: false })
    }

    pub fn stream(self) -> Events {
        Box::pin(unfold(self, |mut watch| async move { watch.next().await.map(|line| (line, watch)) }))
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.over {
                return None;
            }
            let step = match self.wait().await {
                Next::Line(source, Line::Whole(line)) => self.tracker.line(source, &line),
                Next::Line(_, Line::TooLong) => Step::Last(watch::too_long()),
                Next::Line(Source::Managed, Line::End) if kind_is_gone(self.hub.clone()).await => {
                    Step::Last(list_anew())
                }
                Next::KindsChanged if self.kinds.current().kind().is_some() != self.managed.is_some() => {
                    Step::Last(list_anew())
                }
                Next::KindsChanged => Step::Nothing,
                Next::Line(_, Line::End) | Next::TimeIsUp => return None,
            };
            match step {
                Step::Nothing => {}
                Step::Send(line) => return Some(line),
                Step::Last(line) => {
                    self.over = true;
                    return Some(line);
                }
            }
        }
    }

    async fn wait(&mut self) -> Next {
        let managed = async {
            match &mut self.managed {
                Some(watching) => watching.lines.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            line = self.secrets.lines.next() => Next::Line(Source::Secrets, line),
            line = managed => Next::Line(Source::Managed, line),
            _ = self.kinds_changed.changed() => Next::KindsChanged,
            () = sleep_until(self.until) => Next::TimeIsUp,
        }
    }
}

/// Whether a watch ended because there is nothing to watch any more: whoever just watches again would keep what is gone.
async fn kind_is_gone(hub: Hub) -> bool {
    matches!(hub.list(Collection::ManagedClusters, "limit=1").await, Err(failure) if is_absence(&failure))
}

/// A list from before the kind was noticed may lack clusters that no watch from its version tells of.
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
    let reason = InvalidListOptions::TooOld("the hub has got or lost its ManagedClusters".to_owned());
    EventWriter::error(&Status::from(reason))
}
