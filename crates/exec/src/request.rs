//! A request to a plugin: its configuration and, if the plugin wants it, the cluster.
//!
//! Requests with the same content get the same credential, for any cluster. A different
//! configuration or cluster is another request.

mod info;

use api::secret::ExecConfig;
use aws_lc_rs::digest::{Context, SHA256};
use secrecy::{ExposeSecret as _, SecretString};

/// A plugin to run.
#[derive(Debug)]
pub struct Request {
    config: ExecConfig,
    /// `None` if the plugin does not want it.
    cluster: Option<ClusterInfo>,
}

/// The cluster in the form for a plugin: `ExecCredential`'s `spec.cluster`.
#[derive(Debug, Clone, Default)]
pub struct ClusterInfo {
    /// URL of the API server.
    pub server: String,
    pub tls_server_name: Option<String>,
    pub insecure_skip_tls_verify: bool,
    /// PEM.
    pub certificate_authority: Option<Vec<u8>>,
    /// Includes user and password, as client-go passes it.
    pub proxy_url: Option<SecretString>,
}

/// SHA-256 of all content: a writer of Secrets must not be able to find a collision with another
/// Secret's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u8; 32]);

// === impl Request ===

impl Request {
    /// Calls `cluster` only if the configuration has `provideClusterInfo`.
    pub fn new(config: ExecConfig, cluster: impl FnOnce() -> ClusterInfo) -> Self {
        let cluster = config.provide_cluster_info.then(cluster);
        Self { config, cluster }
    }

    pub fn config(&self) -> &ExecConfig {
        &self.config
    }

    /// The value of `KUBERNETES_EXEC_INFO`.
    pub(crate) fn info(&self) -> SecretString {
        info::json(self.config.api_version, self.cluster.as_ref())
    }

    /// The proxy's password is the only secret that a plugin gets outside of its environment.
    pub(crate) fn proxy_url(&self) -> Option<&SecretString> {
        self.cluster.as_ref()?.proxy_url.as_ref()
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let mut context = Context::new(&SHA256);
        // Each field follows its length, so that different contents never yield the same bytes.
        let mut field = |bytes: &[u8]| {
            context.update(&u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_be_bytes());
            context.update(bytes);
        };
        let ExecConfig { command, args, env, install_hint, .. } = &self.config;
        field(command.as_bytes());
        field(install_hint.as_deref().unwrap_or_default().as_bytes());
        // Contains the version and the cluster.
        field(self.info().expose_secret().as_bytes());
        field(&args.len().to_be_bytes());
        for arg in args {
            field(arg.as_bytes());
        }
        for (name, value) in env {
            field(name.as_bytes());
            field(value.expose_secret().as_bytes());
        }
        let digest = context.finish();
        Fingerprint(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

#[cfg(test)]
mod tests;
