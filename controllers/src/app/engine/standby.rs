//! Work that is handed from the replica that waits to the one that leads, which are the same: what
//! it read while it waited, it need not read when its term begins.

use std::convert::Infallible;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::{Mutex, watch};

use super::Engine;
use crate::term::{Begin, MayWrite, Term};

/// The work of a replica, whether it leads or waits.
pub struct Standby<'a> {
    engine: &'a Engine,
    /// Of the next term. Who holds the lock drives it.
    next: Mutex<Option<Ready<'a>>>,
    leads: watch::Sender<bool>,
}

/// Work whose term has not begun.
struct Ready<'a> {
    work: BoxFuture<'a, ()>,
    begin: Begin,
}

/// Says that this replica leads, until it is dropped.
struct Sign<'s, 'a>(&'s Standby<'a>);

// === impl Standby ===

impl<'a> Standby<'a> {
    pub fn new(engine: &'a Engine) -> Self {
        Self { engine, next: Mutex::default(), leads: watch::Sender::new(false) }
    }

    /// Reads while this replica does not lead. Never ends.
    pub async fn wait(&self) -> Infallible {
        let mut leads = self.leads.subscribe();
        loop {
            // The sender lives as long as this does.
            let _ = leads.wait_for(|leads| !leads).await;
            let mut next = self.next.lock().await;
            let ready = next.get_or_insert_with(|| Ready::new(self.engine));
            let has_ended = tokio::select! {
                () = &mut ready.work => true,
                _ = leads.wait_for(|leads| *leads) => false,
            };
            if has_ended {
                // There is nothing to be made ready.
                *next = None;
                drop(next);
                let _ = leads.wait_for(|leads| *leads).await;
            }
        }
    }

    /// Goes on with it in a term. It is gone when this is dropped, and the next begins anew.
    pub async fn lead(&self, may_write: MayWrite) {
        let _sign = Sign::show(self);
        let ready = self.next.lock().await.take();
        let Ready { work, begin } = ready.unwrap_or_else(|| Ready::new(self.engine));
        begin.now(may_write);
        work.await;
    }
}

// === impl Ready ===

impl<'a> Ready<'a> {
    fn new(engine: &'a Engine) -> Self {
        let (begin, term) = Term::ahead();
        Self { work: engine.work(term).boxed(), begin }
    }
}

// === impl Sign ===

impl<'s, 'a> Sign<'s, 'a> {
    fn show(standby: &'s Standby<'a>) -> Self {
        standby.leads.send_replace(true);
        standby.engine.metrics.leader.set(1);
        Self(standby)
    }
}

impl Drop for Sign<'_, '_> {
    fn drop(&mut self) {
        self.0.engine.metrics.retire();
        self.0.engine.reports.clear();
        self.0.leads.send_replace(false);
    }
}
