//! The flags of `patch`: those of the Go cluster-gateway's helper in their spelling, and ours.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser};
use telemetry::flags::{duration, with_environment};

/// Writes the CA of the gateway's serving certificate into its APIService.
#[derive(Debug, Parser)]
#[command(name = "cluster-gateway patch", version, max_term_width = 120)]
pub struct Args {
    /// APIService to write the CA into
    #[arg(long = "target-APIService", default_value = "v1alpha1.cluster.core.oam.dev", value_name = "NAME")]
    pub api_service: String,
    /// Secret with the CA
    #[arg(long = "secret-name", value_name = "NAME")]
    pub secret: String,
    /// Namespace of the Secret
    #[arg(long = "secret-namespace", value_name = "NAMESPACE")]
    pub namespace: String,
    /// Key of the Secret with the CA as PEM
    #[arg(long = "secret-ca-bundle-key", default_value = "ca", value_name = "KEY")]
    pub key: String,
    /// Kubeconfig of the hub (default: in-cluster configuration)
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// How long to wait for the Secret, its key and the APIService
    #[arg(long, value_parser = duration, default_value = "5m", value_name = "DURATION")]
    pub timeout: Duration,
}

// === impl Args ===

impl Args {
    /// Parses `arguments`, which begin with the subcommand's name. Flags that are not given are
    /// read from `CLUSTER_GATEWAY_PATCH_…`, a separate prefix, because the server's
    /// `--secret-namespace` means another namespace.
    pub fn parse_from(arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        let command = with_environment(Self::command(), "CLUSTER_GATEWAY_PATCH_");
        Self::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }
}
