//! Upstream's hub controllers: this part stands in for them and never beside them. Two would write
//! the same objects, and what one takes away the other would give back.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use register::ocm::rival::{Hold, LEASE, may_be_theirs};
use tokio::sync::watch;
use tokio::time::sleep;

use super::hub::now;

/// Without a Lease that runs out, nothing is to be looked at but what the watch tells.
const LONG: Duration = Duration::from_hours(1);

/// Who holds which Lease.
#[derive(Debug, Default)]
struct Leases(HashMap<String, Held>);

#[derive(Debug)]
struct Held {
    holder: String,
    until: Option<i64>,
    version: Option<String>,
}

/// What is known of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rivals {
    /// Not asked yet, or the hub does not say.
    Unknown,
    None,
    /// `namespace/holder` of one.
    Alive(String),
}

/// Tells `rivals` as it changes. Never ends.
pub async fn follow(client: Client, rivals: watch::Sender<Rivals>) {
    // An installation may have another namespace than the usual one.
    let api: Api<Lease> = Api::all(client);
    let only = watcher::Config::default().fields(&format!("metadata.name={LEASE}"));
    let mut events = pin!(watcher::watcher(api, only).default_backoff());
    let (mut leases, mut listed) = (Leases::default(), None);
    loop {
        let wait = leases.next_end().map_or(LONG, |end| Duration::from_millis(u64::try_from(end - now()).unwrap_or(0)));
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(Event::Init)) => listed = Some(Leases::default()),
                Some(Ok(Event::InitApply(lease))) => {
                    if let Some(listed) = &mut listed {
                        listed.take(&lease, leases.0.get(&namespace(&lease)));
                    }
                }
                Some(Ok(Event::InitDone)) => leases = listed.take().unwrap_or_default(),
                Some(Ok(Event::Apply(lease))) => {
                    let known = leases.0.remove(&namespace(&lease));
                    leases.take(&lease, known.as_ref());
                }
                Some(Ok(Event::Delete(lease))) => drop(leases.0.remove(&namespace(&lease))),
                Some(Err(error)) => {
                    tracing::warn!(%error, "cannot watch the Leases of Open Cluster Management's own controllers");
                    continue;
                }
                None => return,
            },
            () = sleep(wait) => {}
        }
        if listed.is_some() {
            continue;
        }
        rivals.send_if_modified(|known| {
            let seen = leases.alive(now()).map_or(Rivals::None, Rivals::Alive);
            let is_news = *known != seen;
            *known = seen;
            is_news
        });
    }
}

fn namespace(lease: &Lease) -> String {
    lease.namespace().unwrap_or_default()
}

// === impl Leases ===

impl Leases {
    fn take(&mut self, lease: &Lease, known: Option<&Held>) {
        if !may_be_theirs(&namespace(lease)) {
            return;
        }
        let version = lease.resource_version();
        let spec = lease.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.clone()).unwrap_or_default();
        let renewed = spec.and_then(|spec| Some(spec.renew_time.as_ref()?.0.as_millisecond()));
        let hold = Hold { holder: &holder, renewed, seconds: spec.and_then(|spec| spec.lease_duration_seconds) };
        let changed = known.is_some_and(|known| known.version != version).then(now);
        let until = hold.until(changed, now());
        self.0.insert(namespace(lease), Held { holder, until, version });
    }

    fn alive(&self, now: i64) -> Option<String> {
        let held = self.0.iter().find(|(_, held)| held.until.is_some_and(|until| until > now));
        held.map(|(namespace, held)| format!("{namespace}/{}", held.holder))
    }

    fn next_end(&self) -> Option<i64> {
        let now = now();
        self.0.values().filter_map(|held| held.until).filter(|until| *until > now).min()
    }
}
