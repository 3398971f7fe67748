//! State of the part: the clusters, their Secrets, the token, and the clusters that are gone.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use register::claims::Object;
use register::removals::{BETWEEN_LISTS, May, Moment, Remaining, Removals, Withdrawal};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::NAME;
use super::secret::{Content, HeldSecret};
use super::token::Token;
use crate::args::Argocd;
use crate::parts::hub_calls;
use crate::parts::watched::is_older;

/// Wait after a list that lacks clusters, until another list: a little more than the time after
/// which a cluster is missing for the second time.
const LIST_AGAIN: Duration = BETWEEN_LISTS.saturating_add(Duration::from_secs(1));

pub struct Inventory {
    known: Mutex<Observed>,
    argocd: Argocd,
    /// Notified when a cluster is gone or has come back.
    pub moved: Notify,
    /// Notified when a Secret without an accepted cluster leaves the watch, perhaps only because of
    /// its label.
    pub strayed: Notify,
    /// Whether clusters and Secrets are listed, by [`List`].
    pub listed: [watch::Sender<bool>; 2],
    started: Instant,
}

struct Observed {
    /// Whether each cluster is accepted, by name.
    clusters: BTreeMap<String, bool>,
    /// By the cluster's name.
    secrets: HashMap<String, HeldSecret>,
    /// Secrets in the current list so far, and those written since it began.
    listing: Option<HashSet<String>>,
    /// Clusters whose Secret is as it should be.
    settled: BTreeSet<String>,
    /// Time of the last write of each Secret.
    written: HashMap<String, Instant>,
    token: Option<Arc<Token>>,
    /// The newest token that was seen in one of our Secrets before there was a token. It is not
    /// verified.
    candidate: Option<Token>,
    removals: Removals,
    /// Time of the next list of clusters, because some are missing.
    list_again: Option<Moment>,
}

/// The lists that the part waits for.
#[derive(Debug, Clone, Copy)]
pub enum List {
    Clusters,
    Secrets,
}

/// How a Secret differs from its desired content.
pub enum Difference {
    None,
    /// There is no Secret.
    Missing,
    /// It has other content.
    Other {
        uid: String,
        version: String,
    },
}

/// Secrets to remove, because their clusters are gone or no longer accepted.
#[derive(Default)]
pub struct Due {
    /// Cluster, UID and version of each Secret.
    pub now: Vec<(String, String, String)>,
    pub held: usize,
    /// Whether to list the clusters for [`Inventory::confirm`].
    pub is_to_list: bool,
    /// Time of the next check.
    pub again: Option<Instant>,
}

// === impl Inventory ===

impl Inventory {
    pub fn new(limit: usize, argocd: &Argocd) -> Self {
        let known = Observed {
            clusters: BTreeMap::new(),
            secrets: HashMap::new(),
            listing: None,
            settled: BTreeSet::new(),
            written: HashMap::new(),
            token: None,
            candidate: None,
            removals: Removals::new(limit),
            list_again: None,
        };
        Self {
            known: Mutex::new(known),
            argocd: argocd.clone(),
            moved: Notify::new(),
            strayed: Notify::new(),
            listed: std::array::from_fn(|_| watch::Sender::new(false)),
            started: Instant::now(),
        }
    }

    pub fn was_listed(&self, list: List) {
        self.listed[list as usize].send_replace(true);
        self.moved.notify_one();
    }

    /// Adds or updates a cluster.
    pub fn put_cluster(&self, name: &str, is_accepted: bool) {
        let now = self.started.elapsed();
        let mut known = self.known.lock();
        known.clusters.insert(name.to_owned(), is_accepted);
        if is_accepted {
            known.removals.present(&object(name));
        } else if known.secrets.contains_key(name) {
            known.removals.withdrawn(object(name), Withdrawal::Refusal, now);
        }
        self.moved.notify_one();
    }

    /// Removes a cluster whose deletion was seen.
    pub fn remove_cluster(&self, name: &str) {
        let now = self.started.elapsed();
        let mut known = self.known.lock();
        if known.forget_cluster(name) {
            known.removals.deleted(object(name), now);
        }
        self.moved.notify_one();
    }

    /// Takes a list of all clusters. A cluster that it lacks may still exist, because its deletion
    /// was not seen.
    pub fn list_clusters(&self, listed: &HashSet<String>) {
        let now = self.started.elapsed();
        let mut known = self.known.lock();
        let lacking: Vec<String> = known.clusters.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        let remaining = Remaining::of(known.secrets.keys().any(|name| listed.contains(name)));
        for name in lacking {
            if known.forget_cluster(&name) {
                known.removals.missing(object(&name), remaining, now);
            }
        }
        drop(known);
        self.was_listed(List::Clusters);
    }

    /// Takes another list, which was made because clusters are missing.
    pub fn confirm(&self, listed: &HashSet<String>) {
        let now = self.started.elapsed();
        let mut known = self.known.lock();
        let Observed { clusters, secrets, removals, list_again, .. } = &mut *known;
        *list_again = None;
        let remaining = Remaining::of(secrets.keys().any(|name| listed.contains(name)));
        for name in secrets.keys().filter(|name| !clusters.contains_key(*name)) {
            if listed.contains(name) {
                removals.present(&object(name));
            } else {
                removals.missing(object(name), remaining, now);
            }
        }
    }

    /// The kind's definition is being deleted, and earlier deletions of clusters may be part of
    /// that.
    pub fn doubt(&self) {
        let now = self.started.elapsed();
        let mut known = self.known.lock();
        known.removals.doubt(NAME);
        known.list_again = Some(now + LIST_AGAIN);
    }

    /// Begins a list of all Secrets.
    pub fn begin_secrets(&self) {
        self.known.lock().listing = Some(HashSet::new());
    }

    /// Ends the list. A known Secret that was neither in it nor written since it began is gone.
    pub fn end_secrets(&self) {
        let mut known = self.known.lock();
        let Some(listing) = known.listing.take() else { return };
        known.secrets.retain(|cluster, _| listing.contains(cluster));
        known.settled.retain(|cluster| listing.contains(cluster));
    }

    pub fn put_secret(&self, cluster: String, held: HeldSecret) {
        let mut known = self.known.lock();
        let now = hub_calls::now_seconds();
        if known.token.is_none()
            && let Some(token) =
                held.token().and_then(Token::read).filter(|token| token.is_plausible(&self.argocd, now))
            && known.candidate.as_ref().is_none_or(|candidate| token.is_newer_than(candidate))
        {
            known.candidate = Some(token);
        }
        known.put(cluster, held);
        self.moved.notify_one();
    }

    /// Adds a Secret that a list without our label contains. The list may be older than our last
    /// write. True if it is not.
    pub fn put_stray(&self, cluster: &str, held: HeldSecret) -> bool {
        let is_past = |known: &HeldSecret| known.uid == held.uid && is_older(Some(&held.version), &known.version);
        if self.known.lock().secrets.get(cluster).is_some_and(is_past) {
            return false;
        }
        self.put_secret(cluster.to_owned(), held);
        true
    }

    /// Forgets a Secret that is gone or no longer ours. True if it was known.
    pub fn remove_secret(&self, cluster: &str) -> bool {
        let mut known = self.known.lock();
        known.settled.remove(cluster);
        known.secrets.remove(cluster).is_some()
    }

    /// Clusters that must have a Secret.
    pub fn clusters(&self) -> Vec<String> {
        let known = self.known.lock();
        known.clusters.iter().filter(|(_, is_accepted)| **is_accepted).map(|(name, _)| name.clone()).collect()
    }

    pub fn is_accepted(&self, name: &str) -> bool {
        self.known.lock().clusters.get(name).copied().unwrap_or_default()
    }

    /// The step after which the cluster's Secret has `content`.
    pub fn difference(&self, name: &str, content: &Content) -> Difference {
        let mut known = self.known.lock();
        let held = known.secrets.get(name);
        if held.is_some_and(|held| held.has(content)) {
            known.settled.insert(name.to_owned());
            return Difference::None;
        }
        let held = held.map(|held| (held.uid.clone(), held.version.clone()));
        known.settled.remove(name);
        held.map_or(Difference::Missing, |(uid, version)| Difference::Other { uid, version })
    }

    /// Records a write of a Secret now.
    pub fn wrote(&self, cluster: &str, held: HeldSecret) {
        let mut known = self.known.lock();
        known.settled.insert(cluster.to_owned());
        known.written.insert(cluster.to_owned(), Instant::now());
        known.put(cluster.to_owned(), held);
        // Its cluster may have gone during the write.
        self.moved.notify_one();
    }

    pub fn written_at(&self, cluster: &str) -> Option<Instant> {
        self.known.lock().written.get(cluster).copied()
    }

    pub fn settled(&self) -> usize {
        self.known.lock().settled.len()
    }

    pub fn token(&self) -> Option<Arc<Token>> {
        self.known.lock().token.clone()
    }

    pub fn put_token(&self, token: Token) {
        self.known.lock().token = Some(Arc::new(token));
    }

    /// Takes the newest token that a Secret had. It is not verified.
    pub fn take_candidate(&self) -> Option<Token> {
        self.known.lock().candidate.take()
    }

    /// True if there was a token and it was dropped.
    pub fn forget_token_unless(&self, is_kept: impl Fn(&Token) -> bool) -> bool {
        self.known.lock().token.take_if(|token| !is_kept(token)).is_some()
    }

    /// Secrets to remove, because their clusters are gone or no longer accepted.
    pub fn due(&self) -> Due {
        let now = self.started.elapsed();
        let mut known = self.known.lock();
        let Observed { clusters, secrets, removals, list_again, .. } = &mut *known;
        let mut due = Due::default();
        let is_left = |name: &String| !clusters.get(name).copied().unwrap_or_default();
        for (name, held) in secrets.iter().filter(|(name, _)| is_left(name)) {
            let object = object(name);
            match clusters.get(name) {
                // The cluster was gone before its Secret was known, so no watch saw its deletion.
                // The list that confirms it shows whether all clusters are missing.
                None if !removals.is_absent(&object) => removals.missing(object.clone(), Remaining::Others, now),
                None => {}
                Some(_) => removals.withdrawn(object.clone(), Withdrawal::Refusal, now),
            }
            let mut later = |end: Moment| {
                let end = self.started + end;
                due.again = Some(due.again.map_or(end, |known| known.min(end)));
            };
            match removals.may(&object, now, secrets.len()) {
                May::Now => due.now.push((name.clone(), held.uid.clone(), held.version.clone())),
                May::At(end) => later(end),
                May::Held { until } => {
                    later(until);
                    due.held += 1;
                }
                May::No => {}
            }
        }
        removals.forget(now, |object| secrets.contains_key(&object.reference));
        *list_again = removals.are_missing(NAME).then(|| list_again.unwrap_or(now + LIST_AGAIN));
        if let Some(moment) = *list_again {
            due.is_to_list = moment <= now;
            let moment = self.started + moment;
            due.again = Some(due.again.map_or(moment, |known| known.min(moment)));
        }
        due
    }
}

// === impl Observed ===

impl Observed {
    /// True if the cluster has a Secret.
    fn forget_cluster(&mut self, name: &str) -> bool {
        self.clusters.remove(name);
        self.settled.remove(name);
        self.written.remove(name);
        let has_secret = self.secrets.contains_key(name);
        if !has_secret {
            // There is nothing to remove, so nothing to remember.
            self.removals.present(&object(name));
        }
        has_secret
    }

    fn put(&mut self, cluster: String, held: HeldSecret) {
        if let Some(listing) = &mut self.listing {
            listing.insert(cluster.clone());
        }
        self.secrets.insert(cluster, held);
    }
}

fn object(cluster: &str) -> Object {
    Object { source: NAME, reference: cluster.to_owned() }
}

#[cfg(test)]
mod tests;
