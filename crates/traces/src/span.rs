//! A span that has not ended, and the place where further ones hang.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;
use opentelemetry::trace::{Link, Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, Tracer};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::{SdkTracer, Span as SdkSpan};

use crate::parent;

/// Characters kept of a text that callers or members choose.
const LONGEST_TEXT: usize = 256;
/// What went wrong, as one of few words (semantic conventions, `error.type`).
const ERROR_TYPE: &str = "error.type";
/// Of a span whose waiter left.
const CANCELLED: &str = "cancelled";

/// A recorded span, to hang others on. Cheap to clone; may outlive the span.
#[derive(Debug, Clone)]
pub struct Trace(Arc<Parent>);

#[derive(Debug)]
struct Parent {
    tracer: SdkTracer,
    span: SpanContext,
}

/// A span that is recorded until it is dropped. Without an outcome by then it was cancelled.
#[derive(Debug)]
pub struct Span(Box<Open>);

#[derive(Debug)]
struct Open {
    span: SdkSpan,
    trace: Trace,
    is_told: bool,
}

// === impl Trace ===

impl Trace {
    /// A span beneath this one, begun now.
    pub fn span(&self, name: &'static str, kind: SpanKind) -> Span {
        let Parent { tracer, span } = &*self.0;
        let builder = SpanBuilder::from_name(name).with_kind(kind);
        let parent = Context::new().with_remote_span_context(span.clone());
        Span::of(tracer, tracer.build_with_context(builder, &parent))
    }

    /// Tells the receiver of `headers` that what it does is done for this span.
    pub fn write(&self, headers: &mut HeaderMap) {
        parent::write(&self.0.span, headers);
    }
}

// === impl Span ===

impl Span {
    /// The first span of this process for a request: beneath `parent`, or a beginning that is
    /// merely linked to its sender's. `None`: it is not sampled.
    pub(crate) fn first(
        tracer: &SdkTracer,
        name: &'static str,
        parent: Option<SpanContext>,
        linked: Option<SpanContext>,
    ) -> Option<Self> {
        let mut builder = SpanBuilder::from_name(name).with_kind(SpanKind::Server);
        builder.links = linked.map(|span| vec![Link::with_context(span)]);
        let context = parent.map_or_else(Context::new, |span| Context::new().with_remote_span_context(span));
        let span = tracer.build_with_context(builder, &context);
        span.is_recording().then(|| Self::of(tracer, span))
    }

    fn of(tracer: &SdkTracer, span: SdkSpan) -> Self {
        let trace = Trace(Arc::new(Parent { tracer: tracer.clone(), span: span.span_context().clone() }));
        Self(Box::new(Open { span, trace, is_told: false }))
    }

    pub fn trace(&self) -> &Trace {
        &self.0.trace
    }

    pub fn rename(&mut self, name: String) {
        self.0.span.update_name(name);
    }

    pub fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        self.0.span.set_attribute(KeyValue::new(key, value));
    }

    /// As [`Span::set`], for a text that a client chose: it is cut where it is long.
    pub fn set_text(&mut self, key: &'static str, text: &str) {
        self.set(key, short(text).to_owned());
    }

    /// It came to its end, good or bad as its attributes say.
    pub fn ended(&mut self) {
        self.0.is_told = true;
    }

    /// It failed: with one of few words, and with a text without secrets.
    pub fn failed(&mut self, kind: impl Into<Cow<'static, str>>, text: &str) {
        self.set(ERROR_TYPE, kind.into());
        self.0.span.set_status(Status::error(short(text).to_owned()));
        self.ended();
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if !self.0.is_told {
            self.failed(CANCELLED, "");
        }
    }
}

fn short(text: &str) -> &str {
    text.char_indices().nth(LONGEST_TEXT).map_or(text, |(end, _)| &text[..end])
}
