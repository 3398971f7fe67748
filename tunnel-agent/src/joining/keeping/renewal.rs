//! Gets the next certificate before this one expires.

use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use api::hub_status::HubStatus;
use hub::Cause;
use tokio::time::sleep;

use super::{Keeping, LONGEST_SLEEP, STEP, Troubles};
use crate::joining::asking::{ask, look, pending, take};
use crate::joining::request::{Progress, quoted};
use crate::joining::state::KUBECONFIG;
use crate::joining::{JoinError, certificate::Certificate};

/// The result of a step.
enum Step {
    /// The hub has not answered the request yet.
    Asked,
    /// A person denied the request, or the hub cannot sign it; with the reason given.
    Refused(String),
    Renewed(Certificate),
}

// === impl Keeping ===

impl Keeping<'_> {
    pub(super) async fn renew(&self) -> Infallible {
        let mut renewal = self.certificate().renewal();
        let (mut troubles, mut steps) = (Troubles::default(), 0);
        loop {
            let left = renewal.duration_since(SystemTime::now()).unwrap_or_default();
            if left > Duration::ZERO {
                sleep(left.min(LONGEST_SLEEP)).await;
                continue;
            }
            let wait = match self.step().await {
                Ok(Step::Renewed(certificate)) => {
                    (renewal, steps) = (certificate.next_renewal(SystemTime::now()), 0);
                    troubles.over();
                    self.joining.refused(None);
                    tracing::info!("the certificate of this cluster was renewed");
                    continue;
                }
                Ok(Step::Asked) => {
                    troubles.over();
                    self.joining.refused(None);
                    steps += 1;
                    STEP.wait(steps - 1)
                }
                Ok(Step::Refused(why)) => {
                    let until = self.certificate().ends();
                    self.joining.refused(Some(format!(
                        "the hub refuses to renew this cluster's certificate ({why}): it is valid until {until}; delete \
                         the certificate request on the hub, and the agent creates another"
                    )));
                    LONGEST_SLEEP
                }
                // The next request may get an equally useless certificate.
                Err(error @ JoinError::Useless(_)) => troubles.failed(&error).max(LONGEST_SLEEP),
                Err(error) => {
                    if let JoinError::Hub { error: Cause::Status(HubStatus { code: 403 | 404, .. }), .. } = &error {
                        self.joining.refused(Some(self.refusal(&error)));
                    }
                    troubles.failed(&error)
                }
            };
            sleep(wait).await;
        }
    }

    /// The complaint about a hub that refuses to create or read a request.
    fn refusal(&self, error: &JoinError) -> String {
        let until = self.certificate().ends();
        let error = quoted(&error.to_string());
        format!("{error}: this cluster's certificate is good until {until}; accept the cluster on the hub")
    }

    /// One step towards the next certificate.
    async fn step(&self) -> Result<Step, JoinError> {
        let (joining, hub, agent) = (self.joining, self.hub(), self.certificate().agent);
        let pending = pending(joining, &agent)?;
        match look(joining, &hub, &pending).await? {
            Some(Progress::Issued(pem)) => {
                let _changing = self.changing.lock().await;
                let way = self.joined.lock().way.clone();
                let certificate = take(joining, &pending, &pem, &agent, &way)?;
                let hub = joining.requests(joining.state.path(KUBECONFIG)).await?;
                let mut joined = self.joined.lock();
                (joined.hub, joined.certificate) = (hub, certificate.clone());
                Ok(Step::Renewed(certificate))
            }
            Some(Progress::Refused(why)) => Ok(Step::Refused(why)),
            Some(Progress::Waiting | Progress::Approved) => Ok(Step::Asked),
            None => {
                ask(&hub, &agent, &pending).await?;
                Ok(Step::Asked)
            }
        }
    }
}
