//! Watches the hub's roles and bindings. A change of those that allow to link a cluster rechecks
//! the cluster's links at once.
//!
//! Watches cost the hub nothing while nothing changes. Reviews of each agent every few seconds
//! would cost a thousand reviews a second with thousands of agents. Objects are not kept, only the
//! clusters that each role names. The regular rechecks find what the hub's RBAC does not show (a
//! webhook's decision, groups of a token), and everything if this program may not read roles.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, Resource};
use net::words::causes;
use serde::de::DeserializeOwned;
use tokio::time::sleep_until;

use super::doubts::Doubts;
use super::grants::{Concerned, Grants};
use super::waiting::{Due, Waiting};
use crate::registry::Metrics;

/// Objects in one page of a list: each may have 1.5 MB, and a user with the right to write one may
/// write many.
const PAGE: u32 = 20;
const CLUSTER_ROLE: &str = "ClusterRole";
const FORBIDDEN: u16 = 403;

type Events<K> = BoxStream<'static, Result<Event<K>, watcher::Error>>;

/// Follows the hub's roles and bindings.
pub(super) struct Changes {
    doubts: Arc<Doubts>,
    metrics: Metrics,
    grants: Grants,
    /// Grants of a list that is not complete yet.
    listed: Grants,
    waiting: Waiting,
    /// Whether each of the two watches works: roles, bindings.
    works: [bool; 2],
    complaint: Option<String>,
}

// === impl Changes ===

impl Changes {
    pub(super) fn new(doubts: Arc<Doubts>, metrics: Metrics) -> Self {
        Self {
            doubts,
            metrics,
            grants: Grants::default(),
            listed: Grants::default(),
            waiting: Waiting::default(),
            works: [false; 2],
            complaint: None,
        }
    }

    /// Runs forever, with back-off and jitter after errors.
    pub(super) async fn follow(mut self, client: Client) {
        let mut roles = events::<ClusterRole>(client.clone());
        let mut bindings = events::<ClusterRoleBinding>(client);
        loop {
            let due = self.waiting.at();
            let turn = pin!(async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            });
            tokio::select! {
                Some(event) = roles.next() => self.on_role(event),
                Some(event) = bindings.next() => self.on_binding(event),
                () = turn => self.look(),
            }
        }
    }

    fn look(&mut self) {
        match self.waiting.take() {
            Some(Due::One(cluster)) => {
                let is_followed = self.doubts.cast(&cluster);
                if is_followed {
                    self.waiting.paced();
                }
            }
            Some(Due::All) => self.waiting.sweep(self.doubts.cast_all()),
            None => {}
        }
    }

    fn on_role(&mut self, event: Result<Event<ClusterRole>, watcher::Error>) {
        let concerned = match event {
            Ok(Event::Init) => {
                self.listed = Grants::default();
                Concerned::none()
            }
            Ok(Event::InitApply(role)) => {
                self.listed.apply(&role);
                Concerned::none()
            }
            Ok(Event::InitDone) => {
                self.grants = std::mem::take(&mut self.listed);
                self.working(0)
            }
            Ok(Event::Apply(role)) => self.grants.apply(&role),
            Ok(Event::Delete(role)) => self.grants.remove(&role),
            Err(error) => self.failed(0, &error),
        };
        self.concerns(&concerned);
    }

    fn on_binding(&mut self, event: Result<Event<ClusterRoleBinding>, watcher::Error>) {
        let concerned = match event {
            Ok(Event::InitDone) => self.working(1),
            Ok(Event::Apply(binding) | Event::Delete(binding)) if binding.role_ref.kind == CLUSTER_ROLE => {
                self.grants.bound(&binding.role_ref.name)
            }
            Ok(_) => Concerned::none(),
            Err(error) => self.failed(1, &error),
        };
        self.concerns(&concerned);
    }

    fn concerns(&mut self, concerned: &Concerned) {
        match concerned {
            Concerned::Named(names) => names.iter().for_each(|name| self.waiting.add(name)),
            Concerned::All => self.waiting.add_all(),
        }
    }

    /// A list is complete. Earlier changes may have been missed.
    fn working(&mut self, watch: usize) -> Concerned {
        self.works[watch] = true;
        if self.works == [true; 2] {
            self.metrics.follows_roles(true);
            if self.complaint.take().is_some() {
                tracing::info!("the hub's roles and bindings are followed again");
            }
        }
        if self.doubts.is_idle() { Concerned::none() } else { Concerned::All }
    }

    /// Logs each cause once: a program that may not read roles works all the same. A watch that is
    /// cut off continues where it was.
    fn failed(&mut self, watch: usize, error: &watcher::Error) -> Concerned {
        if !is_lasting(error) {
            tracing::debug!(error = causes(error), "a watch of the hub's roles or bindings was cut off");
            return Concerned::none();
        }
        self.works[watch] = false;
        self.metrics.follows_roles(false);
        let reason = causes(error);
        if self.complaint.as_ref() != Some(&reason) {
            tracing::warn!(
                reason,
                "cannot follow the hub's roles: a withdrawn right ends links with their next recheck, not at once; list and \
                 watch of clusterroles and clusterrolebindings are needed"
            );
            self.complaint = Some(reason);
        }
        Concerned::none()
    }
}

/// Whether the watch will keep failing as things are.
fn is_lasting(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(_) => true,
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == FORBIDDEN,
        _ => false,
    }
}

fn events<K>(client: Client) -> Events<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(Api::<K>::all(client), watcher::Config::default().page_size(PAGE)).default_backoff().boxed()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;
    use tunnel::ClusterName;

    use super::*;

    fn name(name: &str) -> ClusterName {
        ClusterName::parse(name).unwrap()
    }

    /// A user with the right to write roles may name any number of clusters in them.
    #[tokio::test(start_paused = true)]
    async fn changes_of_clusters_without_links_keep_no_link_waiting() {
        let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
        let doubts = Arc::new(Doubts::default());
        let mut changes = Changes::new(Arc::clone(&doubts), metrics);
        let (east, west) = (doubts.follow(&name("east")), doubts.follow(&name("west")));
        let started = Instant::now();
        (0..5_000).for_each(|number| changes.waiting.add(&name(&format!("c{number}"))));
        changes.waiting.add(&name("east"));
        changes.waiting.add(&name("west"));
        while let Some(due) = changes.waiting.at() {
            sleep_until(due).await;
            changes.look();
        }
        let told = [east.changes().next().await, west.changes().next().await].map(|at| at - started);
        assert!(told[0] < Duration::from_secs(5), "{told:?}");
        assert!(told[1] >= told[0] + super::super::waiting::PACE, "those the hub is asked about are paced: {told:?}");
    }
}
