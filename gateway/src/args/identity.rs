//! Flags for the identity that members see.

use clap::Args as Group;

use crate::config::Gates;
use crate::exchange::Options;

#[derive(Debug, Group)]
pub struct Identity {
    /// File of identity rules (`ClusterGatewayProxyConfiguration`, YAML), re-read when it changes
    #[arg(long, default_value = "", value_name = "FILE", hide_default_value = true)]
    pub cluster_gateway_proxy_config: String,
    /// Let identity rules in Secret annotations use the registered credential itself, and users and
    /// groups that begin with `system:`
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub allow_privileged_annotations: bool,
    /// Send callers' UIDs to members as `Impersonate-Uid`; the registered credential then needs
    /// `impersonate` on `uids`
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = true, default_missing_value = "true")]
    pub impersonate_uid: bool,
    /// Extra attributes of callers to withhold from members; a trailing `*` makes a prefix
    #[arg(long, value_delimiter = ',', default_value = "authentication.kubernetes.io/*", value_name = "KEYS")]
    pub impersonate_extra_filter: Vec<String>,
}

// === impl Identity ===

impl Identity {
    pub(super) fn options(&self, gates: Gates) -> Options {
        let file = Some(&self.cluster_gateway_proxy_config).filter(|path| !path.is_empty());
        Options {
            file: file.map(Into::into),
            gate: gates.client_identity_penetration,
            privileged_annotations: self.allow_privileged_annotations,
            uid: self.impersonate_uid,
            withheld_extra: self.impersonate_extra_filter.clone(),
            ..Options::default()
        }
    }
}
