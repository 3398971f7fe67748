//! The way to the collector: OTLP over gRPC, one connection, each export within a time.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use net::words::causes;
use opentelemetry_otlp::{WithExportConfig as _, WithTonicConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tonic::transport::Endpoint;

use crate::queue::Waiting;

/// For one export, retries included.
const EXPORT_WITHIN: Duration = Duration::from_secs(10);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A collector that vanished without a word is noticed, and looked up and dialled again.
const PING_AFTER: Duration = Duration::from_secs(20);
const PONG_WITHIN: Duration = Duration::from_secs(10);

/// Tracing cannot be switched on as it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("--tracing-endpoint={endpoint}: {source}")]
    Endpoint { endpoint: String, source: Box<dyn Error + Send + Sync> },
}

/// The SDK's exporter, with its outcomes counted.
#[derive(Debug)]
pub struct Exporter {
    to: opentelemetry_otlp::SpanExporter,
    endpoint: String,
    /// Has the connection and its timers; exports are begun on a thread of their own.
    runtime: Handle,
    waiting: Waiting,
    exported: Counter,
    failed: Counter,
    /// The last one failed: logged once.
    is_failing: AtomicBool,
}

/// What became of finished spans. Clones share their values.
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    pub(crate) exported: Counter,
    pub(crate) dropped: Counter,
    pub(crate) failed: Counter,
}

// === impl Metrics ===

impl Metrics {
    /// Registers `cluster_gateway_trace_spans_exported_total`, `…_dropped_total` and
    /// `…_failed_total`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        for (name, help, counter) in [
            ("exported", "Spans that the collector accepted", &metrics.exported),
            ("dropped", "Spans dropped because the queue was full", &metrics.dropped),
            ("failed", "Spans lost because the collector did not accept them", &metrics.failed),
        ] {
            registry.register(format!("cluster_gateway_trace_spans_{name}"), help, counter.clone());
        }
        metrics
    }
}

// === impl Exporter ===

impl Exporter {
    /// To `endpoint`, `host:port`. Connects when there is something to send.
    pub fn new(endpoint: &str, runtime: &Handle, waiting: Waiting, metrics: &Metrics) -> Result<Self, StartError> {
        let _entered = runtime.enter();
        let wrong = |source| StartError::Endpoint { endpoint: endpoint.to_owned(), source };
        let channel = Endpoint::from_shared(format!("http://{endpoint}"))
            .map_err(|error| wrong(error.into()))?
            .connect_timeout(CONNECT_WITHIN)
            .timeout(EXPORT_WITHIN)
            .http2_keep_alive_interval(PING_AFTER)
            .keep_alive_timeout(PONG_WITHIN)
            .connect_lazy();
        let to = opentelemetry_otlp::SpanExporter::builder()
            .with_tonic()
            .with_channel(channel)
            .with_timeout(EXPORT_WITHIN)
            .build()
            .map_err(|error| wrong(error.into()))?;
        Ok(Self {
            to,
            endpoint: endpoint.to_owned(),
            runtime: runtime.clone(),
            waiting,
            exported: metrics.exported.clone(),
            failed: metrics.failed.clone(),
            is_failing: AtomicBool::new(false),
        })
    }

    async fn send(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        // The timer needs a runtime when it is made, and none when it is polled.
        let sending = {
            let _entered = self.runtime.enter();
            timeout(EXPORT_WITHIN, self.to.export(batch))
        };
        sending.await.unwrap_or(Err(OTelSdkError::Timeout(EXPORT_WITHIN)))
    }

    fn tell(&self, outcome: &OTelSdkResult) {
        let endpoint = &*self.endpoint;
        let was_failing = self.is_failing.swap(outcome.is_err(), Ordering::Relaxed);
        match outcome {
            Err(error) if !was_failing => {
                tracing::warn!(
                    endpoint,
                    error = causes(error),
                    "the trace collector does not accept spans: they are lost until it does"
                );
            }
            Ok(()) if was_failing => tracing::info!(endpoint, "the trace collector accepts spans again"),
            _ => {}
        }
    }
}

impl SpanExporter for Exporter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        self.waiting.leave(spans);
        let outcome = self.send(batch).await;
        let counter = if outcome.is_ok() { &self.exported } else { &self.failed };
        counter.inc_by(spans as u64);
        self.tell(&outcome);
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.to.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.to.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.to.set_resource(resource);
    }
}
