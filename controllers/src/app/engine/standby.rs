//! Reads may start before the term; writes wait for it. A new leader need not read again what it
//! read while another replica led.

use std::convert::Infallible;

use futures_util::future::{BoxFuture, FutureExt as _};
use tokio::sync::{Mutex, watch};

use super::Engine;
use crate::term::{Begin, MayWrite, Term};

/// The work of a replica, both while it leads and while it waits.
pub struct Standby<'a> {
    engine: &'a Engine,
    /// Work of the next term. The holder of the lock drives it.
    next: Mutex<Option<Ready<'a>>>,
    leads: watch::Sender<bool>,
}

/// Work whose term has not begun.
struct Ready<'a> {
    work: BoxFuture<'a, Infallible>,
    begin: Begin,
}

/// Signals that this replica leads, until it is dropped.
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
            tokio::select! {
                never = &mut ready.work => match never {},
                _ = leads.wait_for(|leads| *leads) => {}
            }
        }
    }

    /// Continues that work in a term. Dropping this ends the work, and the next term starts from
    /// nothing. Never ends.
    pub async fn lead(&self, may_write: MayWrite) -> Infallible {
        let _sign = Sign::show(self);
        let ready = self.next.lock().await.take();
        let Ready { work, begin } = ready.unwrap_or_else(|| Ready::new(self.engine));
        begin.now(may_write);
        work.await
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

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use fleet::Fleet;
    use prometheus_client::registry::Registry;
    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use crate::args::{Config, parse_from};
    use crate::metrics::Metrics;
    use crate::scripted;

    /// An engine on a hub that only answers who it is, and counts these requests.
    fn engine(asked: &Arc<AtomicUsize>) -> Engine {
        let asked = Arc::clone(asked);
        let hub = scripted::client(move |head, _| {
            if head.uri.path() != "/api/v1/namespaces/kube-system" {
                return None;
            }
            asked.fetch_add(1, Ordering::Relaxed);
            let namespace = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": {"name": "kube-system", "uid": "u"}});
            Some((200, namespace))
        });
        Engine {
            config: Config::new(&parse_from(["x", "--enable=manifestworks"]).unwrap()).unwrap(),
            karmada: hub.clone(),
            members: Fleet::new(hub.clone()),
            hub,
            reports: Arc::default(),
            metrics: Metrics::register(&mut Registry::default(), Arc::default()),
            readiness: telemetry::readiness::Readiness::default(),
            explained: crate::explained::Explained::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_leads_goes_on_with_what_it_read_while_it_waited() {
        const A_WHILE: Duration = Duration::from_secs(1);
        let asked = Arc::default();
        let engine = engine(&asked);
        let (standby, times) = (Standby::new(&engine), || asked.load(Ordering::Relaxed));
        let mut waiting = pin!(standby.wait());
        assert!(timeout(A_WHILE, &mut waiting).await.is_err());
        assert_eq!((times(), engine.metrics.leader.get()), (1, 0));
        let mut leading = Box::pin(standby.lead(Arc::new(|| Duration::MAX)));
        assert!(timeout(A_WHILE, async { tokio::join!(&mut waiting, &mut leading) }).await.is_err());
        assert_eq!((times(), engine.metrics.leader.get()), (1, 1), "nothing is read twice");
        drop(leading);
        assert!(timeout(A_WHILE, &mut waiting).await.is_err());
        assert_eq!((times(), engine.metrics.leader.get()), (2, 0), "what led begins anew");
    }
}
