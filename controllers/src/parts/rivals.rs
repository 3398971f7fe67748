//! Upstream's controllers: a part stands in for them and never beside them. Two would write the
//! same objects, and what one takes away the other would give back.

use std::collections::HashMap;
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt as _};
use register::ocm::rival::Hold;
use telemetry::readiness::Readiness;
use tokio::sync::watch;
use tokio::time::sleep;

use super::hub::now;

/// Without a Lease that runs out, nothing is to be looked at but what the watch tells.
const LONG: Duration = Duration::from_hours(1);

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
    held: HashMap<String, Held>,
}

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
    /// One of them: the namespace of its Lease, and who holds it.
    Alive {
        namespace: String,
        holder: String,
    },
}

/// Does `work` while no rival runs, and begins it anew after each. `told` hears what is known,
/// each time that it is something else. Never ends.
pub async fn while_alone<W: Future<Output = ()>>(
    client: &Client,
    rival: &Rival,
    readiness: &Readiness,
    told: impl Fn(&Rivals),
    work: impl Fn() -> W,
) {
    let (tell, mut rivals) = watch::channel(Rivals::Unknown);
    let stand_in = async {
        loop {
            wait_alone(readiness, rival.reason, &told, &mut rivals).await;
            let is_alone = |rivals: &Rivals| *rivals == Rivals::None;
            tokio::select! {
                () = Box::pin(work()) => {}
                _ = async { rivals.wait_for(|rivals| !is_alone(rivals)).await.map(drop) } => {}
            }
        }
    };
    tokio::join!(follow(client.clone(), rival, tell), stand_in);
}

/// Completes when none runs.
async fn wait_alone(
    readiness: &Readiness,
    reason: &'static str,
    told: impl Fn(&Rivals),
    rivals: &mut watch::Receiver<Rivals>,
) {
    let not_ready = readiness.block(reason);
    loop {
        let known = rivals.borrow_and_update().clone();
        told(&known);
        if known == Rivals::None {
            break;
        }
        if rivals.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
    drop(not_ready);
}

/// Tells `rivals` as it changes. Never ends.
async fn follow(client: Client, rival: &Rival, rivals: watch::Sender<Rivals>) {
    // An installation may have another namespace than the usual one.
    let api: Api<Lease> = Api::all(client);
    let only = watcher::Config::default().fields(&format!("metadata.name={}", rival.lease));
    let mut events = pin!(watcher::watcher(api, only).default_backoff());
    let (mut leases, mut listed) = (Leases::new(rival), None);
    loop {
        let wait = leases.next_end().map_or(LONG, |end| Duration::from_millis(u64::try_from(end - now()).unwrap_or(0)));
        tokio::select! {
            event = events.next() => match event {
                Some(Ok(Event::Init)) => listed = Some(Leases::new(rival)),
                Some(Ok(Event::InitApply(lease))) => {
                    if let Some(listed) = &mut listed {
                        listed.take(&lease, leases.held.get(&namespace(&lease)));
                    }
                }
                Some(Ok(Event::InitDone)) => leases = listed.take().unwrap_or_else(|| Leases::new(rival)),
                Some(Ok(Event::Apply(lease))) => {
                    let known = leases.held.remove(&namespace(&lease));
                    leases.take(&lease, known.as_ref());
                }
                Some(Ok(Event::Delete(lease))) => drop(leases.held.remove(&namespace(&lease))),
                Some(Err(error)) => {
                    tracing::warn!(%error, lease = rival.lease, "cannot watch the Leases of other controllers");
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

// === impl Leases ===

impl Leases {
    fn new(rival: &Rival) -> Self {
        Self { may_be_theirs: rival.may_be_theirs, held: HashMap::new() }
    }

    fn take(&mut self, lease: &Lease, known: Option<&Held>) {
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
        self.held.insert(namespace(lease), Held { holder, until, version });
    }

    fn alive(&self, now: i64) -> Rivals {
        let alive = self.held.iter().find(|(_, held)| held.until.is_some_and(|until| until > now));
        let told = alive.map(|(namespace, held)| (namespace.clone(), held.holder.clone()));
        told.map_or(Rivals::None, |(namespace, holder)| Rivals::Alive { namespace, holder })
    }

    fn next_end(&self) -> Option<i64> {
        let now = now();
        self.held.values().filter_map(|held| held.until).filter(|until| *until > now).min()
    }
}
