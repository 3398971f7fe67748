//! In place of everything, where the feature `otlp` is off: tracing cannot be switched on, so there
//! is never a trace, and what needs one to be called is never called.

use std::borrow::Cow;

use http::HeaderMap;
use prometheus_client::registry::Registry;
use tokio::runtime::Handle;

use crate::config::Config;

/// No value has this type.
#[derive(Debug, Clone, Copy)]
enum Never {}

/// Tracing, which is never switched on.
#[derive(Debug)]
pub struct Traces(Never);

/// Of no request.
#[derive(Debug)]
pub struct Span(Never);

/// Of no span.
#[derive(Debug, Clone)]
pub struct Trace(Never);

/// What a span would be.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Client,
    Internal,
}

/// Tracing cannot be switched on.
#[derive(Debug, thiserror::Error)]
#[error("--tracing-endpoint={0}: this program was built without traces (the feature `traces`)")]
pub struct StartError(String);

/// Of nothing.
#[derive(Debug, Clone, Copy)]
pub struct Metrics;

// === impl Traces ===

impl Traces {
    /// Fails.
    pub fn start(
        config: &Config,
        _: &'static str,
        _: &'static str,
        _: &Handle,
        _: &Metrics,
    ) -> Result<Self, StartError> {
        Err(StartError(config.endpoint.to_string()))
    }

    pub fn begin(&self, _: &'static str, _: &mut HeaderMap, _: impl FnOnce() -> bool) -> Option<Span> {
        match self.0 {}
    }

    #[expect(clippy::unused_async, reason = "that of those that are")]
    pub async fn shut_down(&self) {
        match self.0 {}
    }
}

// === impl Span ===

impl Span {
    pub fn trace(&self) -> &Trace {
        match self.0 {}
    }

    pub fn rename(&mut self, _: String) {
        match self.0 {}
    }

    pub fn set<V>(&mut self, _: &'static str, _: V) {
        match self.0 {}
    }

    pub fn set_text(&mut self, _: &'static str, _: &str) {
        match self.0 {}
    }

    pub fn ended(&mut self) {
        match self.0 {}
    }

    pub fn failed(&mut self, _: impl Into<Cow<'static, str>>, _: &str) {
        match self.0 {}
    }
}

// === impl Trace ===

impl Trace {
    pub fn span(&self, _: &'static str, _: Kind) -> Span {
        match self.0 {}
    }

    pub fn write(&self, _: &mut HeaderMap) {
        match self.0 {}
    }
}

// === impl Metrics ===

impl Metrics {
    /// Registers nothing.
    pub fn register(_: &mut Registry) -> Self {
        Self
    }
}
