//! Programs that are given by flag.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use harness::program::Given;

use crate::tool::Absent;

/// Programs that no package manager brings; without them their targets are skipped.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Programs {
    /// The Go cluster-gateway's API server (oam-dev/cluster-gateway)
    #[arg(long, global = true, value_name = "PATH", env = "BENCH_GO_GATEWAY")]
    pub go_gateway: Option<PathBuf>,
    /// Karmada's aggregated API server
    #[arg(long, global = true, value_name = "PATH", env = "BENCH_KARMADA")]
    pub karmada: Option<PathBuf>,
    /// konnectivity's proxy-server
    #[arg(long, global = true, value_name = "PATH", env = "BENCH_ANP_SERVER")]
    pub anp_server: Option<PathBuf>,
    /// konnectivity's proxy-agent
    #[arg(long, global = true, value_name = "PATH", env = "BENCH_ANP_AGENT")]
    pub anp_agent: Option<PathBuf>,
    /// Open Cluster Management's scheduler
    #[arg(long, global = true, value_name = "PATH", env = "BENCH_OCM_PLACEMENT")]
    pub ocm_placement: Option<PathBuf>,
    /// The program that times Open Cluster Management's choices (tests/hub/tools/ocm-schedule)
    #[arg(long, global = true, value_name = "PATH", env = "BENCH_OCM_SCHEDULE")]
    pub ocm_schedule: Option<PathBuf>,
    /// Open Cluster Management's registration controllers
    #[arg(long, global = true, value_name = "PATH", env = "BENCH_OCM_REGISTRATION")]
    pub ocm_registration: Option<PathBuf>,
    /// Ours.
    #[command(flatten)]
    pub ours: Given,
    /// Directory of an earlier tunnel-server and tunnel-agent, as another target
    #[arg(long, global = true, value_name = "DIRECTORY")]
    pub baseline_tunnel: Option<PathBuf>,
    /// An earlier gateway, as another target
    #[arg(long, global = true, value_name = "PATH")]
    pub baseline: Option<PathBuf>,
}

/// The program at `path`, absolute.
/// # Errors
/// [`Absent`], naming the `program` and its `flag`, if it was not given.
pub fn program(path: Option<&PathBuf>, program: &str, flag: &str) -> Result<PathBuf> {
    let path = path.ok_or_else(|| Absent::new(program, flag))?;
    path.canonicalize().with_context(|| format!("cannot find {}", path.display()))
}
