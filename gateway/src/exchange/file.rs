//! The operator's rules, `--cluster-gateway-proxy-config`: reads the file at the start, then
//! follows it.
//!
//! An invalid file stops the start. A file that becomes invalid later changes nothing: the last
//! valid rules stay in force, the log has the reason, and a counter and a gauge show it.

mod metrics;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use net::follow::File;
use net::words;

use super::configuration::{self, InvalidConfiguration, LONGEST};
use super::rule::Rules;

pub use self::metrics::Metrics;

/// The file, and the rules from when it was last valid.
#[derive(Debug)]
pub struct RulesFile {
    path: PathBuf,
    file: File,
    rules: Arc<ArcSwap<Rules>>,
    metrics: Metrics,
}

/// The file cannot be used at the start. The texts include their cause.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read {path}: {source}", path = .0.display(), source = words::io(.1))]
    Read(PathBuf, std::io::Error),
    #[error("{path}:{problems}", path = .0.display(), problems = lines(.1))]
    Invalid(PathBuf, InvalidConfiguration),
}

// === impl RulesFile ===

impl RulesFile {
    /// Reads the file for the first time.
    pub fn open(path: &Path, metrics: Metrics) -> Result<Self, FileError> {
        let unreadable = |error| FileError::Read(path.to_owned(), error);
        let (file, text) = File::open(path, LONGEST as u64).map_err(unreadable)?;
        let text = str::from_utf8(&text).map_err(|error| unreadable(std::io::Error::other(error)))?;
        let rules = compile(path, text).map_err(|error| FileError::Invalid(path.to_owned(), error))?;
        metrics.loaded();
        Ok(Self { path: path.to_owned(), file, rules: Arc::new(ArcSwap::from_pointee(rules)), metrics })
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<ArcSwap<Rules>> {
        Arc::clone(&self.rules)
    }

    /// Follows the file forever.
    pub async fn follow(self) {
        let Self { path, file, rules, metrics } = self;
        let refused = metrics.clone();
        let apply = move |text: &[u8]| -> Result<(), Box<dyn Error + Send + Sync>> {
            rules.store(Arc::new(compile(&path, str::from_utf8(text)?)?));
            metrics.loaded();
            Ok(())
        };
        file.follow("identity rules", apply, move || refused.refused()).await;
    }
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

#[cfg(test)]
mod tests {
    use net::follow::INTERVAL;
    use prometheus_client::encoding::text::encode;
    use prometheus_client::registry::Registry;

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

    #[tokio::test(start_paused = true)]
    async fn a_file_that_becomes_wrong_leaves_the_last_rules_in_force() {
        let (registry, metrics) = metrics();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), PRIVILEGED).unwrap();
        let followed = RulesFile::open(file.path(), metrics).unwrap();
        let rules = followed.rules();
        let following = tokio::spawn(followed.follow());
        let told = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        let round = async || tokio::time::sleep(2 * INTERVAL).await;
        for wrong in ["", "spec: [", "spec: {clientIdentityExchanger: {rules: [{name: long enough to differ}]}}"] {
            std::fs::write(file.path(), wrong).unwrap();
            round().await;
            assert_eq!(rules.load().len(), 1, "{wrong}");
        }
        let text = told();
        assert!(text.contains("cluster_gateway_identity_rules_loads_total{result=\"failure\"} 3"), "{text}");
        assert!(text.contains("cluster_gateway_identity_rules_current 0"), "{text}");
        std::fs::write(file.path(), "spec: {}").unwrap();
        round().await;
        assert_eq!(rules.load().len(), 0);
        std::fs::remove_file(file.path()).unwrap();
        round().await;
        assert!(told().contains("cluster_gateway_identity_rules_current 0"));
        std::fs::write(file.path(), "spec: {}").unwrap();
        round().await;
        assert!(told().contains("cluster_gateway_identity_rules_current 1"), "the same file as before it was gone");
        following.abort();
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), format!("spec: {{}} #{}", "x".repeat(LONGEST))).unwrap();
        let error = RulesFile::open(file.path(), metrics().1).unwrap_err().to_string();
        assert!(error.contains("longer than 256 KiB"), "{error}");
    }
}
