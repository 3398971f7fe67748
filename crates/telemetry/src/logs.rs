//! Structured logs on standard error: text for people, JSON for collectors. The level can change at
//! run time.

use std::str::FromStr;

use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

/// The format of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Text,
    Json,
}

/// Changes the log level of the running process.
#[derive(Clone)]
pub struct LogLevel(reload::Handle<EnvFilter, Registry>);

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("invalid log level {text:?}: {source}")]
    Level { text: String, source: tracing_subscriber::filter::ParseError },
    #[error("logs are already set up in this process")]
    AlreadySet,
    #[error("the log level can no longer be changed")]
    Gone,
}

/// Starts logging at `level` (`info`, or a filter such as `info,gateway=debug`).
pub fn start(level: &str, format: Format) -> Result<LogLevel, LogError> {
    let (filter, handle) = reload::Layer::new(parse(level)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match format {
        Format::Text => lines.with_ansi(false).boxed(),
        Format::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry().with(filter).with(lines).try_init().map_err(|_| LogError::AlreadySet)?;
    Ok(LogLevel(handle))
}

/// The hub client logs responses that it cannot parse in full, including Secrets and tokens. It
/// also logs each failed request as an error without its cause, which its caller reports better. No
/// level enables these.
const NEVER: [&str; 2] = ["kube_client::client=error", "kube_client::client::builder=off"];

fn parse(level: &str) -> Result<EnvFilter, LogError> {
    let filter = EnvFilter::from_str(level).map_err(|source| LogError::Level { text: level.to_owned(), source })?;
    Ok(NEVER.iter().fold(filter, |filter, never| filter.add_directive(never.parse().expect("a valid directive"))))
}

// === impl LogLevel ===

impl LogLevel {
    pub fn set(&self, level: &str) -> Result<(), LogError> {
        self.0.reload(parse(level)?).map_err(|_| LogError::Gone)
    }

    /// The current filter.
    pub fn get(&self) -> Option<String> {
        self.0.with_current(ToString::to_string).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_level_is_named_and_changes_nothing() {
        let logs = start("info", Format::Json).unwrap();
        let error = logs.set("gateway=loud").unwrap_err().to_string();
        assert!(error.contains("gateway=loud"), "{error}");
        let is = |level: &str| logs.get().is_some_and(|filter| filter.split(',').any(|directive| directive == level));
        let never = || NEVER.into_iter().all(is);
        assert!(is("info") && never(), "{:?}", logs.get());
        logs.set("debug").unwrap();
        assert!(is("debug") && never(), "{:?}", logs.get());
        logs.set("trace,kube_client::client=trace,kube_client::client::builder=trace").unwrap();
        assert!(never(), "{:?}", logs.get());
    }
}
