//! Flags of the spellings in which members can be asked for, beside our own.

use std::net::SocketAddr;

use api::route::Served;
use clap::Args as Group;

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
}

// === impl Dialects ===

impl Dialects {
    /// What the gateway's own port serves.
    pub(super) fn served(&self) -> Served {
        Served::Gateway(api::route::Dialects { kcp: self.kcp_dialect })
    }
}
