//! What is known: clusters, their Secrets, the token, and who went.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use register::claims::Object;
use register::removals::{May, Removals, Withdrawal};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::NAME;
use super::secret::{Content, Held};
use super::token::Token;
use crate::args::Argocd;

pub struct State {
    known: Mutex<Known>,
    argocd: Argocd,
    /// Who went, or came back.
    pub moved: Notify,
    /// Whether clusters and Secrets were listed.
    listed: [watch::Sender<bool>; 2],
    started: Instant,
}

struct Known {
    /// Whether each is accepted.
    clusters: BTreeMap<String, bool>,
    /// By cluster.
    secrets: HashMap<String, Held>,
    /// What a list of Secrets had so far, and what was written since it began.
    listing: Option<HashSet<String>>,
    /// Clusters whose Secret is as it should be.
    settled: BTreeSet<String>,
    /// When each Secret was written last.
    written: HashMap<String, Instant>,
    token: Option<Arc<Token>>,
    /// The newest that was seen in a Secret of ours, before it was known whether it serves.
    candidate: Option<Token>,
    removals: Removals,
}

/// What is listed.
#[derive(Debug, Clone, Copy)]
pub enum List {
    Clusters,
    Secrets,
}

/// How a Secret differs from what it should be.
pub enum Difference {
    None,
    /// There is none.
    Missing,
    /// It says something else.
    Other {
        uid: String,
        version: String,
    },
}

/// Secrets whose clusters are gone.
#[derive(Default)]
pub struct Due {
    /// Cluster, UID and version of each.
    pub now: Vec<(String, String, String)>,
    pub held: usize,
    /// When to look again.
    pub again: Option<Instant>,
}

// === impl State ===

impl State {
    pub fn new(limit: usize, argocd: &Argocd) -> Self {
        let known = Known {
            clusters: BTreeMap::new(),
            secrets: HashMap::new(),
            listing: None,
            settled: BTreeSet::new(),
            written: HashMap::new(),
            token: None,
            candidate: None,
            removals: Removals::new(limit),
        };
        Self {
            known: Mutex::new(known),
            argocd: argocd.clone(),
            moved: Notify::new(),
            listed: std::array::from_fn(|_| watch::Sender::new(false)),
            started: Instant::now(),
        }
    }

    pub fn was_listed(&self, list: List) {
        self.listed[list as usize].send_replace(true);
        self.moved.notify_one();
    }

    /// Completes when everything was.
    pub async fn listed(&self) {
        for listed in &self.listed {
            // The senders live as long as this does.
            let _ = listed.subscribe().wait_for(|listed| *listed).await;
        }
    }

    /// A cluster is there.
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

    pub fn remove_cluster(&self, name: &str) {
        let mut known = self.known.lock();
        known.clusters.remove(name);
        known.settled.remove(name);
        known.written.remove(name);
        if known.secrets.contains_key(name) {
            known.removals.deleted(object(name), self.started.elapsed());
        } else {
            // Nothing is to be removed, whatever was said of it.
            known.removals.present(&object(name));
        }
        self.moved.notify_one();
    }

    /// A list of all Secrets begins.
    pub fn begin_secrets(&self) {
        self.known.lock().listing = Some(HashSet::new());
    }

    /// What is known and was neither in the list nor written since it began is gone.
    pub fn end_secrets(&self) {
        let mut known = self.known.lock();
        let Some(listing) = known.listing.take() else { return };
        known.secrets.retain(|cluster, _| listing.contains(cluster));
        known.settled.retain(|cluster| listing.contains(cluster));
    }

    pub fn put_secret(&self, cluster: String, held: Held) {
        let mut known = self.known.lock();
        if let Some(token) = held.token().and_then(Token::read).filter(|token| token.is_of(&self.argocd))
            && known.candidate.as_ref().is_none_or(|candidate| token.is_newer_than(candidate))
        {
            known.candidate = Some(token);
        }
        known.put(cluster, held);
        self.moved.notify_one();
    }

    /// A Secret is gone, or ours no more.
    pub fn remove_secret(&self, cluster: &str) {
        let mut known = self.known.lock();
        known.secrets.remove(cluster);
        known.settled.remove(cluster);
    }

    /// Clusters that are to have a Secret.
    pub fn clusters(&self) -> Vec<String> {
        let known = self.known.lock();
        known.clusters.iter().filter(|(_, is_accepted)| **is_accepted).map(|(name, _)| name.clone()).collect()
    }

    pub fn is_accepted(&self, name: &str) -> bool {
        self.known.lock().clusters.get(name).copied().unwrap_or_default()
    }

    /// What is to be done for the Secret of a cluster to have `content`.
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

    /// A Secret was written just now.
    pub fn wrote(&self, cluster: &str, held: Held) {
        let mut known = self.known.lock();
        known.settled.insert(cluster.to_owned());
        known.written.insert(cluster.to_owned(), Instant::now());
        known.put(cluster.to_owned(), held);
        // It may be that of a cluster that went meanwhile.
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

    /// Forgets a token that does not serve. True if that of a Secret does, which is the token by
    /// that.
    pub fn settle_token(&self, serves: impl Fn(&Token) -> bool) -> bool {
        let mut known = self.known.lock();
        if known.token.as_ref().is_some_and(|token| serves(token)) {
            return false;
        }
        known.token = known.candidate.clone().filter(|token| serves(token)).map(Arc::new);
        known.token.is_some()
    }

    /// Secrets that are to go, of clusters that are gone or accepted no more.
    pub fn due(&self) -> Due {
        let now = self.started.elapsed();
        let mut known = self.known.lock();
        let Known { clusters, secrets, removals, .. } = &mut *known;
        let mut due = Due::default();
        let is_left = |name: &String| !clusters.get(name).copied().unwrap_or_default();
        for (name, held) in secrets.iter().filter(|(name, _)| is_left(name)) {
            let object = object(name);
            // One that was gone before it was known that it has a Secret.
            match clusters.get(name) {
                None => removals.deleted(object.clone(), now),
                Some(_) => removals.withdrawn(object.clone(), Withdrawal::Refusal, now),
            }
            let mut later = |end: Duration| {
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
        due
    }
}

// === impl Known ===

impl Known {
    fn put(&mut self, cluster: String, held: Held) {
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
mod tests {
    use api::cluster_name::ClusterName;
    use register::profile::Way;
    use secrecy::SecretString;

    use super::*;

    fn state(limit: usize, clusters: usize) -> State {
        let argocd = Argocd { namespace: "argocd".into(), account: ("argocd".into(), "deployer".into()) };
        let (state, way) = (State::new(limit, &argocd), Way { url: "https://g".into(), ca: None });
        for number in 0..clusters {
            let name = ClusterName::parse(&format!("c{number}")).unwrap();
            state.put_cluster(name.as_str(), true);
            let secret = Content::new(&name, &way, &SecretString::from("t")).secret(&name);
            let (cluster, held) = Held::read(&secret).unwrap();
            state.put_secret(cluster, held);
        }
        state
    }

    #[tokio::test(start_paused = true)]
    async fn few_that_go_lose_their_secret_and_a_crowd_keeps_it_for_a_while() {
        let state = state(2, 5);
        assert!(state.due().now.is_empty());
        state.remove_cluster("c0");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(state.due().now[0].0, "c0");
        state.remove_secret("c0");
        for name in ["c1", "c2", "c3"] {
            state.remove_cluster(name);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        let due = state.due();
        assert_eq!((due.now.len(), due.held), (0, 3), "too many at once");
        // One that is back keeps it.
        state.put_cluster("c1", true);
        tokio::time::advance(Duration::from_mins(10)).await;
        let due = state.due();
        assert_eq!((due.now.len(), due.held), (2, 0), "they are gone for long enough");
        // A person's no is no mistake of a crowd's size.
        let refused = self::state(0, 3);
        for name in ["c0", "c1", "c2"] {
            refused.put_cluster(name, false);
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(refused.due().now.len(), 3);
    }
}
