//! Runs a contender as a task, and keeps a journal of the leaders.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant, timeout};

use super::super::{Election, Identity, Leading, Timing};
use super::hub::Hub;

/// When work ran, and for which contender.
#[derive(Clone, Default)]
pub(super) struct Journal(Arc<Mutex<Vec<Span>>>);

#[derive(Clone, Debug)]
pub(super) struct Span {
    pub(super) who: &'static str,
    pub(super) begun: Instant,
    /// `None` while it runs.
    pub(super) ended: Option<Instant>,
    pub(super) leading: Leading,
}

/// Ends its span on drop, together with the work.
struct Open(Journal, usize);

pub(super) struct Contender {
    leads: watch::Receiver<bool>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Option<()>>,
}

/// A contender named `name`, with the client of `who`.
pub(super) fn election(hub: &Arc<Hub>, who: &'static str, name: &str) -> Election {
    let identity = Identity::named(name).expect("a name");
    Election::new(hub.client(who), "default", "leader", identity, Timing::default())
}

// === impl Journal ===

impl Journal {
    /// The work of a leader: an entry in the journal.
    pub(super) async fn work(self, who: &'static str, leading: Leading) {
        let open = self.open(who, leading);
        std::future::pending::<()>().await;
        drop(open);
    }

    fn open(&self, who: &'static str, leading: Leading) -> Open {
        let mut spans = self.0.lock();
        spans.push(Span { who, begun: Instant::now(), ended: None, leading });
        Open(self.clone(), spans.len() - 1)
    }

    pub(super) fn spans(&self) -> Vec<Span> {
        self.0.lock().clone()
    }

    /// Fails if two contenders worked at the same time, or if one worked beyond its term.
    pub(super) fn check(&self) {
        let mut spans = self.spans();
        spans.sort_by_key(|span| span.begun);
        for pair in spans.windows(2) {
            let [one, next] = pair else { continue };
            let apart = one.ended.is_some_and(|ended| ended <= next.begun);
            assert!(apart, "{} and {} lead at the same time: {pair:?}", one.who, next.who);
        }
        for span in &spans {
            assert!(span.ended.is_none() || !span.leading.is_held(), "held after the end: {span:?}");
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.0.lock()[self.1].ended = Some(Instant::now());
    }
}

// === impl Contender ===

impl Contender {
    pub(super) fn start(hub: &Arc<Hub>, who: &'static str, journal: &Journal) -> Self {
        Self::start_as(hub, who, who, journal)
    }

    pub(super) fn start_as(hub: &Arc<Hub>, who: &'static str, name: &str, journal: &Journal) -> Self {
        let election = election(hub, who, name);
        let (leads, journal) = (election.leads(), journal.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async move { drop(stopped.await) };
        let task = tokio::spawn(async move {
            let work = |leading| journal.clone().work(who, leading);
            election.run(stopped, work).await
        });
        Self { leads, stop, task }
    }

    pub(super) fn is_leading(&self) -> bool {
        *self.leads.borrow()
    }

    /// Waits until the contender leads, or until it does not. Returns how long that took.
    pub(super) async fn becomes(&mut self, leading: bool) -> Duration {
        let start = Instant::now();
        let change = timeout(Duration::from_mins(2), self.leads.wait_for(|now| *now == leading));
        drop(change.await.expect("a change").expect("a contender"));
        start.elapsed()
    }

    /// Asks the contender to stop, and waits until it has stopped.
    pub(super) async fn stop(self) {
        self.stop.send(()).expect("it runs");
        assert_eq!(self.task.await.expect("no panic"), None);
    }

    /// Ends the contender as SIGKILL does.
    pub(super) async fn kill(self) {
        self.task.abort();
        assert!(self.task.await.expect_err("it ran").is_cancelled());
    }
}
