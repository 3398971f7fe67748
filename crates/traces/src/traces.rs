//! Tracing as an operator switched it on, and the decision about each request.

use std::time::Duration;

use http::HeaderMap;
use net::words::causes;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::{EnvResourceDetector, TelemetryResourceDetector};
use opentelemetry_sdk::trace::{Sampler, SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;

use crate::config::{Config, Parent};
use crate::export::{Exporter, Metrics, StartError};
use crate::parent;
use crate::queue::{Queue, Waiting};
use crate::span::Span;

/// What is queued at the end is sent within this.
const FLUSH_WITHIN: Duration = Duration::from_secs(3);

/// Tracing, switched on.
#[derive(Debug)]
pub struct Traces {
    tracer: SdkTracer,
    provider: SdkTracerProvider,
    parent: Parent,
}

// === impl Traces ===

impl Traces {
    /// `runtime` has the connection to the collector. Of `service` are all spans, unless the
    /// environment says more (`OTEL_RESOURCE_ATTRIBUTES`).
    pub fn start(
        config: &Config,
        service: &'static str,
        version: &'static str,
        runtime: &Handle,
        metrics: &Metrics,
    ) -> Result<Self, StartError> {
        let waiting = Waiting::default();
        let exporter = Exporter::new(config.endpoint.as_str(), runtime, waiting.clone(), metrics)?;
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(config.sampling.as_ratio()))))
            .with_resource(process(service, version))
            .with_span_processor(Queue::start(exporter, waiting, metrics.dropped.clone()))
            .build();
        let tracer = provider.tracer_with_scope(InstrumentationScope::builder(service).with_version(version).build());
        Ok(Self { tracer, provider, parent: config.parent })
    }

    /// Decides about a request: its first span, if it is recorded. `is_hubs` says whether `headers`
    /// come from the hub.
    ///
    /// A `traceparent` that is not believed decides nothing here, and does not stay in `headers` to
    /// do so at a member, which would take it for ours. kube-apiserver does the same for callers
    /// without privileges (`endpoints/filters/traces.go`, `WithPublicEndpointFn`): it begins a
    /// trace of its own, and links it to theirs.
    pub fn begin(&self, name: &'static str, headers: &mut HeaderMap, is_hubs: impl FnOnce() -> bool) -> Option<Span> {
        if !parent::is_in(headers) {
            return Span::first(&self.tracer, name, None, None);
        }
        let callers = parent::read(headers);
        if self.parent == Parent::Hub && is_hubs() {
            return Span::first(&self.tracer, name, callers, None);
        }
        parent::remove(headers);
        Span::first(&self.tracer, name, None, callers)
    }

    /// Sends what is queued, for a bounded time. Nothing is recorded any more.
    pub async fn shut_down(&self) {
        let provider = self.provider.clone();
        // It waits for the thread of the queue.
        let ended = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(FLUSH_WITHIN));
        if let Ok(Err(error)) = ended.await {
            tracing::warn!(error = causes(&error), "spans were not sent");
        }
    }
}

/// What all spans say of this process. Of replicas, each is known by its pod's name, which is its
/// host's.
fn process(service: &'static str, version: &'static str) -> Resource {
    let about = Resource::builder_empty()
        .with_detector(Box::new(TelemetryResourceDetector))
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.version", version));
    let about = match std::env::var("HOSTNAME") {
        Ok(host) => about.with_attribute(KeyValue::new("service.instance.id", host)),
        Err(_) => about,
    };
    about.with_detector(Box::new(EnvResourceDetector::new())).build()
}
