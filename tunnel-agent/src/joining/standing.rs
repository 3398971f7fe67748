//! The cluster's standing with the hub, for tasks that wait for it.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Standing {
    /// Not known yet.
    #[default]
    Unknown,
    /// There is no certificate yet.
    Asking,
    /// There is a certificate, but the hub has not accepted the cluster, or no longer accepts it.
    Denied,
    Accepted,
    /// There is a certificate, but the hub does not answer.
    Silent,
}

/// The standing and its changes, and what a person must do about the certificate. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct SharedStanding {
    standing: watch::Sender<Standing>,
    trouble: Arc<Mutex<Option<String>>>,
}

// === impl Standing ===

impl Standing {
    /// Whether links are worth trying: a hub that is briefly away does not prevent links.
    fn may_link(self) -> bool {
        matches!(self, Self::Accepted | Self::Silent)
    }
}

// === impl SharedStanding ===

impl SharedStanding {
    /// Sets the standing; returns the earlier one.
    pub(super) fn say(&self, standing: Standing) -> Standing {
        self.standing.send_replace(standing)
    }

    /// Stores what is wrong with the certificate. Returns true if that is new.
    pub(super) fn trouble(&self, trouble: Option<String>) -> bool {
        let mut known = self.trouble.lock();
        let is_new = *known != trouble;
        *known = trouble;
        is_new
    }

    /// What a person must do about the certificate, if anything.
    pub fn certificate_trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    /// Completes when links are worth trying for the first time.
    pub async fn may_link(&self) {
        let mut standing = self.standing.subscribe();
        // The sender is ours.
        let _ = standing.wait_for(|standing| standing.may_link()).await;
    }
}
