//! Flags of the spellings in which members can be asked for, beside our own.

use std::net::SocketAddr;

use api::route::Served;
use clap::{Args as Group, ValueEnum};
use register::naming::Template;

use crate::exchange::Forwarded;

#[derive(Debug, Group)]
#[group(id = "dialects-group")]
pub struct Dialects {
    /// Also serve members under kcp's paths: `/clusters/<name>/…`, where `a:b:c` is the cluster
    /// `a.b.c`
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub kcp_dialect: bool,
    /// Address of another port that serves only members, under the paths of Open Cluster
    /// Management's user server: `/<cluster>/…`, for tokens and client certificates of the hub
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub ocm_user_server_listen: Option<SocketAddr>,
    /// Serve members under Karmada's paths too,
    /// `/apis/cluster.karmada.io/v1alpha1/clusters/<name>/proxy/…`, each request as its caller.
    /// off: not at all; standalone: on a hub that has no Karmada
    #[arg(long, value_enum, default_value_t = KarmadaDialect::Off, value_name = "WHERE")]
    pub karmada_dialect: KarmadaDialect,
    /// Send all groups, uids and extra attributes of a caller under Karmada's paths, without asking
    /// members whom the registered credential may impersonate. A member refuses the request if the
    /// credential may not impersonate one of them. The gateway never sends `system:authenticated`
    /// or `system:unauthenticated` if the member adds that group itself
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub karmada_forward_all_groups: bool,
    /// Reserved names: Karmada's API creates no cluster called NAME or NAME-…, as other Secrets of
    /// the clusters' namespace are; repeatable. The controllers have the same flag
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "cluster-gateway,tunnel-agent")]
    pub reserved_names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KarmadaDialect {
    Off,
    Standalone,
}

// === impl Dialects ===

impl Dialects {
    /// What the gateway's own port serves.
    pub(super) fn served(&self) -> Served {
        let karmada = self.karmada_dialect == KarmadaDialect::Standalone;
        Served::Gateway(api::route::Dialects { kcp: self.kcp_dialect, karmada })
    }

    pub(super) fn forwarded(&self) -> Forwarded {
        if self.karmada_forward_all_groups { Forwarded::Everything } else { Forwarded::Permitted }
    }

    /// What new clusters may be called.
    pub(super) fn cluster_names(&self) -> Template {
        Template::default().without(&self.reserved_names)
    }

    /// What the operator should know about what was given.
    pub(super) fn warnings(&self, hub: bool) -> Vec<String> {
        let is_on = self.karmada_dialect != KarmadaDialect::Off;
        let mut warnings = Vec::new();
        if is_on && !hub {
            warnings.push(
                "--karmada-dialect without a hub is for system:masters alone: --standalone-policy grants nothing of \
                 cluster.karmada.io"
                    .to_owned(),
            );
        }
        if self.karmada_forward_all_groups && !is_on {
            warnings.push("--karmada-forward-all-groups has no effect without --karmada-dialect".to_owned());
        }
        warnings
    }
}
