//! Our gateway asked in another spelling than its own, or to be seen otherwise on the member.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::Result;
use hub_tests::ports;
use hub_tests::process::Process;

use super::{Access, Plan, gateway, karmada};
use crate::figure::Target;
use crate::testbed::Testbed;

/// As ours, but the member is asked as the caller, by impersonation.
pub const OURS_CALLER: Target = "ours, as the caller";
/// As [`OURS_CALLER`], on the path that Karmada's server has.
pub const OURS_KARMADA: Target = "ours, karmada path";
/// As ours, on the path that kcp's servers have.
pub const OURS_KCP: Target = "ours, kcp path";
/// As ours, on the port and the path of Open Cluster Management's user server.
pub const OURS_USER_SERVER: Target = "ours, user-server path";

/// Starts `program` as `target`, one of these.
pub fn start(testbed: &mut Testbed, plan: &Plan<'_>, program: &Path, target: Target) -> Result<(Process, Access)> {
    let cluster = plan.destination.cluster;
    let (flag, prefix, address) = match target {
        OURS_KARMADA => {
            karmada::allow_callers(&*testbed.hub()?)?;
            let prefix = format!("/apis/cluster.karmada.io/v1alpha1/clusters/{cluster}/proxy");
            ("--karmada-dialect=standalone".to_owned(), Some(prefix), None)
        }
        OURS_KCP => ("--kcp-dialect".to_owned(), Some(format!("/clusters/{cluster}")), None),
        OURS_USER_SERVER => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
            (format!("--ocm-user-server-listen={address}"), Some(format!("/{cluster}")), Some(address))
        }
        _ => ("--feature-gates=ClientIdentityPenetration=true".to_owned(), None, None),
    };
    let (process, access) = gateway::ours(testbed, plan, program, &[&flag])?;
    Ok((process, Access { prefix: prefix.unwrap_or(access.prefix), address, ..access }))
}
