//! Traces over OTLP: which requests are recorded, their spans, and the way to the collector.
//!
//! Made of the OpenTelemetry project's own crates. [`Traces::begin`] decides about a request, once:
//! it gives a [`Span`] for one that is recorded, and nothing for any other. Further spans hang on
//! the [`Trace`] of one that is there, so whoever has none spends nothing.
//!
//! A request never waits for the collector: finished spans queue, what finds no room is dropped,
//! and both that and what the collector did not take are counted.

mod export;
mod metrics;
mod parent;
mod queue;
mod span;
mod traces;

pub use opentelemetry::Value;
pub use opentelemetry::trace::SpanKind as Kind;

pub use self::export::StartError;
pub use self::metrics::Metrics;
pub use self::span::{Span, Trace};
pub use self::traces::{Config, Parent, PerMillion, Traces};
