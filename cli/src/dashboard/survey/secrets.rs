//! The registered Secrets, kept for a while.

use std::collections::HashMap;
use std::time::Duration;

use fleet::Cluster;
use tokio::time::Instant;

use crate::dashboard::board::Notice;
use crate::look::registered;
use crate::row::Registered;
use crate::session::Session;

/// How long the contents of Secrets are taken for true, because a list of Secrets is long.
const SECRETS_LAST: Duration = Duration::from_mins(1);

/// What the clusters' Secrets say.
#[derive(Default)]
pub(super) struct Secrets {
    pub(super) known: HashMap<String, Registered>,
    notice: Option<Notice>,
    since: Option<Instant>,
}

// === impl Secrets ===

impl Secrets {
    /// Reads the Secrets if what is known is old, or lacks one of the clusters.
    pub(super) async fn read(&mut self, session: &Session, clusters: &[Cluster]) {
        let is_new = self.since.is_none_or(|since| since.elapsed() >= SECRETS_LAST);
        let is_whole = self.notice.is_some() || clusters.iter().all(|one| self.known.contains_key(one.name.as_str()));
        if !is_new && is_whole {
            return;
        }
        self.since = Some(Instant::now());
        match registered(session, "").await {
            Ok(known) => (self.known, self.notice) = (known, None),
            Err(trouble) => {
                let what = format!("Agents, aliases and expiry of credentials are not shown: {}", trouble.what);
                let remedy = match &*trouble.remedy {
                    "" => {
                        "you need `list` of Secrets in the namespace of the clusters: `kubectl clusters list` shows \
                         the same"
                    }
                    remedy => remedy,
                };
                self.notice = Some(Notice { what, remedy: remedy.to_owned() });
            }
        }
    }

    pub(super) fn notices(&self) -> Vec<Notice> {
        self.notice.iter().cloned().collect()
    }
}
