//! A source as the registrar sees it: its feeds, and whether they can be read.

use crate::events::Events;
use crate::wakes::Wakes;

/// One source, with one feed for each of its namespaces.
pub struct Source {
    pub events: Events,
    pub feeds: Vec<Feed>,
}

#[derive(Clone)]
pub struct Feed {
    /// The only namespace of the feed's objects; none: all namespaces.
    pub namespace: Option<String>,
    pub wakes: Wakes,
    pub state: FeedState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedState {
    /// No list yet.
    Starting,
    /// Listed, and followed by a watch.
    Available,
    /// The kind is missing or being deleted, or the hub does not let this program read it.
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

    pub fn covers(&self, namespace: &str) -> bool {
        self.feeds.iter().any(|feed| feed.covers(namespace))
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
