//! Follows objects: kube's watcher, whose list is asked for as events, and in pages where the hub
//! does not send it so.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use kube::runtime::watcher::{self, Config, Error, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout_at};

/// Longest silence of a hub that is to send a list as events, and longest time for all of it. One
/// that knows nothing of such lists sends objects, and never says that it has sent all.
const QUIET: Duration = Duration::from_secs(10);
const WITHIN: Duration = Duration::from_mins(2);

/// How the objects are listed.
#[derive(Debug, Clone, Copy)]
enum List {
    /// As events. `has_begun`: the hub has accepted the request.
    Streamed {
        has_begun: bool,
        until: Option<Instant>,
    },
    /// All have come as events, and what changes follows.
    Complete,
    Paged {
        is_complete: bool,
    },
}

const STREAMED: List = List::Streamed { has_begun: false, until: None };

struct Follower<K> {
    api: Api<K>,
    config: Config,
    events: BoxStream<'static, watcher::Result<Event<K>>>,
    list: List,
}

/// As kube's watcher. Each list is asked for as the events of a watch, of one request however many
/// objects there are. It is complete, with [`Event::InitDone`], only when the hub says so. A hub
/// that refuses it, is silent, or ends it before, is asked for pages as `config` has them, after
/// another [`Event::Init`]. A hub's client remembers that for some minutes.
pub fn watcher<K>(api: Api<K>, config: Config) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    stream::unfold(Follower::new(api, config), |mut follower| async move {
        let event = follower.next().await?;
        Some((event, follower))
    })
}

/// Whether a hub says that it sends no list as events. Older ones refuse the parameters.
fn is_refused(error: &Error) -> bool {
    matches!(error, Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 400 | 422))
}

// === impl Follower ===

impl<K> Follower<K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    fn new(api: Api<K>, config: Config) -> Self {
        let events = watcher::watcher(api.clone(), config.clone().streaming_lists()).boxed();
        Self { api, config, events, list: STREAMED }
    }

    fn stream(&mut self) {
        *self = Self::new(self.api.clone(), self.config.clone());
    }

    fn page(&mut self, why: &str) {
        tracing::debug!(resource = self.api.resource_url(), why, "the list is asked for in pages");
        self.events = watcher::watcher(self.api.clone(), self.config.clone()).boxed();
        self.list = List::Paged { is_complete: false };
    }

    async fn next(&mut self) -> Option<watcher::Result<Event<K>>> {
        loop {
            let event = if let List::Streamed { has_begun, until } = self.list {
                let now = Instant::now();
                let until = until.unwrap_or(now + WITHIN);
                self.list = List::Streamed { has_begun, until: Some(until) };
                let Ok(event) = timeout_at(until.min(now + QUIET), self.events.next()).await else {
                    self.page("the hub does not say that it is complete");
                    continue;
                };
                event?
            } else {
                self.events.next().await?
            };
            if self.passes(&event) {
                return Some(event);
            }
        }
    }

    /// Takes an event into account. False if the list begins anew instead.
    fn passes(&mut self, event: &watcher::Result<Event<K>>) -> bool {
        match (self.list, event) {
            (List::Streamed { .. } | List::Complete, Err(error)) if is_refused(error) => {
                self.page("the hub refuses to send it as events");
                return false;
            }
            (List::Streamed { has_begun: true, .. }, Ok(Event::Init)) => {
                // kube's watcher asks again, at once and without an end.
                self.page("the watch ended before it was complete");
                return false;
            }
            (List::Paged { is_complete: true }, Ok(Event::Init)) => {
                self.stream();
                return false;
            }
            // Objects may have been lost with it.
            (List::Streamed { has_begun: true, .. }, Err(_)) => self.page("the watch failed before it was complete"),
            (List::Streamed { .. }, Err(_)) => self.list = STREAMED,
            (List::Streamed { until, .. }, Ok(Event::Init)) => self.list = List::Streamed { has_begun: true, until },
            // Later, after the version of the watch has expired.
            (List::Complete, Ok(Event::Init)) => self.list = List::Streamed { has_begun: true, until: None },
            (List::Streamed { .. }, Ok(Event::InitDone)) => self.list = List::Complete,
            (List::Paged { .. }, Ok(Event::InitDone)) => self.list = List::Paged { is_complete: true },
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests;
