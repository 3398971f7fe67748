//! The operator's rules, `--cluster-gateway-proxy-config`: read at the start, then followed as the file changes.
//!
//! A file that is wrong stops the start. One that becomes wrong later changes nothing: the rules read last stay in force, the
//! log says why, and a counter and a gauge tell whoever watches.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::configuration::{self, InvalidConfiguration, LONGEST};
use super::rule::Rules;
use crate::poll::{INTERVAL, Look};

/// The file, as it was when last looked at.
#[derive(Debug)]
pub struct RulesFile {
    path: PathBuf,
    seen: Look,
    rules: Arc<ArcSwap<Rules>>,
    metrics: Metrics,
}

/// The file cannot be used at the start. The texts hold their cause.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read {path}: {source}", path = .0.display(), source = .1)]
    Read(PathBuf, std::io::Error),
    #[error("{path}:{problems}", path = .0.display(), problems = lines(.1))]
    Invalid(PathBuf, InvalidConfiguration),
}

/// `cluster_gateway_identity_rules_loads_total{result}`, `cluster_gateway_identity_rules_current`. Clones share their values.
#[derive(Debug, Clone)]
pub struct Metrics {
    good: Counter,
    bad: Counter,
    current: Gauge,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    result: &'static str,
}

// === impl RulesFile ===

impl RulesFile {
    /// Reads the file for the first time.
    pub fn open(path: &Path, metrics: Metrics) -> Result<Self, FileError> {
        // Looked at first: a change while it is read is one more change.
        let seen = Look::at(path);
        let text = read(path).map_err(|error| FileError::Read(path.to_owned(), error))?;
        let rules = compile(path, &text).map_err(|error| FileError::Invalid(path.to_owned(), error))?;
        metrics.loaded();
        Ok(Self { path: path.to_owned(), seen, rules: Arc::new(ArcSwap::from_pointee(rules)), metrics })
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<ArcSwap<Rules>> {
        Arc::clone(&self.rules)
    }

    /// Follows the file for ever.
    pub async fn follow(mut self) {
        let mut interval = tokio::time::interval(INTERVAL);
        loop {
            interval.tick().await;
            self.look();
        }
    }

    fn look(&mut self) {
        let now = Look::at(&self.path);
        if now == self.seen {
            return;
        }
        self.seen = now;
        let loaded = read(&self.path)
            .map_err(|error| error.to_string())
            .and_then(|text| compile(&self.path, &text).map_err(|error| error.to_string()));
        match loaded {
            Ok(rules) => {
                tracing::info!(file = %self.path.display(), rules = rules.len(), "identity rules loaded");
                self.rules.store(Arc::new(rules));
                self.metrics.loaded();
            }
            Err(reason) => {
                tracing::error!(file = %self.path.display(), reason, "identity rules not usable, the last good ones stay in force");
                self.metrics.refused();
            }
        }
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    // One byte more than allowed, for the parser to see that it is too long.
    File::open(path)?.take(LONGEST as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

fn compile(path: &Path, text: &str) -> Result<Rules, InvalidConfiguration> {
    let (rules, remarks) = configuration::of_operator(text)?;
    for remark in remarks {
        tracing::warn!(file = %path.display(), "{remark}");
    }
    Ok(rules)
}

fn lines(error: &InvalidConfiguration) -> String {
    error.problems().iter().flat_map(|problem| ["\n  ", problem]).collect()
}

// === impl Metrics ===

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let loads = Family::<ResultLabels, Counter>::default();
        registry.register(
            "cluster_gateway_identity_rules_loads",
            "Times the file of identity rules was read, by result",
            loads.clone(),
        );
        let current = Gauge::default();
        registry.register(
            "cluster_gateway_identity_rules_current",
            "1 while the rules in force are those of the file, 0 if it could not be used when it last changed",
            current.clone(),
        );
        current.set(1);
        let counter = |result| loads.get_or_create_owned(&ResultLabels { result });
        Self { good: counter("success"), bad: counter("failure"), current }
    }

    fn loaded(&self) {
        self.good.inc();
        self.current.set(1);
    }

    fn refused(&self) {
        self.bad.inc();
        self.current.set(0);
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    const PRIVILEGED: &str =
        "spec: {clientIdentityExchanger: {rules: [{name: a, type: PrivilegedIdentityExchanger, source: {}}]}}";

    fn metrics() -> (Registry, Metrics) {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        (registry, metrics)
    }

    #[test]
    fn every_problem_stops_the_start_by_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(
            file.path(),
            "spec: {clientIdentityExchanger: {rules: [{name: one, type: X, source: {userPattern: '('}}, {name: two}]}}",
        )
        .unwrap();
        let error = RulesFile::open(file.path(), metrics().1).unwrap_err().to_string();
        for part in ["rule 1 (\"one\"): type \"X\"", "rule 1 (\"one\"): userPattern", "rule 2 (\"two\"): has no type"] {
            assert!(error.contains(part), "{part} missing in: {error}");
        }
        let missing = RulesFile::open(Path::new("/nowhere/rules.yaml"), metrics().1).unwrap_err();
        assert!(matches!(missing, FileError::Read(..)), "{missing}");
    }

    #[test]
    fn a_file_that_becomes_wrong_leaves_the_last_rules_in_force() {
        let (registry, metrics) = metrics();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), PRIVILEGED).unwrap();
        let mut followed = RulesFile::open(file.path(), metrics).unwrap();
        let rules = followed.rules();
        for wrong in ["", "spec: [", "spec: {clientIdentityExchanger: {rules: [{name: long enough to differ}]}}"] {
            std::fs::write(file.path(), wrong).unwrap();
            followed.look();
            assert_eq!(rules.load().len(), 1, "{wrong}");
        }
        let mut text = String::new();
        encode(&mut text, &registry).unwrap();
        assert!(text.contains("cluster_gateway_identity_rules_loads_total{result=\"failure\"} 3"), "{text}");
        assert!(text.contains("cluster_gateway_identity_rules_current 0"), "{text}");
        std::fs::write(file.path(), "spec: {}").unwrap();
        followed.look();
        assert_eq!(rules.load().len(), 0);
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("spec: {{}} #{}", "x".repeat(LONGEST))).unwrap();
        let error = RulesFile::open(file.path(), metrics().1).unwrap_err().to_string();
        assert!(error.contains("longer than 256 KiB"), "{error}");
    }
}
