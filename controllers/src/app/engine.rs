//! The work of a leader: the sources' feeds, the registrar that they notify, and the parts. Reads
//! may start before the term; writes wait for it.

mod standby;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use fleet::Fleet;
use futures_util::future::FutureExt;
use hub::election::{Election, Identity, Leading, Timing};
use kube::Client;
use register::claims::Object;
use register::ocm;
use telemetry::readiness::Readiness;
use tokio_util::sync::CancellationToken;

use crate::args::{Config, SourceName};
use crate::events::Events;
use crate::explained::Explained;
use crate::feed::{self, Feed};
use crate::metrics::Metrics;
use crate::parts;
use crate::registrar::{self, FeedState, Registrar};
use crate::reports::Reports;
use crate::secrets::Secrets;
use crate::sources::{self, Source};
use crate::term::Term;
use crate::together;
use crate::wakes::Wakes;

use self::standby::Standby;

/// Name of the Lease, in the namespace of the Secrets.
const LEASE: &str = "cluster-gateway-controllers";

pub struct Engine {
    pub config: Config,
    pub hub: Client,
    pub karmada: Client,
    /// The members, through the gateway.
    pub members: Fleet,
    pub reports: Arc<Reports>,
    pub metrics: Metrics,
    pub readiness: Readiness,
    pub explained: Explained,
}

// === impl Engine ===

impl Engine {
    /// Writes while this replica leads, until `end`.
    pub async fn run(self, end: CancellationToken) {
        let (end, standby) = (end.cancelled(), Standby::new(&self));
        if !self.config.leader_elect {
            tokio::select! {
                never = standby.lead(Arc::new(|| Duration::MAX)) => match never {},
                () = end => {}
            }
            return;
        }
        let (namespace, identity) = (&self.config.secret_namespace, Identity::of_this_process());
        let election = Election::new(self.hub.clone(), namespace, LEASE, identity, Timing::default());
        let lead = |leading: Leading| standby.lead(Arc::new(move || leading.remaining()));
        tokio::select! {
            _ = election.run(end, lead) => {}
            never = standby.wait() => match never {},
        }
    }

    /// All writing work, in a term that may not have begun yet. It keeps no state from earlier
    /// terms: the hub has all of it. Never ends.
    async fn work(&self, term: Term) -> Infallible {
        let withdrawn = Wakes::default();
        // One per hub: the limits protect a hub from too many Events.
        let [events, to_karmada] = [&self.hub, &self.karmada]
            .map(|hub| Events::start(hub.clone(), self.metrics.events_left_out.clone(), term.clone()));
        let parts = parts::run(parts::Context {
            config: &self.config,
            hub: self.hub.clone(),
            members: self.members.clone(),
            events: events.clone(),
            metrics: self.metrics.clone(),
            readiness: self.readiness.clone(),
            explained: self.explained.clone(),
            term: term.clone(),
            answered: Wakes::default(),
            withdrawn: withdrawn.clone(),
        });
        let registration = async {
            term.begins().await;
            self.register(&term, events, &to_karmada, withdrawn).await;
        };
        together::all([registration.boxed(), parts.boxed()]).await;
        std::future::pending().await
    }

    /// Follows the sources. Each leader derives each name's Secret again from what it reads, so
    /// that nothing needs preparation. `withdrawn`: clusters whose rights a refusal took.
    async fn register(&self, term: &Term, events: Events, to_karmada: &Events, withdrawn: Wakes) {
        let (known, feeds) = self.sources(&events, to_karmada);
        let secrets = Secrets::new(self.hub.clone(), &self.config.secret_namespace);
        let told = (Arc::clone(&self.reports), self.metrics.clone());
        let limit = self.config.source_removal_limit;
        let registrar = Arc::new(Registrar::new((secrets.clone(), events), known, limit, told, term.may_write()));
        let feeds = feeds.into_iter().map(|(source, index, (namespace, wakes))| {
            let (reports, metrics) = (Arc::clone(&self.reports), self.metrics.clone());
            Feed { source, index, namespace, wakes, registrar: Arc::clone(&registrar), reports, metrics }.run()
        });
        // Without sources no Secret is written, and none needs to be readable.
        let holders = async {
            if !self.config.sources.is_empty() {
                feed::watch::holders(secrets, Arc::clone(&registrar)).await;
            }
        };
        let refused = follow_refusals(&registrar, withdrawn);
        let loops = [holders.boxed(), refused.boxed(), registrar.keep_time().boxed(), registrar.remove_all().boxed()];
        together::all(feeds.map(FutureExt::boxed).chain(loops)).await;
    }

    /// The sources, as the registrar needs them, and their feeds.
    fn sources(&self, events: &Events, to_karmada: &Events) -> (HashMap<&'static str, registrar::Source>, Vec<Scoped>) {
        let (mut known, mut feeds) = (HashMap::new(), Vec::new());
        for source in sources::all(&self.config, &self.hub, &self.karmada) {
            let source = Arc::new(source);
            let events = if source.name == SourceName::Karmada { to_karmada } else { events }.clone();
            let scopes = scopes(&source);
            let of_source = scopes.iter().map(|(namespace, wakes)| registrar::Feed {
                namespace: namespace.clone(),
                wakes: wakes.clone(),
                state: FeedState::Starting,
            });
            known.insert(source.name.as_str(), registrar::Source { events, feeds: of_source.collect() });
            feeds.extend(scopes.into_iter().enumerate().map(|(index, scope)| (Arc::clone(&source), index, scope)));
        }
        (known, feeds)
    }
}

/// Has the Secret of a refused cluster go as soon as its rights are gone. Never ends.
async fn follow_refusals(registrar: &Registrar, withdrawn: Wakes) {
    loop {
        let (_, cluster) = withdrawn.next().await;
        registrar.stripped(&Object::new(SourceName::Ocm.as_str(), [ocm::GROUP, ocm::KIND], "", &cluster));
    }
}

/// Namespace of a feed, none for all, and its queue.
type Scope = (Option<String>, Wakes);
/// A feed of a source: its number among the source's feeds, and its scope.
type Scoped = (Arc<Source>, usize, Scope);

fn scopes(source: &Source) -> Vec<Scope> {
    if source.namespaces.is_empty() {
        return vec![(None, Wakes::default())];
    }
    source.namespaces.iter().map(|namespace| (Some(namespace.clone()), Wakes::default())).collect()
}
