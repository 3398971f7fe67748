//! A source as the registrar sees it: its feeds, and whether they can be read.

use crate::events::Events;
use crate::wakes::Wakes;

/// One source, with a feed for each of the namespaces that it is read from.
pub struct Source {
    pub events: Events,
    pub feeds: Vec<Feed>,
}

#[derive(Clone)]
pub struct Feed {
    /// Only objects of this namespace come by it; without one, all.
    pub namespace: Option<String>,
    pub wakes: Wakes,
    pub state: FeedState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedState {
    /// Nothing is known of it yet.
    Starting,
    /// It was listed, and is followed.
    Available,
    /// Its kind is missing or on its way out, or the hub does not let it be read.
    Unavailable,
}

// === impl Source ===

impl Source {
    pub fn is_available(&self) -> bool {
        self.feeds.iter().all(|feed| feed.state == FeedState::Available)
    }

    pub fn is_settled(&self) -> bool {
        self.feeds.iter().all(|feed| feed.state != FeedState::Starting)
    }

    pub fn wake(&self, namespace: &str, name: &str) {
        for feed in &self.feeds {
            if feed.covers(namespace) {
                feed.wakes.push(namespace, name);
            }
        }
    }
}

// === impl Feed ===

impl Feed {
    pub fn covers(&self, namespace: &str) -> bool {
        self.namespace.as_deref().is_none_or(|own| own == namespace)
    }
}
