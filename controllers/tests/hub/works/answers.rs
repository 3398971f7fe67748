//! A member that answers as no API server should, through the gateway: an answer that concerns one
//! object is reported on it, an answer that concerns the whole member changes no status, and others
//! continue.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use hub_tests::hub::MemberSecret;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use kit::member::{FakeMember, MemberOptions, Recorded, Reply};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{GROUP, Place, WORKS, config_map, hash, said};
use crate::fixture::{SOON, condition};

const CLUSTER: &str = "works-scripted";
/// The path of the requests that the scripted member answers by the script: those that create a
/// Secret.
const SECRETS: &str = "/api/v1/namespaces/works-scripted/secrets";
const MAPS: &str = "/api/v1/namespaces/works-scripted/configmaps";
const APPLIED: &str = "/apis/work.open-cluster-management.io/v1/appliedmanifestworks";
/// Most requests for one object until its report is seen: a handful, and no loop.
const TRIES: usize = 8;

/// Answers that concern one object, and what its report contains.
const OF_OBJECT: [(&str, &str); 9] = [
    ("403", "no, it said"),
    ("409", "the member answered with a conflict each time"),
    ("413", "no, it said"),
    ("422", "no, it said"),
    ("429", "no, it said"),
    ("500", "no, it said"),
    ("503", "no, it said"),
    ("garbage", "not JSON"),
    ("hanging", "no answer within"),
];
/// Answers that concern the whole member.
const OF_MEMBER: [&str; 2] = ["401", "overload"];
/// `Retry-After` of an object whose webhook is overloaded, in seconds: longer than its test takes.
const OBJECT_RESTS: &str = "240";
/// `Retry-After` of an overloaded member.
const REST: Duration = Duration::from_secs(6);
const UNDER_WAY: Duration = Duration::from_secs(2);

/// The member's script: how it answers.
#[derive(Default)]
struct Script {
    answer: Mutex<&'static str>,
    /// Responses that never end.
    open: Mutex<Vec<kit::member::StreamSender>>,
}

pub fn of_all_kinds(testbed: &Testbed) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let member = runtime.block_on(FakeMember::start(MemberOptions::default()));
    let place = Place::start(testbed, "works-answered")?;
    let uid = testbed.hub.server.read("namespace kube-system")?["metadata"]["uid"].clone();
    let agent = format!("cluster-gateway-controllers-{}-{CLUSTER}", uid.as_str().context("no UID")?);
    let script = Arc::new(Script::default());
    let answers = Arc::clone(&script);
    member.on_any(move |request| answers.answer(request, &agent));
    place.register(CLUSTER)?;
    let secret = MemberSecret::with_token(&testbed.member.server, "any").at(&member.url()).trusting(member.authority());
    testbed.hub.register_member(CLUSTER, &secret)?;
    place.deliver_to(CLUSTER, Some("push"))?;
    for (answer, why) in OF_OBJECT {
        *script.answer.lock() = answer;
        put(&place, answer)?;
        let told = wait::until(&format!("{answer} to be told"), 3 * SOON, || {
            let work = place.read_in(CLUSTER, &work(answer))?;
            let manifests = &work["status"]["resourceStatus"]["manifests"];
            let [bad, good] = [0, 1].map(|ordinal| condition(&manifests[ordinal], "Applied").clone());
            ensure!(said(&good) == "True/AppliedManifestComplete", "{work}");
            ensure!(said(&bad) == "False/AppliedManifestFailed", "{work}");
            Ok(bad["message"].as_str().unwrap_or_default().to_owned())
        })?;
        ensure!(told.contains(why), "{answer}: {told}");
        let (tries, most) = (posts_of(&member, answer), if answer == "429" { 1 } else { TRIES });
        ensure!((1..=most).contains(&tries), "{answer}: {tries} requests");
        others_go_on(&place, answer)?;
        // Other works of the same member continue, too.
        place.work_in(CLUSTER, "beside", &[config_map(CLUSTER, answer, &json!({"a": answer}))], &json!({}))?;
        place.wait_in(CLUSTER, "beside", "Applied", "True/AppliedManifestWorkComplete")?;
    }
    for answer in OF_MEMBER {
        *script.answer.lock() = answer;
        let before = posts(&member);
        put(&place, answer)?;
        wait::until_true("that it is asked", 2 * SOON, || Ok(posts(&member) > before))?;
        others_go_on(&place, answer)?;
        let waiting = place.read_in(CLUSTER, &work(answer))?;
        ensure!(waiting["status"]["conditions"].is_null(), "{answer} is told of the work: {waiting}");
        let tries = posts(&member) - before;
        ensure!(tries <= TRIES, "{answer}: {tries} requests");
        // Once the member is fine again, the work is applied without an edit.
        *script.answer.lock() = "201";
        wait::until("that it is applied", 4 * SOON, || {
            let work = place.read_in(CLUSTER, &work(answer))?;
            let told = condition(&work["status"], "Applied");
            ensure!(said(told) == "True/AppliedManifestWorkComplete", "{}", work["status"]);
            Ok(())
        })?;
        if answer == "overload" {
            left_alone(&member, before)?;
        }
    }
    end(place)
}

/// After the first request that the member turned away, and those that were in flight then, no work
/// sends it anything for as long as it demands.
fn left_alone(member: &FakeMember, before: usize) -> Result<()> {
    let all = member.requests();
    let turned_away = all.iter().filter(|request| is_post(request)).nth(before).context("no request")?.at;
    // The lists before watches have their own pace.
    let is_list = |request: &&Recorded| [SECRETS, MAPS, APPLIED].contains(&request.path());
    let later = all.iter().filter(|request| request.at > turned_away + UNDER_WAY);
    let later = later.filter(|request| request.method != Method::GET || !is_list(request));
    let next = later.min_by_key(|request| request.at).context("no request")?;
    let (rested, what) = (next.at - turned_away, format!("{} {}", next.method, next.path()));
    ensure!(rested >= REST, "asked again after {rested:?}: {what}");
    Ok(())
}

fn is_post(request: &Recorded) -> bool {
    request.method == Method::POST && request.path() == SECRETS
}

fn work(answer: &str) -> String {
    format!("answer-{answer}")
}

/// Puts a work with a Secret that the member answers by the script, and a ConfigMap that it
/// accepts.
fn put(place: &Place<'_>, answer: &str) -> Result<()> {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": answer, "namespace": CLUSTER}});
    let map = config_map(CLUSTER, &format!("map-{answer}"), &json!({"a": "b"}));
    place.work_in(CLUSTER, &work(answer), &[secret, map], &json!({}))
}

/// A healthy member gets its works meanwhile.
fn others_go_on(place: &Place<'_>, answer: &str) -> Result<()> {
    let name = format!("beside-{answer}");
    place.work(&name, &[config_map(place.cluster, &name, &json!({"a": "b"}))], &json!({}))?;
    place.wait_applied(&name)
}

/// The number of requests to create a Secret.
fn posts(member: &FakeMember) -> usize {
    member.requests().iter().filter(|request| is_post(request)).count()
}

/// The same for the Secret of that name alone: the works before are tried again meanwhile, the
/// first time within five seconds.
fn posts_of(member: &FakeMember, name: &str) -> usize {
    let is_of_name = |request: &Recorded| {
        serde_json::from_slice::<Value>(&request.body()).is_ok_and(|secret| secret["metadata"]["name"] == name)
    };
    member.requests().iter().filter(|request| is_post(request) && is_of_name(request)).count()
}

/// Removes the works' finalizers: the member is no real server that could delete objects.
fn end(place: Place<'_>) -> Result<()> {
    place.deliver_to(CLUSTER, None)?;
    let works = OF_OBJECT.map(|(answer, _)| work(answer)).into_iter().chain(OF_MEMBER.map(work));
    for name in works.chain(["beside".to_owned()]) {
        let free = json!({"metadata": {"finalizers": null}});
        place.testbed.hub.server.patch(&format!("{WORKS} {name} -n {CLUSTER}"), &free)?;
        place.delete(&format!("{WORKS} {name} -n {CLUSTER}"))?;
    }
    place.delete(&format!("managedcluster {CLUSTER}"))?;
    let own: Vec<String> =
        OF_OBJECT.map(|(answer, _)| answer).iter().chain(&OF_MEMBER).map(|answer| format!("beside-{answer}")).collect();
    place.end(&own.iter().map(String::as_str).collect::<Vec<_>>())
}

// === impl Script ===

impl Script {
    fn answer(&self, request: &Recorded, agent: &str) -> Reply {
        let path = request.path();
        if let Some(name) = path.strip_prefix(&format!("{APPLIED}/")) {
            return Reply::json(200, &applied(name.trim_end_matches("/status"), agent));
        }
        match (&request.method, path) {
            (&Method::GET, "/version") => Reply::json(200, &json!({"major": "1", "minor": "35"})),
            (&Method::GET, "/apis") => {
                let version = json!({"groupVersion": format!("{GROUP}/v1"), "version": "v1"});
                Reply::json(200, &json!({"kind": "APIGroupList", "groups": [{"name": GROUP, "versions": [version]}]}))
            }
            (&Method::GET, "/api/v1") => Reply::json(200, &resources()),
            // Kinds that cannot be listed or watched are read from time to time.
            (&Method::GET, APPLIED | SECRETS | MAPS) => Reply::json(403, &status(403, "no lists")),
            (&Method::POST, SECRETS) => self.scripted(),
            (&Method::POST, MAPS) => Reply::json(201, &object("ConfigMap", "map")),
            _ => Reply::json(404, &status(404, "not found")),
        }
    }

    /// The answer to the creation of a Secret.
    fn scripted(&self) -> Reply {
        let answer = *self.answer.lock();
        match answer {
            "201" => Reply::json(201, &object("Secret", "any")),
            "503" => Reply::full(503, &[("content-type", "text/plain")], "no, it said"),
            // As a webhook answers.
            "429" => {
                let headers = [("content-type", "application/json"), ("retry-after", OBJECT_RESTS)];
                Reply::full(429, &headers, status(429, "no, it said").to_string())
            }
            // As an overloaded API server answers.
            "overload" => {
                let rest = REST.as_secs().to_string();
                Reply::full(429, &[("content-type", "text/plain"), ("retry-after", &rest)], "Too many requests")
            }
            "garbage" => Reply::full(201, &[("content-type", "application/json")], "{\"kind\": \u{0}\u{1}["),
            "hanging" => {
                let (sender, reply) = Reply::stream(201, &[("content-type", "application/json")]);
                sender.try_send("{\"kind\": \"Secret\", ");
                self.open.lock().push(sender);
                reply
            }
            code => {
                let code: u16 = code.parse().unwrap_or(500);
                Reply::json(code, &status(code, "no, it said"))
            }
        }
    }
}

/// The `AppliedManifestWork` as the part would have created it.
fn applied(name: &str, agent: &str) -> Value {
    let work = name.strip_prefix(&format!("{}-", hash())).unwrap_or_default();
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "AppliedManifestWork",
        "metadata": {"name": name, "uid": "u", "resourceVersion": "1",
            "finalizers": ["cluster.open-cluster-management.io/applied-manifest-work-cleanup"]},
        "spec": {"hubHash": hash(), "agentID": agent, "manifestWorkName": work}})
}

fn object(kind: &str, name: &str) -> Value {
    let owner = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "AppliedManifestWork", "name": "x", "uid": "u"});
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": CLUSTER, "uid": "o",
        "resourceVersion": "1", "ownerReferences": [owner]}})
}

fn resources() -> Value {
    let of = |name: &str, kind: &str| json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": ["get"]});
    json!({"kind": "APIResourceList", "groupVersion": "v1",
        "resources": [of("secrets", "Secret"), of("configmaps", "ConfigMap")]})
}

fn status(code: u16, message: &str) -> Value {
    let reason = match code {
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "AlreadyExists",
        413 => "RequestEntityTooLarge",
        422 => "Invalid",
        429 => "TooManyRequests",
        _ => "InternalError",
    };
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": message, "details": {"name": "any", "kind": "objects"}})
}
