//! Flags of the audit log, which are kube-apiserver's, and of metrics.

use std::path::PathBuf;
use std::time::Duration;

use audit::{Config, FileConfig, Target};
use clap::Args as Group;

/// The default of lumberjack, also used for zero.
const DEFAULT_MEGABYTES: u64 = 100;
const MEGABYTE: u64 = 1024 * 1024;
const DAY: Duration = Duration::from_hours(24);

#[derive(Debug, Group)]
pub struct Audit {
    /// Audit log file, or - for standard output; without it nothing is audited
    #[arg(long = "audit-log-path", value_name = "FILE")]
    pub path: Option<PathBuf>,
    /// Size in MiB at which the audit log file is rotated
    #[arg(long = "audit-log-maxsize", default_value_t = DEFAULT_MEGABYTES, value_name = "MIB")]
    pub maxsize: u64,
    /// Rotated files to keep; 0 keeps all
    #[arg(long = "audit-log-maxbackup", default_value_t = 0, value_name = "NUMBER")]
    pub maxbackup: usize,
    /// Days to keep rotated files; 0 keeps them forever
    #[arg(long = "audit-log-maxage", default_value_t = 0, value_name = "DAYS")]
    pub maxage: u32,
    /// No effect: rotated files are not compressed
    #[arg(long = "audit-log-compress", num_args = 0..=1, default_value_t = false, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    pub compress: bool,
    /// No effect: every request is audited at level Metadata
    #[arg(long = "audit-policy-file", value_name = "FILE")]
    pub policy_file: Option<PathBuf>,
    /// Also serve the Go cluster-gateway's metrics, `ocm_proxy_…`
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub ocm_proxy_metrics: bool,
}

// === impl Audit ===

impl Audit {
    /// `None` if there is no audit log.
    pub fn config(&self) -> Option<Config> {
        let path = self.path.clone().filter(|path| !path.as_os_str().is_empty())?;
        if path.as_os_str() == "-" {
            return Some(Config { target: Target::Stdout });
        }
        let megabytes = if self.maxsize == 0 { DEFAULT_MEGABYTES } else { self.maxsize };
        Some(Config {
            target: Target::File(FileConfig {
                path,
                max_size: megabytes.saturating_mul(MEGABYTE),
                max_backups: self.maxbackup,
                max_age: DAY * self.maxage,
            }),
        })
    }

    /// Warnings for the operator about these flags.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.policy_file.is_some() {
            let what = if self.path.is_some() {
                "everything is audited at level Metadata"
            } else {
                "nothing is audited without --audit-log-path"
            };
            warnings.push(format!("--audit-policy-file has no effect: {what}"));
        }
        if self.compress {
            warnings.push("--audit-log-compress has no effect: rotated audit logs are not compressed".into());
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::parse_from;

    fn audit(arguments: &[&str]) -> Audit {
        parse_from([&["cluster-gateway"], arguments].concat()).expect("valid arguments").audit
    }

    #[test]
    fn the_flags_are_kube_apiservers() {
        assert_eq!(audit(&["--audit-log-maxsize=5"]).config(), None);
        assert_eq!(audit(&["--audit-log-path=-"]).config(), Some(Config { target: Target::Stdout }));
        let flags =
            ["--audit-log-path=/a.log", "--audit-log-maxbackup=3", "--audit-log-maxage=7", "--audit-log-compress"];
        let (path, max_size) = ("/a.log".into(), 100 * MEGABYTE);
        let file = FileConfig { path, max_size, max_backups: 3, max_age: Duration::from_hours(7 * 24) };
        assert_eq!(audit(&flags).config(), Some(Config { target: Target::File(file) }));
        assert_eq!(audit(&flags).warnings().len(), 1);
    }

    #[test]
    fn a_policy_is_accepted_with_a_warning() {
        let warnings = audit(&["--audit-log-path=-", "--audit-policy-file=p.yaml"]).warnings();
        assert_eq!(warnings, ["--audit-policy-file has no effect: everything is audited at level Metadata"]);
    }
}
