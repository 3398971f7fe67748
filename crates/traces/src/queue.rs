//! The queue of finished spans: the SDK's, with what it drops counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use net::permit;
use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor};
use prometheus_client::metrics::counter::Counter;

/// Spans that may wait, as in the SDKs of all languages (`OTEL_BSP_MAX_QUEUE_SIZE`). With the
/// longest texts they take 8 MiB.
pub const MOST_SPANS: usize = 2048;
/// Spans of one export (`OTEL_BSP_MAX_EXPORT_BATCH_SIZE`).
const BATCH: usize = 512;
/// After which a batch that is not full is sent.
const EVERY: Duration = Duration::from_secs(1);

/// How many spans are in the queue. Clones count together.
#[derive(Debug, Clone, Default)]
pub struct Waiting(Arc<AtomicUsize>);

/// Takes spans, from any thread, without waiting.
#[derive(Debug)]
pub struct Queue {
    spans: BatchSpanProcessor,
    waiting: Waiting,
    dropped: Counter,
}

// === impl Waiting ===

impl Waiting {
    /// A place for one more, if there is one.
    fn enter(&self) -> bool {
        permit::raise(&self.0, MOST_SPANS)
    }

    pub fn leave(&self, spans: usize) {
        self.0.fetch_sub(spans, Ordering::Relaxed);
    }
}

// === impl Queue ===

impl Queue {
    /// Starts the thread that hands batches to `exporter`, which reports them to `waiting`.
    pub fn start(exporter: impl SpanExporter + 'static, waiting: Waiting, dropped: Counter) -> Self {
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(MOST_SPANS)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(EVERY)
            .build();
        let spans = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        Self { spans, waiting, dropped }
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.spans.on_start(span, context);
    }

    /// The SDK's own queue is as long, so it has room for whatever has a place here.
    fn on_end(&self, span: SpanData) {
        if self.waiting.enter() {
            self.spans.on_end(span);
        } else {
            self.dropped.inc();
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.spans.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.spans.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.spans.set_resource(resource);
    }
}
