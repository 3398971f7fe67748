//! Flags of the dialects besides our own.

use std::net::SocketAddr;
use std::path::PathBuf;

use api::route::{KarmadaMode, Served};
use api::secret::Endpoint;
use clap::{Args as Group, ValueEnum};
use register::endpoints;
use register::naming::Template;

use crate::clusters::karmada_upstream::Options;
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
    /// Also serve members under Karmada's paths,
    /// `/apis/cluster.karmada.io/v1alpha1/clusters/<name>/proxy/…`, where members see the caller:
    /// off, or standalone on a hub that has no Karmada, or beside with Karmada's API server as the
    /// hub. With beside, everything else of the group is sent to --karmada-upstream
    #[arg(long, value_enum, default_value_t = KarmadaDialect::Off, value_name = "WHERE")]
    pub karmada_dialect: KarmadaDialect,
    /// URL of Karmada's aggregated API server, for everything of its group but members; with
    /// --karmada-dialect=beside
    #[arg(long, value_name = "URL")]
    pub karmada_upstream: Option<String>,
    /// PEM file of the CAs of --karmada-upstream, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub karmada_upstream_ca_file: Option<PathBuf>,
    /// PEM file of a client certificate that --karmada-upstream accepts from its front proxy; with
    /// it, the gateway names the caller. Re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub karmada_upstream_cert_file: Option<PathBuf>,
    /// PEM file of the private key of --karmada-upstream-cert-file, re-read when it changes
    #[arg(long, value_name = "FILE")]
    pub karmada_upstream_key_file: Option<PathBuf>,
    /// Send all groups, UIDs and extra attributes of a caller under Karmada's paths, without asking
    /// members what the registered credential may impersonate. A member refuses the request if the
    /// credential may not impersonate one of them. The gateway never sends `system:authenticated`
    /// or `system:unauthenticated` if the member adds that group itself
    #[arg(long, action = clap::ArgAction::Set, num_args = 0..=1, require_equals = true, default_value_t = false, default_missing_value = "true")]
    pub karmada_forward_all_groups: bool,
    /// Reserved names: Karmada's API creates no cluster called NAME or NAME-…, because other
    /// Secrets in the clusters' namespace have such names; repeatable. The controllers have the
    /// same flag
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "cluster-gateway,tunnel-agent")]
    pub reserved_names: Vec<String>,
    /// URLs of this gateway. Karmada's API refuses a cluster at one of them, because its requests
    /// would return to the gateway; repeatable. The controllers have the same flag
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    pub own_endpoints: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KarmadaDialect {
    Off,
    Standalone,
    Beside,
}

// === impl Dialects ===

impl Dialects {
    /// What the gateway's own port serves.
    pub(super) fn served(&self) -> Served {
        let karmada = match self.karmada_dialect {
            KarmadaDialect::Off => KarmadaMode::Off,
            KarmadaDialect::Standalone => KarmadaMode::Standalone,
            KarmadaDialect::Beside => KarmadaMode::Beside,
        };
        Served::Gateway(api::route::Dialects { kcp: self.kcp_dialect, karmada })
    }

    /// The Karmada upstream, if the dialect needs it.
    pub(super) fn karmada_upstream(&self, wrong: &mut Vec<String>) -> Option<Options> {
        if self.karmada_dialect != KarmadaDialect::Beside {
            return None;
        }
        let files = (&self.karmada_upstream_ca_file, &self.karmada_upstream_cert_file, &self.karmada_upstream_key_file);
        let (Some(url), (Some(ca), Some(certificate), Some(private_key))) = (&self.karmada_upstream, files) else {
            wrong.push(
                "--karmada-dialect=beside needs --karmada-upstream, --karmada-upstream-ca-file, \
                 --karmada-upstream-cert-file and --karmada-upstream-key-file"
                    .to_owned(),
            );
            return None;
        };
        let url = Endpoint::parse(url, false).map_err(|error| wrong.push(format!("--karmada-upstream: {error}")));
        let (ca, certificate, private_key) = (ca.clone(), certificate.clone(), private_key.clone());
        Some(Options { url: url.ok()?, ca, certificate, private_key })
    }

    /// The flags of the upstream that were given.
    fn upstream_flags(&self) -> Vec<&'static str> {
        let given = [
            ("--karmada-upstream", self.karmada_upstream.is_some()),
            ("--karmada-upstream-ca-file", self.karmada_upstream_ca_file.is_some()),
            ("--karmada-upstream-cert-file", self.karmada_upstream_cert_file.is_some()),
            ("--karmada-upstream-key-file", self.karmada_upstream_key_file.is_some()),
        ];
        given.into_iter().filter_map(|(flag, is_given)| is_given.then_some(flag)).collect()
    }

    pub(super) fn forwarded(&self) -> Forwarded {
        if self.karmada_forward_all_groups { Forwarded::Everything } else { Forwarded::Permitted }
    }

    /// The names that new clusters may have.
    pub(super) fn cluster_names(&self) -> Template {
        Template::default().without(&self.reserved_names)
    }

    /// Where no new cluster may be.
    pub(super) fn own_endpoints(&self, wrong: &mut Vec<String>) -> Vec<Endpoint> {
        endpoints::own(self.own_endpoints.iter().map(|url| ("--own-endpoints", url)), wrong)
    }

    /// What the operator should know about what was given.
    pub(super) fn warnings(&self, hub: bool) -> Vec<String> {
        let is_on = self.karmada_dialect != KarmadaDialect::Off;
        let mut warnings = Vec::new();
        if is_on && !hub {
            warnings.push(
                "--karmada-dialect without a hub is for system:masters only: --standalone-policy grants nothing of \
                 cluster.karmada.io"
                    .to_owned(),
            );
        }
        if self.karmada_forward_all_groups && !is_on {
            warnings.push("--karmada-forward-all-groups has no effect without --karmada-dialect".to_owned());
        }
        if self.karmada_dialect != KarmadaDialect::Beside {
            let idle = |flag: &str| format!("{flag} has no effect without --karmada-dialect=beside");
            warnings.extend(self.upstream_flags().into_iter().map(idle));
        }
        warnings
    }
}
