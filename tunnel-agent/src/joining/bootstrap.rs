//! Asks to join, with a bootstrap kubeconfig that may do nothing else.

use std::time::Duration;

use api::ocm_agent::OcmAgent;
use http::StatusCode;
use hub::Requests;
use hub::client::handed_over;
use net::backoff::Backoff;
use serde_json::Value;
use tokio::time::sleep;

use super::asking::{ask, check_outstanding, look, pending, take};
use super::dialer::HubWay;
use super::request::{Pending, Progress};
use super::{JoinError, Joining, cluster};

/// Interval between two reads of the request: an administrator may approve it in a moment or
/// tomorrow.
const LOOK: Backoff = Backoff { chance: 0.3, ..Backoff::doubling(Duration::from_secs(2), Duration::from_secs(15)) };

/// The hub, for a program that asks to join.
pub struct Bootstrap<'a> {
    joining: &'a Joining,
    hub: Requests,
    way: HubWay,
    /// The last logged text.
    said: String,
}

// === impl Bootstrap ===

impl<'a> Bootstrap<'a> {
    pub async fn new(joining: &'a Joining) -> Result<Self, JoinError> {
        let kubeconfig = joining.config.bootstrap.clone();
        handed_over(&kubeconfig)?;
        let way = HubWay::read(&kubeconfig).await?;
        Ok(Self { joining, hub: joining.requests(kubeconfig).await?, way, said: String::new() })
    }

    /// Completes when the state directory has a certificate.
    pub async fn join(mut self) -> Result<(), JoinError> {
        let cluster = &self.joining.cluster;
        let agent = OcmAgent { cluster: cluster.clone(), agent: self.joining.state.agent_name(cluster)? };
        self.announce().await?;
        let pending = pending(self.joining, &agent)?;
        // Before the request is sent to the hub: state that is only in the directory may be lost
        // with it.
        self.joining.save().await?;
        if look(self.joining, &self.hub, &pending).await?.is_none() {
            check_outstanding(&self.hub, cluster).await?;
            ask(&self.hub, &agent, &pending).await?;
        }
        let pem = self.wait(&pending).await?;
        take(self.joining, &pending, &pem, &agent, &self.way)?;
        Ok(())
    }

    /// Creates the `ManagedCluster`, if it does not exist.
    pub async fn announce(&self) -> Result<(), JoinError> {
        let Joining { cluster, config, .. } = self.joining;
        match self.hub.get(&cluster::path(cluster)).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is(StatusCode::NOT_FOUND) => {}
            Err(error) => return Err(JoinError::hub("reading the ManagedCluster")(error)),
        }
        let document = cluster::document(cluster, config.member_url.as_deref());
        match self.hub.create(cluster::CLUSTERS, &document).await {
            Ok(_) => tracing::info!(cluster, hub = self.way.address.url, "announced this cluster to the hub"),
            Err(error) if error.is(StatusCode::CONFLICT) => {}
            Err(error) => return Err(JoinError::hub("creating the ManagedCluster")(error)),
        }
        Ok(())
    }

    /// Waits for the certificate (PEM).
    async fn wait(&mut self, pending: &Pending) -> Result<Vec<u8>, JoinError> {
        let mut looks = 0;
        loop {
            let progress = look(self.joining, &self.hub, pending).await?.ok_or(JoinError::Gone)?;
            if let Progress::Issued(pem) = progress {
                return Ok(pem);
            }
            self.tell(pending, &progress).await;
            sleep(LOOK.wait(looks)).await;
            looks += 1;
            if self.joining.meant().await.is_some_and(|meant| meant.url() != self.way.url()) {
                self.joining.state.forget_request()?;
                return Err(JoinError::OtherHub);
            }
        }
    }

    /// Logs once which approval is missing.
    async fn tell(&mut self, pending: &Pending, progress: &Progress) {
        let name = &self.joining.cluster;
        let cluster = self.hub.get(&cluster::path(name)).await.ok();
        let missing = missing(name, cluster.as_ref(), &pending.name, progress);
        if missing != self.said && !missing.is_empty() {
            tracing::info!(cluster = name, missing, "waiting for an administrator of the hub");
        }
        self.said = missing;
    }
}

/// The missing steps of an administrator for cluster `name` and its `request`. For a cluster that
/// cannot be read, none are known.
fn missing(name: &str, cluster: Option<&Value>, request: &str, progress: &Progress) -> String {
    let certificate = match progress {
        Progress::Waiting => Some(format!("approve its certificate: kubectl certificate approve {request}")),
        Progress::Refused(why) => Some(format!(
            "its certificate request {request} was denied ({why}): delete it, and the agent creates another"
        )),
        Progress::Approved | Progress::Issued(_) => None,
    };
    let is_left_out = cluster.is_some_and(|cluster| !cluster::is_accepted(cluster));
    let acceptance = is_left_out.then(|| format!("accept it: {}", cluster::how_to_accept(name)));
    certificate.into_iter().chain(acceptance).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_yes_that_is_missing_is_told_with_its_command() {
        let approve = "approve its certificate: kubectl certificate approve c1-x";
        let accept =
            "accept it: kubectl patch managedcluster c1 --type=merge -p '{\"spec\":{\"hubAcceptsClient\":true}}'";
        let denied = "its certificate request c1-x was denied (who?): delete it, and the agent creates another";
        let (no, yes) = (json!({"spec": {"hubAcceptsClient": false}}), json!({"spec": {"hubAcceptsClient": true}}));
        let refused = || Progress::Refused("who?".to_owned());
        for (cluster, progress, told) in [
            (Some(&no), Progress::Waiting, format!("{approve}; {accept}")),
            (Some(&yes), Progress::Waiting, approve.to_owned()),
            (None, Progress::Waiting, approve.to_owned()),
            (Some(&no), Progress::Approved, accept.to_owned()),
            (Some(&yes), Progress::Approved, String::new()),
            (Some(&yes), refused(), denied.to_owned()),
            (Some(&no), refused(), format!("{denied}; {accept}")),
        ] {
            assert_eq!(missing("c1", cluster, "c1-x", &progress), told);
        }
    }
}
