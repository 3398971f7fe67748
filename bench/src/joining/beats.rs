//! Renewals of thousands of Leases, while something else is measured.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::Result;
use time::OffsetDateTime;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use super::clusters::renewal;
use crate::caller::Caller;

/// Renewals at a time.
const AT_ONCE: usize = 32;

/// Renewals that go on until this is dropped.
pub struct Beats {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

// === impl Beats ===

impl Beats {
    /// Renews the Lease of each of `clusters` once a `period`, evenly spread, as the caller `hub`.
    /// A Lease that is not there yet is renewed the next time.
    pub fn start(hub: Caller, clusters: Vec<String>, period: Duration) -> Result<Self> {
        let (stop, stopped) = oneshot::channel::<()>();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let pause = period / u32::try_from(clusters.len())?;
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    _ = beat(hub, &clusters, pause) => {}
                }
            });
        });
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Beats {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Never ends, unless the hub cannot be reached.
async fn beat(hub: Caller, clusters: &[String], pause: Duration) -> Result<()> {
    let (connection, room) = (hub.connect().await?, Arc::new(Semaphore::new(AT_ONCE)));
    let mut ticks = interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for cluster in clusters.iter().cycle() {
        ticks.tick().await;
        let permit = Arc::clone(&room).acquire_owned().await?;
        let (hub, connection) = (hub.clone(), connection.clone());
        let request = renewal(&hub, cluster, OffsetDateTime::now_utc())?;
        tokio::spawn(async move {
            let _permit = permit;
            drop(hub.ask(&connection, request).await);
        });
    }
    Ok(())
}
