//! Streams that no task reads: their data wait here.

use std::sync::{Arc, Weak};
use std::task::Wake;

use parking_lot::Mutex;

use super::Inbound;
use crate::activity::Activity;

/// Woken by h2 under h2's lock, where nothing can be taken.
pub(super) struct DataWaker {
    /// Weak: h2 keeps the waker for as long as the stream is open.
    pub(super) inbound: Weak<Inbound>,
    pub(super) unattended: Arc<UnattendedStreams>,
}

/// The streams of a link that have data and no reader.
#[derive(Debug)]
pub(crate) struct UnattendedStreams {
    activity: Arc<Activity>,
    waiting: Mutex<Vec<Weak<Inbound>>>,
}

// === impl DataWaker ===

impl Wake for DataWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unattended.waiting.lock().push(self.inbound.clone());
        self.unattended.activity.signals.wake();
    }
}

// === impl UnattendedStreams ===

impl UnattendedStreams {
    pub fn new(activity: Arc<Activity>) -> Self {
        Self { activity, waiting: Mutex::default() }
    }

    /// The link's driver calls this after it has moved frames.
    pub fn attend(&self) {
        // Not under this lock: h2 wakes us under its own.
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for inbound in waiting.iter().filter_map(Weak::upgrade) {
            inbound.lock().take_unwaited();
        }
    }
}
