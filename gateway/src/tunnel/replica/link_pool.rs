//! The links to one replica, and the tasks that make and watch them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use net::flight::Flight;
use tokio::runtime::Id;
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};
use tunnel::Link;

use super::Replica;
use crate::metrics::InFlight;
use crate::tunnel::link::Unlinked;

/// Consecutive checks without a stream that end a link.
pub(super) const IDLE_LOOKS: u32 = 10;
pub(super) const LOOK: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct LinkPool {
    pub(super) by_runtime: HashMap<Id, Links>,
    pub(super) pause: Option<Pause>,
}

/// The links of one runtime.
#[derive(Default)]
pub(super) struct Links {
    pub(super) all: Vec<PooledLink>,
    pub(super) next: u64,
    pub(super) making: Option<Flight<LinkOutcome>>,
}

pub(super) struct PooledLink {
    pub(super) number: u64,
    pub(super) link: Link,
    /// Generation of the files with which the link was made.
    pub(super) generation: u64,
    /// Signals the link's task when the link leaves the pool.
    pub(super) _guard: DropGuard,
}

pub(super) type LinkOutcome = Result<(), Arc<Unlinked>>;

pub(super) struct Pause {
    pub(super) until: Instant,
    /// Consecutive failures.
    pub(super) failures: u32,
    pub(super) why: Arc<Unlinked>,
}

/// Makes a link, and watches it while it is in use.
pub(super) async fn make(replica: Weak<Replica>, runtime: Id) -> LinkOutcome {
    let Some(strong) = replica.upgrade() else { return Ok(()) };
    let address = strong.address;
    let (link, generation) = strong.linking.link(address, &strong.name).await.map_err(|error| strong.failed(error))?;
    let released = CancellationToken::new();
    let number = strong.made(runtime, &link, generation, released.clone().drop_guard());
    let open = InFlight::new(&strong.open);
    drop(strong);
    tracing::info!(%address, "linked to a tunnel-server");
    tokio::spawn(async move {
        let why = look_after(&replica, runtime, released, link).await;
        if let Some(replica) = replica.upgrade() {
            replica.forget(runtime, number);
        }
        drop(open);
        tracing::info!(%address, reason = why, "link to a tunnel-server is no longer used");
    });
    Ok(())
}

/// Returns when the link accepts no new streams, had none for long, or was made with old files.
pub(super) async fn look_after(
    replica: &Weak<Replica>,
    runtime: Id,
    released: CancellationToken,
    link: Link,
) -> String {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut idle = 0;
    loop {
        tokio::select! {
            biased;
            why = link.ended() => return why.to_string(),
            () = link.leaving() => return "it is leaving".to_owned(),
            () = released.cancelled() => return "certificates have changed, or its address".to_owned(),
            _ = look.tick() => {}
        }
        let Some(replica) = replica.upgrade() else { return "the gateway has ended".to_owned() };
        replica.weed(runtime);
        idle = if link.streams() == 0 { idle + 1 } else { 0 };
        if idle > IDLE_LOOKS {
            return "idle".to_owned();
        }
    }
}
