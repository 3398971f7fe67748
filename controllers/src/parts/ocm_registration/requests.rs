//! Judges agents' certificate requests: recognizes them, and approves them or leaves them for a
//! person. None is ever denied.
//!
//! The watch keeps only metadata, and the worker reads each request when it comes up, so that ten
//! thousand requests at once are only ten thousand names.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec, SubjectAccessReviewStatus,
};
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{DynamicObject, PostParams};
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;
use register::csr::{self, CLUSTER_LABEL, Judgement, Recognized, Request, Requester};
use register::ocm::acceptance::Cluster;
use register::ocm::approvals::Approvals;
use register::ocm::condition::{self, HUB_ACCEPTED};
use register::ocm::standing::{self, AUTOMATIC_ANNOTATION, FirstJoin, Standing};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::admission::Admission;
use super::clusters::reference;
use super::corrections::Corrections;
use super::hub_calls::{CallError, LeaderClient, found, now_millis, now_text, value};
use super::rights::Rights;
use super::settled::{self, Settled};
use super::worker::{Failure, Tries, Worker};
use crate::events::{Events, Reason};
use crate::metrics::{Decision, Joining};
use crate::raw::{self, Meta, large, meta};

/// Upstream's reason, which scripts know.
const REASON: &str = "AutoApprovedByHubCSRApprovingController";
/// The rights that a yes gives may count only in a moment.
const UNTIL_RIGHTS: Duration = Duration::from_secs(1);
/// From the condition that says that all rights are there, until the hub must know them.
const RIGHTS_COUNT_AFTER: i64 = 10_000;
/// The policies may only just have been installed.
const UNTIL_ADMISSION: Duration = Duration::from_secs(5);
/// What says whether the cluster joined before may be what was left out.
const TOO_LARGE: &str = "the labels or annotations of its ManagedCluster are too large to be read";
/// Milliseconds. The agent makes its request and its `ManagedCluster` at the same time: the request
/// may come first, and is left for a person after that. Whenever the cluster comes, its requests
/// are judged again.
const NO_CLUSTER_AFTER: i64 = 10_000;

pub struct Requests {
    pub hub: LeaderClient,
    /// The requests: to read, where any field may be one that cannot be read, and to approve.
    pub all: Api<DynamicObject>,
    pub api: Api<CertificateSigningRequest>,
    pub clusters: Api<DynamicObject>,
    pub rights: Arc<Rights>,
    /// Secrets in the clusters' namespace.
    pub secrets: Api<Meta<Secret>>,
    pub admission: Arc<Admission>,
    /// `--ocm-auto-approve-users`.
    pub trusted: Vec<String>,
    pub events: Events,
    pub metrics: Joining,
    pub approvals: Mutex<Approvals>,
    pub started: Instant,
    pub settled: Settled,
    pub tries: Tries,
}

/// Result of judging a request.
enum Outcome {
    Decided(Decision, String),
    /// The request is judged again after this time.
    Later(Duration, Option<(Decision, String)>),
}

// === impl Requests ===

impl Worker for Requests {
    const KIND: &'static str = "CertificateSigningRequest";

    fn tries(&self) -> &Tries {
        &self.tries
    }

    async fn work(&self, object: &DynamicObject) -> Result<Action, Failure> {
        if self.settled.contains(object.metadata.uid.as_deref()) {
            return Ok(Action::await_change());
        }
        let name = object.name_any();
        let Some(read) = found(self.hub.read(meta::get_object(&self.all, &name)).await)? else {
            return Ok(Action::await_change());
        };
        if is_decided(&read.data) {
            if settled::is_final(&read.data) {
                self.settled.insert(read.metadata.uid);
            }
            return Ok(Action::await_change());
        }
        let is_agents = read.data["spec"]["username"].as_str().is_some_and(csr::is_agent);
        let outcome = match whole(read) {
            Ok(request) => self.judge(request).await?,
            Err(why) => Outcome::Decided(Decision::Unrecognized, unrecognized(why)),
        };
        let (action, told) = match outcome {
            Outcome::Decided(decision, why) => (Action::await_change(), Some((decision, why))),
            Outcome::Later(after, told) => (Action::requeue(after), told),
        };
        if let Some((decision, why)) = told {
            self.metrics.judged(decision);
            tracing::info!(request = name, decision = decision.as_str(), why, "certificate request reviewed");
            if let Some(reason) = event(decision) {
                self.events.publish_of(is_agents, reference(object), reason, why);
            }
        }
        Ok(action)
    }
}

impl Requests {
    async fn judge(&self, request: CertificateSigningRequest) -> Result<Outcome, CallError> {
        let recognized = match recognize(&request) {
            Ok(recognized) => recognized,
            Err(why) => return Ok(Outcome::Decided(Decision::Unrecognized, why)),
        };
        let cluster = self.cluster(&recognized.cluster).await?;
        let is_accepted = cluster.as_ref().is_some_and(|cluster| standing::of(cluster) == Standing::Accepted);
        let user = request.spec.username.clone().unwrap_or_default();
        match recognized.judge(Requester { user: &user, is_accepted, trusted: &self.trusted }) {
            Judgement::Renewal => self.renew(request, &recognized, &cluster.unwrap_or_default()).await,
            Judgement::FirstJoin => match cluster {
                Some(cluster) if large::is_marked(&cluster) => Ok(person(TOO_LARGE)),
                Some(cluster) => self.join(request, &recognized, cluster).await,
                None => Ok(match u64::try_from(NO_CLUSTER_AFTER - age(&request)) {
                    Ok(rest) if rest > 0 => Outcome::Later(Duration::from_millis(rest), None),
                    _ => person("its ManagedCluster does not exist"),
                }),
            },
            Judgement::Person => Ok(person(
                "it is neither an accepted cluster's own renewal, nor the first of a user in --ocm-auto-approve-users",
            )),
        }
    }

    /// As the hub has it at this moment.
    async fn cluster(&self, name: &str) -> Result<Option<Value>, CallError> {
        let cluster = found(self.hub.read(meta::get_object(&self.clusters, name)).await)?;
        Ok(cluster.map(|cluster| value(&cluster)))
    }

    async fn renew(
        &self,
        request: CertificateSigningRequest,
        agent: &Recognized,
        cluster: &Value,
    ) -> Result<Outcome, CallError> {
        let review = SubjectAccessReview { spec: review(&request.spec), ..SubjectAccessReview::default() };
        let api: Api<SubjectAccessReview> = Api::all(self.hub.client.clone());
        let answer = self.hub.read(api.create(&PostParams::default(), &review)).await?;
        if !answer.status.is_some_and(|status: SubjectAccessReviewStatus| status.allowed) {
            if was_just_accepted(cluster) {
                return Ok(Outcome::Later(UNTIL_RIGHTS, None));
            }
            return Ok(person(
                "the hub's RBAC does not allow the requester to renew managedclusters/clientcertificates of \
                 register.open-cluster-management.io",
            ));
        }
        // It may have been refused meanwhile.
        let cluster = self.cluster(&agent.cluster).await?.unwrap_or_default();
        self.approve(request, agent, (Decision::Renewed, &cluster)).await
    }

    async fn join(
        &self,
        request: CertificateSigningRequest,
        agent: &Recognized,
        cluster: Value,
    ) -> Result<Outcome, CallError> {
        let cluster = match standing::first_join(&cluster) {
            FirstJoin::Approve => cluster,
            FirstJoin::Person => {
                return Ok(person("the cluster joined before, or was denied: approve or deny the request by hand"));
            }
            FirstJoin::Accept => {
                if let Some(objection) = self.objection(&agent.cluster).await? {
                    return Ok(person(&objection));
                }
                if let Some(objection) = self.admission.objection(&agent.cluster).await {
                    return Ok(Outcome::Later(UNTIL_ADMISSION, Some((Decision::Person, objection))));
                }
                self.let_in(&agent.cluster, &cluster).await?
            }
        };
        self.approve(request, agent, (Decision::Joined, &cluster)).await
    }

    /// Why a cluster that no administrator has judged, by its own status, must not be accepted
    /// without a person.
    async fn objection(&self, cluster: &str) -> Result<Option<String>, CallError> {
        if let Err(bad) = standing::check_name(cluster, &self.rights.own_namespace) {
            return Ok(Some(bad.to_string()));
        }
        if self.rights.were_given(&Cluster { name: cluster, uid: "" }) {
            return Ok(Some("the cluster was accepted before: approve or deny the request by hand".to_owned()));
        }
        // Otherwise the requester would get the right to the tunnel of a cluster that joined in
        // another way.
        let registered = self.hub.read(self.secrets.get(cluster)).await;
        Ok(found(registered)?.map(|_| {
            "a cluster of that name is already registered in another way: approve or deny the request by hand"
                .to_owned()
        }))
    }

    /// Sets the acceptance once, of a cluster as it was read. Because of the version, a refusal
    /// meanwhile wins, and a cluster that is gone, or another of its name, is a conflict. Returns
    /// the cluster as it is then.
    async fn let_in(&self, name: &str, cluster: &Value) -> Result<Value, CallError> {
        let accepted = match self.set_accepted(name, cluster).await {
            // Mostly by the other queue, which writes a new cluster's set and taint at that time.
            Err(error) if error.is_conflict() => {
                let is_same = |fresh: &Value| fresh["metadata"]["uid"] == cluster["metadata"]["uid"];
                // Nothing was found out about another one, and none has no version to insist on.
                let Some(fresh) = self.cluster(name).await?.filter(is_same) else { return Err(error) };
                if large::is_marked(&fresh) || standing::first_join(&fresh) != FirstJoin::Accept {
                    return Ok(fresh);
                }
                self.set_accepted(name, &fresh).await?
            }
            written => written?,
        };
        tracing::info!(cluster = name, "accepted automatically: a user in --ocm-auto-approve-users requested it");
        Ok(accepted)
    }

    async fn set_accepted(&self, name: &str, cluster: &Value) -> Result<Value, CallError> {
        let change = json!({
            "metadata": {"resourceVersion": cluster["metadata"]["resourceVersion"],
                "annotations": {AUTOMATIC_ANNOTATION: now_text()}},
            "spec": {"hubAcceptsClient": true},
        });
        Corrections { hub: &self.hub, api: &self.clusters, name }.write_with(cluster, &change).await
    }

    /// Approves a request as judged, if its cluster, as the hub had it a moment ago, is accepted.
    async fn approve(
        &self,
        mut request: CertificateSigningRequest,
        agent: &Recognized,
        (decision, cluster): (Decision, &Value),
    ) -> Result<Outcome, CallError> {
        if standing::of(cluster) != Standing::Accepted {
            return Ok(person("the cluster is not accepted any more"));
        }
        if decision == Decision::Joined && large::is_marked(cluster) {
            return Ok(person(TOO_LARGE));
        }
        if decision == Decision::Joined && standing::first_join(cluster) == FirstJoin::Person {
            return Ok(person("an agent of the cluster joined meanwhile: approve or deny the request by hand"));
        }
        let taken = self.approvals.lock().take(&agent.cluster, decision == Decision::Renewed, self.started.elapsed());
        if let Err(wait) = taken {
            let why = "the cluster got ten certificates within ten minutes: this one waits".to_owned();
            return Ok(Outcome::Later(wait, Some((Decision::Paced, why))));
        }
        let now = Timestamp::now();
        let condition = CertificateSigningRequestCondition {
            type_: "Approved".to_owned(),
            status: "True".to_owned(),
            reason: Some(REASON.to_owned()),
            message: Some(format!("Approved for the agent {} of the cluster {}.", agent.agent, agent.cluster)),
            last_update_time: Some(Time(now)),
            last_transition_time: Some(Time(now)),
        };
        request.status.get_or_insert_default().conditions.get_or_insert_default().push(condition);
        let name = request.name_any();
        let parameters = PostParams::default();
        // With its version, so that a request that has changed is judged again.
        self.hub.write(self.api.replace_subresource("approval", &name, &parameters, &request)).await?;
        self.settled.insert(request.metadata.uid);
        Ok(Outcome::Decided(decision, format!("approved for the cluster {}", agent.cluster)))
    }
}

fn recognize(request: &CertificateSigningRequest) -> Result<Recognized, String> {
    let spec = &request.spec;
    let read = Request {
        signer: &spec.signer_name,
        label: request.labels().get(CLUSTER_LABEL).map(String::as_str),
        pem: &spec.request.0,
        usages: spec.usages.as_deref().unwrap_or_default(),
    };
    read.recognize().map_err(unrecognized)
}

fn unrecognized(why: impl Display) -> String {
    format!("not recognized as an agent's: {why}")
}

/// The complete requester as the hub authenticated it, because any part may give rights.
fn review(spec: &CertificateSigningRequestSpec) -> SubjectAccessReviewSpec {
    SubjectAccessReviewSpec {
        user: spec.username.clone(),
        uid: spec.uid.clone(),
        groups: spec.groups.clone(),
        extra: spec.extra.clone(),
        resource_attributes: Some(ResourceAttributes {
            group: Some("register.open-cluster-management.io".to_owned()),
            resource: Some("managedclusters".to_owned()),
            subresource: Some("clientcertificates".to_owned()),
            verb: Some("renew".to_owned()),
            ..ResourceAttributes::default()
        }),
        non_resource_attributes: None,
    }
}

/// Whether the rights of an agent of the cluster may be on their way to what decides at the hub. Of
/// an acceptance that is not carried out, its requests are judged again when it is.
fn was_just_accepted(cluster: &Value) -> bool {
    let accepted = condition::find(cluster, HUB_ACCEPTED).filter(|condition| condition["status"] == "True");
    let since = accepted.and_then(|condition| condition["lastTransitionTime"].as_str()?.parse::<Timestamp>().ok());
    since.is_some_and(|since| (0..RIGHTS_COUNT_AFTER).contains(&(now_millis() - since.as_millisecond())))
}

/// Whether a request with this `data` has a certificate or a condition, even one that cannot be
/// read: only the time of a decision is such.
fn is_decided(data: &Value) -> bool {
    let status = &data["status"];
    let conditions = &status["conditions"];
    !status["certificate"].is_null() || conditions.as_array().map_or(!conditions.is_null(), |all| !all.is_empty())
}

/// The request, if all of it can be read.
fn whole(read: DynamicObject) -> Result<CertificateSigningRequest, String> {
    match large::marked(&read) {
        Some(why) => Err(why),
        None => read.try_parse().map_err(|_| raw::missing(raw::CONTENTS)),
    }
}

/// Milliseconds since its creation.
fn age(request: &CertificateSigningRequest) -> i64 {
    let made = request.creation_timestamp().map_or(0, |time| time.0.as_millisecond());
    now_millis() - made
}

fn person(why: &str) -> Outcome {
    Outcome::Decided(Decision::Person, format!("left for a person: {why}"))
}

fn event(decision: Decision) -> Option<Reason> {
    match decision {
        Decision::Renewed | Decision::Joined => None,
        Decision::Unrecognized => Some(Reason::RequestNotRecognized),
        Decision::Person | Decision::Paced => Some(Reason::RequestNotApproved),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::RawObject;

    fn read(status: &str) -> DynamicObject {
        let text = format!(
            r#"{{"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {{"name": "r"}}, "spec": {{"request": "YQ==", "signerName": "s", "username": "u"}},
            "status": {status}}}"#
        );
        serde_json::from_str::<RawObject>(&text).unwrap().read()
    }

    /// A hub takes any time in a condition, and this program reads those until the year 9999.
    #[test]
    fn a_decided_request_is_left_alone_even_if_it_cannot_be_read() {
        let time = "9999-12-31T23:59:59Z";
        let late = format!(r#"{{"conditions": [{{"type": "Denied", "status": "True", "lastUpdateTime": "{time}"}}]}}"#);
        assert!(whole(read(&late)).is_err(), "else this tests nothing");
        for status in [&*late, r#"{"certificate": "YQ=="}"#, r#"{"conditions": "what cannot be read"}"#] {
            assert!(is_decided(&read(status).data), "{status}");
        }
        for status in ["{}", "null", r#"{"conditions": []}"#, r#"{"conditions": null}"#] {
            let read = read(status);
            assert!(!is_decided(&read.data), "{status}");
            assert_eq!(whole(read).unwrap().spec.signer_name, "s");
        }
    }

    #[test]
    fn a_request_of_which_something_is_missing_is_not_judged() {
        let mut cut = read("{}");
        large::mark(&mut cut.data, Some(raw::missing("labels")));
        assert!(whole(cut).unwrap_err().starts_with("its labels"));
        let mut odd = read("{}");
        odd.data["spec"]["usages"] = "this cannot be read: it is too deep".into();
        assert_eq!(whole(odd).unwrap_err(), "its contents cannot be read");
    }
}
