//! One cluster: its member is probed when that is due, and what follows is written.

use std::collections::HashMap;
use std::time::Duration;

use api::cluster_name::ClusterName;
use fleet::Fleet;
use kube::api::DynamicObject;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt as _};
use net::backoff::Backoff;
use parking_lot::Mutex;
use register::ocm::availability::{self, Answers};
use register::ocm::condition::{self, Condition};
use register::ocm::taints;
use register::outcome::Outcome;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::metrics::{Judged, Metrics};
use crate::parts::hub::{CallError, Hub, now, now_text, value};
use crate::parts::probe;
use crate::parts::worker::{Failure, Tries, Worker};

/// Probes at a time of members that did not answer last time: others are not to wait for them.
pub const DOUBTFUL: usize = 8;
/// By how much probes are spread: those of a fleet do not stay together. And how soon a place is
/// asked for again.
const SPREAD: Backoff = Backoff { chance: 0.1, ..Backoff::doubling(Duration::from_secs(5), Duration::from_secs(5)) };

/// An answer counts for the fleet until so many further probes were due, and this after.
const LATELY: u32 = 2;
const LATE: Duration = Duration::from_secs(10);
/// Until a cluster is looked at again, whatever its period says.
const LONGEST: Duration = Duration::from_mins(5);

/// What is known of the clusters that are judged.
#[derive(Debug, Default)]
pub struct Known(Mutex<HashMap<String, Seen>>);

#[derive(Debug, Clone)]
struct Seen {
    answers: Answers,
    /// By both clocks. None: never.
    probed: Option<(Instant, i64)>,
    /// Of the time until the next probe, so much is waited for.
    share: f64,
    /// It answered: that counts until then.
    heard: Option<Instant>,
    /// The hub says that it is available.
    is_available: bool,
    /// It was silent while the way to it was rather at fault, and has not answered since.
    is_held: bool,
}

pub struct Judge {
    pub hub: Hub,
    pub api: Api<DynamicObject>,
    pub members: Fleet,
    pub metrics: Metrics,
    /// Another part of this program writes the taints.
    pub is_tainted_elsewhere: bool,
    pub known: Known,
    pub doubtful: Semaphore,
    pub tries: Tries,
}

// === impl Known ===

impl Known {
    fn get(&self, name: &str, cluster: &Value) -> Seen {
        let mut known = self.0.lock();
        let seen = known.entry(name.to_owned()).or_insert_with(|| Seen::begun(now()));
        seen.is_available = availability::is_available(cluster);
        seen.clone()
    }

    /// Nothing can be said of it.
    fn hold(&self, name: &str) {
        if let Some(seen) = self.0.lock().get_mut(name) {
            seen.answers = seen.answers.clone().held(now());
            seen.is_held = true;
        }
    }

    /// A probe ended so: what is known now.
    fn probed(&self, name: &str, before: Seen, outcome: Outcome, cluster: &Value) -> Seen {
        let share = SPREAD.some_of(Duration::from_secs(1)).as_secs_f64();
        let answers = before.answers.after(outcome, now());
        let counts = LATELY * availability::period(cluster) + LATE;
        let heard = answers.is_healthy().then(|| Instant::now() + counts);
        let is_held = before.is_held && heard.is_none();
        let seen = Seen { answers, probed: Some((Instant::now(), now())), share, heard, is_held, ..before };
        // It may be gone meanwhile.
        if let Some(known) = self.0.lock().get_mut(name) {
            *known = seen.clone();
        }
        seen
    }

    pub fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }

    /// Whether too few were heard lately for it to be the others who are at fault.
    fn is_doubtful(&self) -> bool {
        let (known, now) = (self.0.lock(), Instant::now());
        let available = || known.values().filter(|seen| seen.is_available);
        let heard = available().filter(|seen| seen.heard.is_some_and(|until| until > now)).count();
        availability::is_doubtful(heard, available().count(), known.len())
    }
}

// === impl Seen ===

impl Seen {
    fn begun(now: i64) -> Self {
        Self {
            answers: Answers::begun(now),
            probed: None,
            share: 1.0,
            heard: None,
            is_available: false,
            is_held: false,
        }
    }

    /// Until the next probe is due, by what the cluster says now: it may have another period since.
    fn left(&self, cluster: &Value) -> Duration {
        let Some((probed, at)) = self.probed else { return Duration::ZERO };
        let wait = self.answers.wait(cluster, at).mul_f64(self.share);
        (probed + wait).saturating_duration_since(Instant::now())
    }
}

// === impl Judge ===

impl Worker for Judge {
    const KIND: &'static str = "ManagedCluster";

    fn work(&self, object: &DynamicObject) -> impl Future<Output = Result<Action, Failure>> + Send {
        self.reconcile(object)
    }

    fn tries(&self) -> &Tries {
        &self.tries
    }
}

impl Judge {
    async fn reconcile(&self, object: &DynamicObject) -> Result<Action, Failure> {
        let (name, cluster) = (object.name_any(), value(object));
        // No other name can be registered.
        let member = ClusterName::parse(&name).ok().filter(|_| availability::is_judged(&cluster));
        let Some(member) = member else {
            self.forget(&name);
            return Ok(Action::await_change());
        };
        let (seen, is_probed, next) = self.look(&member, &cluster).await;
        // What was true a while ago is no reason to say now that a cluster is lost.
        let told = seen.answers.told(&cluster, now()).filter(|told| is_probed || told.status == "True");
        let is_loss = told.as_ref().is_some_and(|told| told.status != "True");
        let is_doubtful = is_loss && self.known.is_doubtful();
        // Until it answers, or is lost by itself.
        let is_held = is_doubtful || seen.is_held && !is_loss;
        let is_news = self.count(&name, &cluster, told.as_ref(), is_held);
        if is_held && is_news {
            tracing::warn!(
                cluster = name,
                "the member does not answer, and neither do most others: nothing is said of it, since the way to them \
                 is rather at fault; see the gateway's metrics, or move its workloads with a taint whose key is your own"
            );
        }
        if is_doubtful {
            self.known.hold(&name);
        }
        if !is_held {
            let cluster = self.tell(&name, cluster, told.as_slice()).await?;
            // One of which nothing is known yet is not tainted for that.
            if seen.answers.has_spoken() && condition::status(&cluster, condition::AVAILABLE).is_some() {
                self.taint(&name, &cluster).await?;
            }
        }
        Ok(Action::requeue(next.min(LONGEST)))
    }

    /// Probes the member if that is due. Returns what is known, whether it was probed, and when the
    /// next is due.
    async fn look(&self, member: &ClusterName, cluster: &Value) -> (Seen, bool, Duration) {
        let name = member.as_str();
        let seen = self.known.get(name, cluster);
        let left = seen.left(cluster);
        if !left.is_zero() {
            return (seen, false, left);
        }
        let _place = if seen.answers.is_away() {
            let Ok(place) = self.doubtful.try_acquire() else {
                return (seen, false, SPREAD.wait(0));
            };
            Some(place)
        } else {
            None
        };
        let outcome = probe::health(&self.members.client(member)).await;
        let seen = self.known.probed(name, seen, outcome, cluster);
        let left = seen.left(cluster);
        (seen, true, left)
    }

    fn count(&self, name: &str, cluster: &Value, told: Option<&Condition>, is_held: bool) -> bool {
        let status = told.map(|told| told.status).or_else(|| condition::status(cluster, condition::AVAILABLE));
        let state = match status {
            _ if is_held => Judged::Held,
            Some("True") => Judged::Available,
            Some("False") => Judged::NotReady,
            _ => Judged::Unreachable,
        };
        self.metrics.availability.put(name, state)
    }

    async fn tell(&self, name: &str, cluster: Value, told: &[Condition]) -> Result<Value, CallError> {
        let Some(all) = condition::changed(&cluster, told, &now_text()) else { return Ok(cluster) };
        let [Condition { status, reason, message, .. }, ..] = told else { return Ok(cluster) };
        let version = &cluster["metadata"]["resourceVersion"];
        let change = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": all}});
        let written = self.hub.merge_status(&self.api, name, &change).await?;
        tracing::info!(cluster = name, status, reason, message, "whether a cluster is available");
        Ok(value(&written))
    }

    async fn taint(&self, name: &str, cluster: &Value) -> Result<(), CallError> {
        if self.is_tainted_elsewhere {
            return Ok(());
        }
        let Some(taints) = taints::corrected(cluster, &now_text()) else { return Ok(()) };
        let version = &cluster["metadata"]["resourceVersion"];
        let change = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        self.hub.merge(&self.api, name, &change).await.map(drop)
    }

    /// Of a cluster that is gone, or that somebody else judges.
    pub fn forget(&self, name: &str) {
        self.known.forget(name);
        self.tries.forget("", name);
        self.metrics.availability.forget(name);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Method, Request, Response};
    use http_body_util::BodyExt as _;
    use kube::Client;
    use kube::client::Body;
    use prometheus_client::registry::Registry;
    use register::ocm::delivery::DELIVERY;
    use tower::service_fn;

    use super::*;
    use crate::parts::hub::managed_clusters as resource;

    /// Longer than the grace of the clusters below, in milliseconds.
    const LONG: i64 = 10_000;

    /// Path and body of each write.
    type Written = Arc<Mutex<Vec<(String, Value)>>>;

    /// A hub that takes what is written, whose gateway has no answer of the members called `away`.
    fn judge(away: &'static [&'static str]) -> (Judge, Written) {
        let written = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&written);
        let answer = move |request: Request<Body>| {
            let kept = Arc::clone(&kept);
            async move {
                let (path, method) = (request.uri().path().to_owned(), request.method().clone());
                if method == Method::PATCH {
                    let body = request.into_body().collect().await?.to_bytes();
                    let change: Value = serde_json::from_slice(&body).map_err(kube::Error::SerdeError)?;
                    kept.lock().push((path, change.clone()));
                    let written = json!({"apiVersion": "cluster.open-cluster-management.io/v1",
                        "kind": "ManagedCluster", "metadata": {"name": "c", "resourceVersion": "2"},
                        "status": change["status"]});
                    return Ok::<_, kube::Error>(Response::new(Body::from(written.to_string().into_bytes())));
                }
                let is_away = away.iter().any(|name| path.contains(&format!("/clustergateways/{name}/proxy")));
                let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 502,
                    "details": {"group": "cluster.core.oam.dev", "kind": "clustergateways",
                        "causes": [{"reason": "Member", "message": "refused"}]}});
                let (code, text) = if is_away { (502, status.to_string()) } else { (200, "ok".to_owned()) };
                let response = Response::builder().status(code).body(Body::from(text.into_bytes()));
                Ok(response.expect("a response"))
            }
        };
        let client = Client::new(service_fn(answer), "default");
        let judge = Judge {
            api: Api::all_with(client.clone(), &resource()),
            hub: Hub { client: client.clone(), may_write: Arc::new(|| Duration::MAX) },
            members: Fleet::new(client),
            metrics: Metrics::register(&mut Registry::default(), Arc::default()),
            is_tainted_elsewhere: false,
            known: Known::default(),
            doubtful: Semaphore::new(DOUBTFUL),
            tries: Tries::default(),
        };
        (judge, written)
    }

    fn cluster(name: &str) -> DynamicObject {
        let mut cluster = DynamicObject::new(name, &resource()).data(json!({"spec": {"leaseDurationSeconds": 1},
            "status": {"conditions": [{"type": condition::AVAILABLE, "status": "True", "reason": "MemberAnswers"}]}}));
        cluster.annotations_mut().insert(DELIVERY.to_owned(), "push".to_owned());
        cluster
    }

    /// Looks at all: those that are away have been so for long.
    async fn look(judge: &Judge, names: &[&str], away: &[&str]) {
        for name in names {
            let answers = Answers::begun(now() - LONG);
            let is_away = away.contains(name);
            let answers =
                if is_away { answers.after(Outcome::Unreachable("x".to_owned()), now() - LONG) } else { answers };
            let heard = (!is_away).then(|| Instant::now() + LATE);
            let seen = Seen { answers, heard, is_available: true, ..Seen::begun(now()) };
            judge.known.0.lock().insert((*name).to_owned(), seen);
        }
        for name in names {
            judge.reconcile(&cluster(name)).await.expect("it is looked at");
        }
    }

    #[tokio::test]
    async fn one_that_is_lost_is_told_and_tainted() {
        let (judge, written) = judge(&["a"]);
        look(&judge, &["a", "b", "c"], &["a"]).await;
        let written = written.lock();
        let paths: Vec<&str> = written.iter().filter_map(|(path, _)| path.rsplit_once("v1/")).map(|it| it.1).collect();
        assert_eq!(paths, ["managedclusters/a/status", "managedclusters/a"]);
        let told = &written[0].1["status"]["conditions"][0];
        assert_eq!((told["status"].as_str(), told["reason"].as_str()), (Some("Unknown"), Some("MemberUnreachable")));
        assert_eq!(written[1].1["spec"]["taints"][0]["key"], taints::UNREACHABLE);
    }

    #[tokio::test]
    async fn of_most_of_a_fleet_nothing_is_told() {
        let (judge, written) = judge(&["a", "b", "c"]);
        look(&judge, &["a", "b", "c", "d"], &["a", "b", "c"]).await;
        assert!(written.lock().is_empty(), "{:?}", written.lock());
    }

    #[tokio::test]
    async fn one_that_was_held_is_not_lost_when_the_way_to_others_is_back() {
        let (judge, written) = judge(&["a", "b", "c"]);
        look(&judge, &["a", "b", "c", "d"], &["a", "b", "c"]).await;
        for name in ["b", "c"] {
            judge.known.0.lock().get_mut(name).unwrap().heard = Some(Instant::now() + LATE);
        }
        judge.known.0.lock().get_mut("a").unwrap().probed = None;
        judge.reconcile(&cluster("a")).await.unwrap();
        assert!(written.lock().is_empty(), "it has all its time anew: {:?}", written.lock());
    }

    #[tokio::test]
    async fn one_that_is_held_counts_so_until_it_answers_and_keeps_its_taints() {
        let (judge, written) = judge(&["a", "b", "c"]);
        look(&judge, &["a", "b", "c", "d"], &["a", "b", "c"]).await;
        let again = |name: &str| judge.known.0.lock().get_mut(name).unwrap().probed = None;
        let by_hand = |name: &str| {
            let mut cluster = cluster(name);
            cluster.data["spec"]["taints"] = json!([{"key": taints::UNREACHABLE, "effect": "NoSelect"}]);
            cluster
        };
        again("a");
        judge.reconcile(&by_hand("a")).await.unwrap();
        assert!(written.lock().is_empty() && !judge.metrics.availability.put("a", Judged::Held), "it is held still");
        judge.known.0.lock().get_mut("d").unwrap().is_held = true;
        again("d");
        judge.reconcile(&by_hand("d")).await.unwrap();
        assert!(!written.lock().is_empty(), "it answers: no taint is right");
    }

    #[tokio::test]
    async fn one_of_which_nothing_is_known_is_not_tainted() {
        let (judge, written) = judge(&["a"]);
        let mut new = cluster("a");
        new.data["status"] = json!({});
        judge.reconcile(&new).await.unwrap();
        assert!(written.lock().is_empty(), "{:?}", written.lock());
    }

    #[tokio::test(start_paused = true)]
    async fn a_shorter_period_counts_at_once() {
        let (judge, _) = judge(&[]);
        let mut cluster = cluster("a");
        cluster.data["spec"]["leaseDurationSeconds"] = 60.into();
        let probed = || judge.known.0.lock()["a"].probed;
        judge.reconcile(&cluster).await.unwrap();
        let first = probed();
        tokio::time::advance(Duration::from_secs(5)).await;
        judge.reconcile(&cluster).await.unwrap();
        assert_eq!(probed(), first, "it is not due");
        cluster.data["spec"]["leaseDurationSeconds"] = 2.into();
        judge.reconcile(&cluster).await.unwrap();
        assert!(probed() > first, "it is probed after the minute that the cluster had before");
    }

    #[tokio::test]
    async fn who_has_an_agent_is_not_asked() {
        let (judge, written) = judge(&["a"]);
        let mut agents = cluster("a");
        agents.data["status"]["conditions"][0]["reason"] = "ManagedClusterAvailable".into();
        judge.reconcile(&agents).await.unwrap();
        assert!(written.lock().is_empty() && judge.known.0.lock().is_empty());
    }
}
