//! Asking to join, with a bootstrap kubeconfig that may do nothing else.

use std::time::Duration;

use api::ocm_agent::{CLUSTER_LABEL, OcmAgent};
use http::StatusCode;
use hub::client::{Address, address, handed_over};
use hub::{RequestError, Requests};
use net::backoff::Backoff;
use tokio::time::sleep;

use super::request::{self, MOST_OUTSTANDING, Pending, Progress, REQUESTS};
use super::{JoinError, Joining, certificate, cluster};

/// Between two looks at the request: somebody has just approved it, or will tomorrow.
const LOOK: Backoff = Backoff { chance: 0.3, ..Backoff::doubling(Duration::from_secs(2), Duration::from_secs(15)) };

/// The hub as somebody sees it who asks to join.
pub struct Bootstrap<'a> {
    joining: &'a Joining,
    hub: Requests,
    address: Address,
    /// What the log was told last.
    said: String,
}

// === impl Bootstrap ===

impl<'a> Bootstrap<'a> {
    pub async fn new(joining: &'a Joining) -> Result<Self, JoinError> {
        let kubeconfig = joining.config.bootstrap.clone();
        handed_over(&kubeconfig)?;
        let address = address(Some(&kubeconfig)).await?;
        Ok(Self { joining, hub: joining.requests(kubeconfig).await?, address, said: String::new() })
    }

    /// Completes when there is a certificate in the state directory.
    pub async fn join(mut self) -> Result<(), JoinError> {
        let cluster = &self.joining.cluster;
        let agent = OcmAgent { cluster: cluster.clone(), agent: self.joining.state.agent_name(cluster)? };
        self.announce().await?;
        let pending = if let Some(pending) = self.joining.state.request()? {
            pending
        } else {
            outstanding(&self.hub, cluster).await?;
            ask(self.joining, &self.hub, &agent).await?
        };
        self.joining.save().await?;
        let pem = self.wait(&pending).await?;
        take(self.joining, &pending, &pem, &agent, &self.address)
    }

    async fn announce(&self) -> Result<(), JoinError> {
        let Joining { cluster, config, .. } = self.joining;
        match self.hub.get(&format!("{}/{cluster}", cluster::CLUSTERS)).await {
            Ok(_) => return Ok(()),
            Err(error) if error.is(StatusCode::NOT_FOUND) => {}
            Err(error) => return Err(JoinError::hub("reading the ManagedCluster")(error)),
        }
        let document = cluster::document(cluster, config.member_url.as_deref());
        match self.hub.create(cluster::CLUSTERS, &document).await {
            Ok(_) => tracing::info!(cluster, hub = self.address.url, "announced this cluster to the hub"),
            Err(error) if error.is(StatusCode::CONFLICT) => {}
            Err(error) => return Err(JoinError::hub("creating the ManagedCluster")(error)),
        }
        Ok(())
    }

    /// The certificate, PEM.
    async fn wait(&mut self, pending: &Pending) -> Result<Vec<u8>, JoinError> {
        let mut looks = 0;
        loop {
            let progress = look(self.joining, &self.hub, pending).await?;
            if let Progress::Issued(pem) = progress {
                return Ok(pem);
            }
            self.tell(pending, &progress).await;
            sleep(LOOK.wait(looks)).await;
            looks += 1;
            let meant = address(Some(&self.joining.config.bootstrap)).await;
            if meant.is_ok_and(|meant| meant.url != self.address.url) {
                self.joining.state.forget_request()?;
                return Err(JoinError::OtherHub);
            }
        }
    }

    /// Which yes is missing, once.
    async fn tell(&mut self, pending: &Pending, progress: &Progress) {
        let name = &self.joining.cluster;
        let cluster = self.hub.get(&format!("{}/{name}", cluster::CLUSTERS)).await.ok();
        let mut missing = Vec::new();
        match progress {
            Progress::Waiting => {
                missing.push(format!("approve its certificate: kubectl certificate approve {}", pending.name));
            }
            Progress::Refused(why) => missing.push(format!(
                "its certificate request {} was denied ({why}): delete that, and another one is made",
                pending.name
            )),
            Progress::Approved | Progress::Issued(_) => {}
        }
        if cluster.is_some_and(|cluster| !cluster::is_accepted(&cluster)) {
            missing.push(format!("accept it: {}", cluster::how_to_accept(name)));
        }
        let missing = missing.join("; ");
        if missing != self.said && !missing.is_empty() {
            tracing::info!(cluster = name, missing, "waiting for an administrator of the hub");
        }
        self.said = missing;
    }
}

/// Whether there may be one more. Anybody may label requests with this cluster's name: of those
/// that renew, which are approved at once, none waits for others.
async fn outstanding(hub: &Requests, cluster: &str) -> Result<(), JoinError> {
    let own = format!("{REQUESTS}?labelSelector={CLUSTER_LABEL}%3D{cluster}");
    let known = hub.get(&own).await.map_err(JoinError::hub("listing certificate requests"))?;
    let outstanding = request::outstanding(&known);
    if outstanding >= MOST_OUTSTANDING { Err(JoinError::Outstanding(outstanding)) } else { Ok(()) }
}

/// Makes a request for a new key, and remembers it.
pub async fn ask(joining: &Joining, hub: &Requests, agent: &OcmAgent) -> Result<Pending, JoinError> {
    let key = request::new_key()?;
    let document = request::document(agent, &key)?;
    let made = hub.create(REQUESTS, &document).await.map_err(JoinError::hub("creating a certificate request"))?;
    // Without one, all requests would be looked at in its place.
    let name = made["metadata"]["name"].as_str().filter(|name| !name.is_empty()).ok_or(JoinError::Gone)?.to_owned();
    let pending = Pending { name, key };
    joining.state.remember_request(&pending)?;
    tracing::info!(request = pending.name, "asked the hub for a certificate");
    Ok(pending)
}

/// What has become of a request. One that is no longer there is forgotten.
pub async fn look(joining: &Joining, hub: &Requests, pending: &Pending) -> Result<Progress, JoinError> {
    match hub.get(&format!("{REQUESTS}/{}", pending.name)).await {
        Ok(request) => Ok(Progress::of(&request)),
        Err(error) if error.is(StatusCode::NOT_FOUND) => {
            joining.state.forget_request()?;
            Err(JoinError::Gone)
        }
        Err(error) => Err(JoinError::hub("reading the certificate request")(error)),
    }
}

/// Takes a certificate over, if it is for this key and this agent. One that is not is forgotten.
pub fn take(
    joining: &Joining,
    pending: &Pending,
    pem: &[u8],
    agent: &OcmAgent,
    hub: &Address,
) -> Result<(), JoinError> {
    let certificate = certificate::Certificate::parse(pem).ok();
    let key = request::public_key(&pending.key);
    let fits = certificate.is_some_and(|issued| issued.agent == *agent && key == Some(issued.public_key));
    if !fits {
        joining.state.forget_request()?;
        return Err(JoinError::Useless);
    }
    Ok(joining.state.take(pending, pem, hub)?)
}

// === impl JoinError ===

impl JoinError {
    fn hub(what: &'static str) -> impl FnOnce(RequestError) -> Self {
        move |error| Self::Hub { what, error }
    }
}
