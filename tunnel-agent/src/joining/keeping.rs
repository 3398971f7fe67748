//! What an agent with a certificate owes its hub: a Lease that is renewed, a status that is told,
//! and the next certificate before this one ends.

use std::time::{Duration, SystemTime};

use http::StatusCode;
use hub::client::address;
use hub::{RequestError, Requests};
use net::backoff::Backoff;
use net::follow::Complaints;
use net::random::fraction;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use tokio::time::{Instant, sleep_until};

use super::bootstrap::{ask, look, take};
use super::request::Progress;
use super::standing::Standing;
use super::status::{self, Facts};
use super::{JoinError, Joined, Joining, KUBECONFIG, cluster, member};

/// While the hub has not accepted the cluster.
const WAITING: Duration = Duration::from_secs(5);
/// Share of the interval by which renewals of the Lease differ.
const JITTER: f64 = 0.2;
/// Between two steps of a renewal, and after a look at the hub at which not all could be done.
const STEP: Backoff = Backoff { chance: 0.3, ..Backoff::doubling(Duration::from_secs(2), Duration::from_mins(1)) };
/// For the clock to be looked at: it may have been set.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);

/// See the module.
pub struct Keeping<'a> {
    joining: &'a Joining,
    member: Option<&'a Requests>,
    joined: Joined,
    /// When the next certificate is asked for.
    renewal: SystemTime,
    /// Steps of the renewal under way.
    steps: u32,
    /// Looks in a row at which not all could be done.
    failures: u32,
    /// The Lease as it was answered last.
    lease: Option<Value>,
    complaints: [Complaints; 3],
}

// === impl Keeping ===

impl<'a> Keeping<'a> {
    pub fn new(joining: &'a Joining, member: Option<&'a Requests>, joined: Joined) -> Self {
        let renewal = joined.certificate.renewal();
        Self { joining, member, joined, renewal, steps: 0, failures: 0, lease: None, complaints: Default::default() }
    }

    /// Until the cluster has to join anew: the certificate has expired, or another hub is meant.
    pub async fn run(mut self) {
        let (mut beat, mut step) = (Instant::now(), Instant::now());
        loop {
            if self.joined.certificate.is_over_at(SystemTime::now()) || self.is_elsewhere().await {
                return;
            }
            if let Err(error) = self.joining.save().await {
                self.complain(2, &error);
            }
            if beat <= Instant::now() {
                beat = Instant::now() + jittered(self.beat().await);
            }
            if self.renewal <= SystemTime::now() && step <= Instant::now() {
                self.renew().await;
                step = Instant::now() + STEP.wait(self.steps);
            }
            let left = self.renewal.duration_since(SystemTime::now()).ok();
            let renewal = left.map_or(step, |left| Instant::now() + left.min(LONGEST_SLEEP));
            sleep_until(beat.min(renewal)).await;
        }
    }

    async fn is_elsewhere(&self) -> bool {
        let meant = address(Some(&self.joining.config.bootstrap)).await;
        meant.is_ok_and(|meant| meant.url != self.joined.address.url)
    }

    /// Looks whether the cluster is accepted, and does what is due if it is. Returns when to look
    /// again.
    async fn beat(&mut self) -> Duration {
        let path = format!("{}/{}", cluster::CLUSTERS, self.joining.cluster);
        let (standing, cluster) = match self.joined.hub.get(&path).await {
            Ok(cluster) if cluster::is_accepted(&cluster) => (Standing::Accepted, cluster),
            // It may look at itself from the first acceptance on.
            Ok(_) | Err(RequestError::Answer { code: 403 | 404, .. }) => (Standing::Denied, Value::Null),
            Err(error) => {
                self.complain(0, &JoinError::Hub { what: "reading the ManagedCluster", error });
                (Standing::Silent, Value::Null)
            }
        };
        self.say(standing);
        match standing {
            Standing::Accepted => {}
            Standing::Silent => return self.soon(),
            _ => return WAITING,
        }
        self.complaints[0].clear();
        let (lease, told) = (self.renew_lease().await, self.tell(&cluster, &path).await);
        let failed = |what| move |error| JoinError::Hub { what, error };
        match lease.map_err(failed("renewing the Lease")).and(told.map_err(failed("writing the status"))) {
            Ok(true) => {
                self.failures = 0;
                self.complaints[1].clear();
                cluster::lease(&cluster)
            }
            Ok(false) => self.soon().min(cluster::lease(&cluster)),
            Err(error) => {
                self.complain(1, &error);
                self.soon().min(cluster::lease(&cluster))
            }
        }
    }

    /// After a look at which not all could be done. Just after a yes, the hub is still writing.
    fn soon(&mut self) -> Duration {
        self.failures += 1;
        STEP.wait(self.failures - 1)
    }

    fn say(&self, standing: Standing) {
        let joining = self.joining;
        let before = joining.told.say(standing);
        joining.metrics.accepted.set((standing == Standing::Accepted).into());
        match standing {
            Standing::Accepted if !matches!(before, Standing::Accepted | Standing::Silent) => {
                tracing::info!(cluster = joining.cluster, "the hub has accepted this cluster");
                // What was refused until then.
                joining.credentials.try_again();
            }
            Standing::Denied if before != Standing::Denied => {
                let missing = cluster::how_to_accept(&joining.cluster);
                tracing::warn!(cluster = joining.cluster, missing, "the hub does not accept this cluster");
            }
            _ => {}
        }
    }

    /// One request, unless somebody else wrote it meanwhile: agents may update their Lease, and not
    /// patch it.
    async fn renew_lease(&mut self) -> Result<(), RequestError> {
        let namespace = &self.joining.cluster;
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/managed-cluster-lease");
        let known = self.lease.take();
        let is_known = known.is_some();
        let mut lease = match known {
            Some(lease) => lease,
            None => self.joined.hub.get(&path).await?,
        };
        lease["spec"]["renewTime"] = micro_time().into();
        match self.joined.hub.replace(&path, &lease).await {
            Ok(lease) => self.lease = Some(lease),
            Err(error) if is_known && (error.is(StatusCode::CONFLICT) || error.is(StatusCode::NOT_FOUND)) => {
                let mut lease = self.joined.hub.get(&path).await?;
                lease["spec"]["renewTime"] = micro_time().into();
                self.lease = Some(self.joined.hub.replace(&path, &lease).await?);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// False if somebody else has written meanwhile: their status is looked at first.
    async fn tell(&self, cluster: &Value, path: &str) -> Result<bool, RequestError> {
        let facts = match self.member {
            Some(member) => member::facts(member).await,
            // Whether it answers at all is known without a credential.
            None if self.joining.metrics.api_server_up.get() == 1 => {
                Facts { unavailable: Some(String::new()), ..Facts::default() }
            }
            None => Facts { unavailable: Some("the kube-apiserver does not answer".to_owned()), ..Facts::default() },
        };
        let now = OffsetDateTime::from(SystemTime::now()).replace_nanosecond(0).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let now = now.format(&Rfc3339).unwrap_or_default();
        let Some(patch) = status::patch(cluster, &facts, &now) else { return Ok(true) };
        match self.joined.hub.merge(&format!("{path}/status"), &patch).await {
            Ok(_) => Ok(true),
            Err(error) if error.is(StatusCode::CONFLICT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// One step towards the next certificate.
    async fn renew(&mut self) {
        self.steps += 1;
        match self.step().await {
            Ok(false) => {}
            Ok(true) => {
                self.steps = 0;
                self.complaints[0].clear();
            }
            Err(error) => self.complain(0, &error),
        }
    }

    /// Whether there is a new certificate.
    async fn step(&mut self) -> Result<bool, JoinError> {
        let (joining, agent) = (self.joining, self.joined.certificate.agent.clone());
        let pending = match joining.state.request()? {
            Some(pending) => pending,
            None => ask(joining, &self.joined.hub, &agent).await?,
        };
        let Progress::Issued(pem) = look(joining, &self.joined.hub, &pending).await? else { return Ok(false) };
        take(joining, &pending, &pem, &agent, &self.joined.address)?;
        let certificate = joining.state.certificate(&joining.cluster)?.ok_or(JoinError::Useless)?;
        self.joined.hub = joining.requests(joining.state.path(KUBECONFIG)).await?;
        self.renewal = certificate.renewal();
        self.joined.certificate = certificate;
        tracing::info!("the certificate of this cluster was renewed");
        Ok(true)
    }

    fn complain(&mut self, about: usize, error: &JoinError) {
        if let Some(reason) = self.complaints[about].new_cause(error) {
            tracing::warn!(reason, "not done, trying again");
        }
    }
}

fn jittered(interval: Duration) -> Duration {
    interval.mul_f64(1.0 - JITTER * fraction())
}

/// `metav1.MicroTime`: six digits, no more and no less.
fn micro_time() -> String {
    let format = format_description!("[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z");
    OffsetDateTime::from(SystemTime::now()).format(format).unwrap_or_default()
}
