//! The Lease: `managed-cluster-lease` in the cluster's namespace (`coordination.k8s.io/v1`).

use std::convert::Infallible;
use std::time::SystemTime;

use http::StatusCode;
use hub::Cause;
use net::random::sooner;
use serde_json::Value;
use time::OffsetDateTime;
use time::macros::format_description;
use tokio::time::timeout;

use super::{Keeping, Troubles};
use crate::joining::{JoinError, cluster};

/// Share of the interval by which renewals of the Lease, and reads of the cluster, may be earlier.
pub(super) const JITTER: f64 = 0.2;

// === impl Keeping ===

impl Keeping<'_> {
    /// Renews the Lease while the cluster is accepted.
    pub(super) async fn beat(&self) -> Infallible {
        let (mut lease, mut troubles) = (None, Troubles::default());
        let mut cluster = self.cluster.subscribe();
        loop {
            let pace = cluster::lease(&self.accepted(&mut cluster).await);
            let wait = match self.renew_lease(&mut lease).await {
                Ok(()) => {
                    troubles.over();
                    sooner(pace, JITTER)
                }
                // Just after an acceptance, the hub is still writing.
                Err(error) => troubles.failed(&JoinError::Hub { what: "renewing the Lease", error }).min(pace),
            };
            // The cluster may need shorter intervals, or no renewals any more.
            let changed =
                cluster.wait_for(|cluster| cluster.as_ref().is_none_or(|cluster| cluster::lease(cluster) < pace));
            let _ = timeout(wait, changed).await;
        }
    }

    /// Takes one request, unless another writer came in between. Agents may update their Lease, but
    /// not patch it.
    async fn renew_lease(&self, known: &mut Option<Value>) -> Result<(), Cause> {
        let (hub, namespace) = (self.hub(), &self.joining.cluster);
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/managed-cluster-lease");
        let mut is_known = known.is_some();
        loop {
            let mut lease = match known.take() {
                Some(lease) => lease,
                None => hub.get(&path).await?,
            };
            lease["spec"]["renewTime"] = micro_time().into();
            match hub.replace(&path, &lease).await {
                Ok(lease) => {
                    *known = Some(lease);
                    return Ok(());
                }
                Err(error) if is_known && (error.is(StatusCode::CONFLICT) || error.is(StatusCode::NOT_FOUND)) => {
                    is_known = false;
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// `metav1.MicroTime`: exactly six digits.
fn micro_time() -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    OffsetDateTime::from(SystemTime::now()).format(format).unwrap_or_default()
}
