//! Traces over OTLP: which requests are recorded, their spans, and the way to the collector.
//!
//! Made of the OpenTelemetry project's own crates. [`Traces::begin`] decides about a request, once:
//! it gives a [`Span`] for one that is recorded, and nothing for any other. Further spans hang on
//! the [`Trace`] of an existing one, so that a request without one spends nothing.
//!
//! A request never waits for the collector: finished spans queue, what finds no room is dropped,
//! and both that and what the collector did not take are counted.

#[cfg(not(feature = "otlp"))]
mod absent;
mod config;
#[cfg(feature = "otlp")]
#[doc(hidden)]
pub mod edges;
#[cfg(feature = "otlp")]
mod export;
#[cfg(feature = "otlp")]
mod parent;
#[cfg(feature = "otlp")]
mod queue;
#[cfg(feature = "otlp")]
mod span;
#[cfg(feature = "otlp")]
mod traces;

#[cfg(feature = "otlp")]
pub use opentelemetry::Value;
#[cfg(feature = "otlp")]
pub use opentelemetry::trace::SpanKind as Kind;

#[cfg(not(feature = "otlp"))]
pub use self::absent::{Kind, Metrics, Span, StartError, Trace, Traces};
pub use self::config::{Config, Parent, PerMillion};
#[cfg(feature = "otlp")]
pub use self::export::{Metrics, StartError};
#[cfg(feature = "otlp")]
pub use self::span::{Span, Trace};
#[cfg(feature = "otlp")]
pub use self::traces::Traces;
