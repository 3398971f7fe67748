//! One link from its registration to its end.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tunnel::{LinkError, Serving, serve};

use super::super::Connector;
use super::super::attempt::NewLink;
use crate::links::{Number, Usable};

/// A usable link.
pub(super) struct Live {
    pub server: Arc<str>,
    /// Shared with a link that will replace this one.
    pub number: Arc<Number>,
    /// Generation of the link's credential.
    pub generation: u64,
    pub since: Instant,
    pub serving: Serving,
    usable: Usable,
    /// Cancelled when it has ended.
    pub ended: CancellationToken,
}

/// An event of a link. `id` distinguishes it from another link with the same number.
#[derive(Debug)]
pub(super) enum Event {
    Leaving { link: u16, id: u64 },
    Ended { link: u16, id: u64, how: Result<(), LinkError> },
}

/// A link's task and its reporter.
struct Run {
    connector: Arc<Connector>,
    serving: Serving,
    number: Arc<Number>,
    /// None if the link is not kept: then its events are not reported.
    id: Option<u64>,
    reporter: mpsc::Sender<Event>,
    ended: CancellationToken,
}

/// How long a leaving link waits for another one. The server does not use it any more; the wait
/// only ensures that the cluster always has a link.
const PATIENCE: Duration = Duration::from_secs(10);

// === impl Live ===

impl Live {
    /// Serves the link from now on; none if its server has enough links, in which case the link is
    /// drained at once.
    pub(super) fn start(
        connector: &Arc<Connector>,
        keeper: u64,
        made: NewLink,
        number: &Arc<Number>,
        stands_in: bool,
        reporter: &mpsc::Sender<Event>,
    ) -> Option<Self> {
        let server: Arc<str> = made.registered.server.into();
        let (serving, ended) = (Serving::default(), CancellationToken::new());
        let usable = connector.links.admit(keeper, &server, &serving, stands_in);
        let run = Run {
            connector: Arc::clone(connector),
            serving: serving.clone(),
            number: Arc::clone(number),
            id: usable.as_ref().map(Usable::id),
            reporter: reporter.clone(),
            ended: ended.clone(),
        };
        let guard = connector.drain.guard();
        let io = made.registered.io;
        tokio::spawn(async move {
            run.until_ended(io).await;
            drop(guard);
        });
        if usable.is_none() {
            serving.drain();
        }
        let (number, since) = (Arc::clone(number), Instant::now());
        usable.map(|usable| Self { server, number, generation: made.generation, since, serving, usable, ended })
    }

    pub(super) fn id(&self) -> u64 {
        self.usable.id()
    }

    /// Sends GOAWAY: streams continue, and the link ends with the last, which cancels the token.
    pub(super) fn drain(self) -> CancellationToken {
        self.serving.drain();
        self.ended
    }

    /// Drains a link whose server asked to link elsewhere: when there is another link, or after a
    /// while if there is none.
    pub(super) fn leave(self, connector: &Arc<Connector>) {
        let connector = Arc::clone(connector);
        let (server, serving, ended) = (Arc::clone(&self.server), self.serving.clone(), self.ended.clone());
        // From now on it does not count as a link.
        drop(self);
        let since = connector.links.mark();
        tokio::spawn(async move {
            let mut changed = connector.links.changed();
            let another =
                async { while !connector.links.has_other(&server, since) && changed.changed().await.is_ok() {} };
            tokio::select! {
                _ = timeout(PATIENCE, another) => {}
                () = ended.cancelled() => {}
                () = connector.drain.soft() => {}
            }
            serving.drain();
        });
    }
}

// === impl Run ===

impl Run {
    async fn until_ended<T>(self, io: T)
    where
        T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let ends = self.ended.clone().drop_guard();
        let forwarder = Arc::clone(&self.connector.forwarder);
        let handler = move |incoming| Arc::clone(&forwarder).serve(incoming);
        let how = tokio::select! {
            how = serve(io, &self.connector.settings, self.serving.clone(), handler) => how,
            () = self.tell_leaving() => Ok(()),
            () = self.end_at_deadline() => Ok(()),
        };
        drop(ends);
        if let Some(id) = self.id {
            let _ = self.reporter.send(Event::Ended { link: self.number.get(), id, how }).await;
        }
    }

    /// Reports that the server asked to leave. Does not end.
    async fn tell_leaving(&self) {
        self.serving.asked_to_leave().await;
        if let Some(id) = self.id {
            let _ = self.reporter.send(Event::Leaving { link: self.number.get(), id }).await;
        }
        pending::<()>().await;
    }

    /// Closes the link at the hard deadline. Does not end by itself: the link ends when its streams
    /// are reset.
    async fn end_at_deadline(&self) {
        self.connector.drain.hard().await;
        self.serving.close();
        pending::<()>().await;
    }
}
