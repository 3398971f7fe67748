//! What runs while this replica leads: the sources' feeds, and the registrar that they tell.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use kube::Client;
use telemetry::readiness::NotReady;
use tokio_util::sync::CancellationToken;

use crate::args::Config;
use crate::events::Events;
use crate::feed::Feed;
use crate::holders;
use crate::metrics::Metrics;
use crate::registrar::{self, FeedState, MayWrite, Registrar};
use crate::reports::Reports;
use crate::secrets::Secrets;
use crate::sources::{self, Source};
use crate::wakes::Wakes;

pub struct Engine {
    pub config: Config,
    pub hub: Client,
    pub karmada: Client,
    pub reports: Arc<Reports>,
    pub metrics: Metrics,
}

// === impl Engine ===

impl Engine {
    /// Runs until `end`. `starting` is held until the hub answers.
    pub async fn run(self, end: CancellationToken, starting: NotReady) {
        drop(starting);
        self.metrics.leader.set(1);
        let may_write: MayWrite = Arc::new(|| true);
        tokio::select! {
            () = self.lead(may_write) => {}
            () = end.cancelled() => {}
        }
        self.metrics.leader.set(0);
    }

    /// Everything that writes. It knows nothing of what ran before it: the hub has it all.
    async fn lead(&self, may_write: MayWrite) {
        self.reports.clear();
        let sources: Vec<Arc<Source>> =
            sources::all(&self.config, &self.hub, &self.karmada).into_iter().map(Arc::new).collect();
        let mut feeds = Vec::new();
        let mut known = HashMap::new();
        for source in &sources {
            let events = Events::start(source.client.clone(), self.metrics.events_left_out.clone());
            let of_source = feeds_of(source);
            let told = of_source.iter().map(|(namespace, wakes)| registrar::Feed {
                namespace: namespace.clone(),
                wakes: wakes.clone(),
                state: FeedState::Starting,
            });
            known.insert(source.name.as_str(), registrar::Source { events, feeds: told.collect() });
            feeds.extend(of_source.into_iter().enumerate().map(|(index, feed)| (Arc::clone(source), index, feed)));
        }
        let events = Events::start(self.hub.clone(), self.metrics.events_left_out.clone());
        let secrets = Secrets::new(self.hub.clone(), &self.config.secret_namespace);
        let told = (Arc::clone(&self.reports), self.metrics.clone());
        let limit = self.config.source_removal_limit;
        let registrar = Arc::new(Registrar::new((secrets.clone(), events), known, limit, told, may_write));
        let feeds = feeds.into_iter().map(|(source, index, (namespace, wakes))| {
            let (reports, metrics) = (Arc::clone(&self.reports), self.metrics.clone());
            Feed { source, index, namespace, wakes, registrar: Arc::clone(&registrar), reports, metrics }.run()
        });
        tokio::join!(
            join_all(feeds),
            holders::follow(secrets, Arc::clone(&registrar)),
            registrar.keep_time(),
            registrar.remove_all()
        );
    }
}

/// A namespace and the queue of each feed.
fn feeds_of(source: &Source) -> Vec<(Option<String>, Wakes)> {
    if source.namespaces.is_empty() {
        return vec![(None, Wakes::default())];
    }
    source.namespaces.iter().map(|namespace| (Some(namespace.clone()), Wakes::default())).collect()
}
