//! Runs one watch of source objects, and kube's queue behind it.
//!
//! The watch hands each object to the registrar at once, so that objects claim names in the order
//! of their creation. It also puts the object into the queue, which reads objects one by one:
//! sixteen per feed at a time, each with its own back-off.

pub mod bursts;
pub mod crd;
pub mod follow;
pub mod watch;

use std::sync::Arc;

use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::controller::Action;
use kube::runtime::reflector::Store;
use kube::runtime::reflector::store::Writer;
use register::claims::Object;
use tokio::time::Instant;

use crate::calls::asked_to_wait;
use crate::metrics::Metrics;
use crate::queue::Queue;
use crate::registrar::{Registrar, Retry, Sighting};
use crate::reports::Reports;
use crate::sources::{Gathered, ReadError, Source};
use crate::together;
use crate::wakes::{Key, Wakes};

/// Objects of one feed that are read and written at a time.
const AT_ONCE: u16 = 16;

/// The watch of one namespace, or of all namespaces.
pub struct Feed {
    pub source: Arc<Source>,
    /// Index among the feeds of its source.
    pub index: usize,
    pub namespace: Option<String>,
    pub wakes: Wakes,
    pub registrar: Arc<Registrar>,
    pub reports: Arc<Reports>,
    pub metrics: Metrics,
}

/// An object to try again.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] Retry),
}

// === impl Feed ===

impl Feed {
    /// Runs the watches and the queue. Never ends.
    pub async fn run(self) {
        self.metrics.queues.follow(self.source.name.as_str(), self.wakes.clone());
        let resource = self.resource(self.source.kind.versions[0]);
        let writer = Writer::new(resource.clone());
        let store = writer.as_reader();
        let feed = Arc::new(self);
        let queue = Arc::clone(&feed).work(store, resource);
        let related = watch::secrets(Arc::clone(&feed));
        together::three(watch::objects(Arc::clone(&feed), writer), related, queue).await;
    }

    fn resource(&self, version: &str) -> ApiResource {
        let kind = &self.source.kind;
        let gvk = kube::core::GroupVersionKind::gvk(kind.group, version, kind.name);
        ApiResource::from_gvk_with_plural(&gvk, kind.plural)
    }

    async fn work(self: Arc<Self>, store: Store<DynamicObject>, resource: ApiResource) {
        self.registrar.ready().await;
        let queue = Queue { wakes: self.wakes.clone(), store, resource, at_once: AT_ONCE };
        let reconcile = async |object: Arc<DynamicObject>, feed: Arc<Self>| feed.reconcile(&object).await;
        let retry = |object: Arc<DynamicObject>, failure: &Failure, feed: Arc<Self>| feed.retry(&object, failure);
        queue.run(self, reconcile, retry).await;
    }

    async fn reconcile(&self, object: &DynamicObject) -> Result<Action, Failure> {
        let began = Instant::now();
        let outcome = self.look(object).await;
        self.metrics.queues.worked(began.elapsed());
        outcome
    }

    async fn look(&self, object: &DynamicObject) -> Result<Action, Failure> {
        let Some(sighting) = self.sight(object) else { return Ok(Action::await_change()) };
        self.registrar.see(sighting.clone());
        let reader = &*self.source.reader;
        let gathered = Gathered::of(object, reader, &self.source.client).await?;
        let sum = gathered.sum(&self.registrar.sums);
        if !self.registrar.is_settled(&sighting.object, sum) {
            self.registrar.take(sighting, gathered.read(reader), sum).await?;
        }
        Ok(Action::await_change())
    }

    fn retry(&self, object: &DynamicObject, failure: &Failure) -> Action {
        self.metrics.failed(self.source.name.as_str());
        let after = match failure {
            Failure::Read(error) => {
                let wait = self.reports.failed(&self.object(object), None, &error.to_string());
                wait.max(error.hub().map(asked_to_wait).unwrap_or_default())
            }
            Failure::Write(retry) => retry.after,
        };
        tracing::warn!(source = self.source.name.as_str(), object = self.object(object).reference, ?after, "{failure}");
        Action::requeue(after)
    }

    fn object(&self, object: &DynamicObject) -> Object {
        self.object_called(&object.namespace().unwrap_or_default(), &object.name_any())
    }

    /// Whether the feed covers such a key.
    fn covers(&self, (namespace, _): &Key) -> bool {
        self.namespace.as_ref().is_none_or(|own| own == namespace)
    }

    fn object_called(&self, namespace: &str, name: &str) -> Object {
        let kind = &self.source.kind;
        Object::new(self.source.name.as_str(), [kind.group, kind.name], namespace, name)
    }

    /// The object's sighting for the registrar. An object whose name cannot be a cluster's is
    /// refused here.
    fn sight(&self, object: &DynamicObject) -> Option<Sighting> {
        if !self.source.reader.is_of_source(object) {
            return None;
        }
        let namespace = object.namespace();
        let claimant = self.object(object);
        let reference = self.reference(object);
        match self.source.template.name(namespace.as_deref(), &object.name_any()) {
            Ok(name) => Some(Sighting {
                object: claimant,
                name: name.as_str().to_owned(),
                uid: object.uid().unwrap_or_default(),
                created: object.creation_timestamp().map(|time| time.0.to_string()).unwrap_or_default(),
                reference,
            }),
            Err(invalid) => {
                self.registrar.see_nameless(&claimant, reference, &invalid.to_string());
                None
            }
        }
    }

    fn reference(&self, object: &DynamicObject) -> ObjectReference {
        let kind = &self.source.kind;
        let version = object.types.as_ref().map(|types| types.api_version.clone());
        let version = version.unwrap_or_else(|| self.resource(kind.versions[0]).api_version);
        ObjectReference {
            api_version: Some(version),
            kind: Some(kind.name.to_owned()),
            namespace: object.namespace(),
            name: Some(object.name_any()),
            uid: object.uid(),
            ..ObjectReference::default()
        }
    }
}
