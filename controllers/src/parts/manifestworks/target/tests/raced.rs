//! Others write an object between two of our requests.

use delivery::manifests::{self, Lookup, Resource};
use delivery::work::ManifestWorkSpec;
use http::Method;
use parking_lot::Mutex;
use serde_json::Value;

use super::*;
use crate::calls::MANAGER;
use crate::parts::manifestworks::contest::{By, Contest};
use crate::parts::manifestworks::object::{Outcome, Remembered, Setting, settle};

const PATH: &str = "/apis/x.io/v1/things/a";
const LIST: &str = "/apis/x.io/v1/things";

type Meddling = Box<dyn FnOnce(&mut Option<Value>) + Send>;
/// A change that gets the number of writes so far.
type Restless = Box<dyn Fn(usize, &mut Value) + Send>;

/// A member with one object.
#[derive(Clone, Default)]
struct One(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    object: Option<Value>,
    version: u32,
    /// A change by another client before the next write.
    meddling: Option<Meddling>,
    /// A change by another client before each write.
    restless: Option<Restless>,
    /// The answer to each write instead.
    refusal: Option<Value>,
    /// It fills in a field.
    fills: bool,
    /// It stores what it should only try.
    is_rash: bool,
    tries: usize,
    writes: Vec<Method>,
}

// === impl One ===

impl One {
    fn with(object: Option<Value>) -> Self {
        let one = Self::default();
        one.change(|object_there| *object_there = object);
        one
    }

    fn target(&self) -> Target {
        let one = self.clone();
        let client = scripted::answering(move |request| {
            let (head, body) = request.into_parts();
            let kind = head.headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            let is_dry = head.uri.query().is_some_and(|query| query.contains("dryRun=All"));
            let mut state = one.0.lock();
            let (code, answer) = if is_dry && head.method == Method::PUT {
                state.tried(head.uri.path(), body)
            } else {
                state.answer(&head.method, (head.uri.path(), kind), body)
            };
            std::future::ready(scripted::text(code, answer))
        });
        Target::new(member(client), &shared())
    }

    /// Changes the object now, as another client.
    fn change(&self, change: impl FnOnce(&mut Option<Value>)) {
        self.0.lock().change(change);
    }

    /// The same, but before the next write.
    fn meddle(&self, change: impl FnOnce(&mut Option<Value>) + Send + 'static) {
        self.0.lock().meddling = Some(Box::new(change));
    }

    /// The same, but before each write.
    fn stir(&self, change: impl Fn(usize, &mut Value) + Send + 'static) {
        self.0.lock().restless = Some(Box::new(change));
    }

    fn object(&self) -> Value {
        self.0.lock().object.clone().unwrap_or_default()
    }

    fn writes(&self) -> Vec<Method> {
        std::mem::take(&mut self.0.lock().writes)
    }
}

// === impl State ===

impl State {
    fn change(&mut self, change: impl FnOnce(&mut Option<Value>)) {
        change(&mut self.object);
        self.version += 1;
        if let Some(object) = &mut self.object {
            object["metadata"]["resourceVersion"] = self.version.to_string().into();
            object["metadata"]["uid"] = "u".into();
        }
    }

    fn answer(&mut self, method: &Method, (path, kind): (&str, &str), body: Value) -> (u16, String) {
        match path {
            "/version" => return (200, "{}".to_owned()),
            "/apis" => return (200, GROUPS.2.to_owned()),
            PATH | LIST => {}
            _ => return (404, MISSING.to_owned()),
        }
        if method != Method::GET {
            self.writes.push(method.clone());
            if let Some(meddling) = self.meddling.take() {
                self.change(meddling);
            }
            if let Some(restless) = self.restless.take() {
                let writes = self.writes.len();
                self.change(|object| object.iter_mut().for_each(|object| restless(writes, object)));
                self.restless = Some(restless);
            }
        }
        if let Some(refusal) = self.refusal.as_ref().filter(|_| method != Method::GET) {
            return (409, refusal.to_string());
        }
        let Some(there) = self.object.clone() else {
            if method != Method::POST {
                return (404, MISSING.to_owned());
            }
            self.change(|object| *object = Some(body));
            return (201, self.object.clone().unwrap_or_default().to_string());
        };
        let wanted = if *method == Method::DELETE { &body["preconditions"] } else { &body["metadata"] };
        let is_as_seen = |field: &str| wanted[field].is_null() || wanted[field] == there["metadata"][field];
        if *method == Method::POST || !is_as_seen("uid") || !is_as_seen("resourceVersion") {
            return (409, MISSING.replace("404", "409").replace("NotFound", "Conflict"));
        }
        match *method {
            Method::GET => {}
            Method::DELETE => {
                self.change(|object| *object = None);
                return (200, json!({"kind": "Status", "apiVersion": "v1", "status": "Success"}).to_string());
            }
            Method::PUT => {
                let filled = self.filled(body);
                self.change(|object| *object = Some(filled));
            }
            _ if kind.contains("json-patch") => {
                if !self.patch(there, &body) {
                    return (422, json!({"kind": "Status", "code": 422, "message": "test failed"}).to_string());
                }
            }
            _ if kind.contains("apply") => self.apply(&there, &body),
            _ => self.change(|object| {
                *object = Some(there);
                let owners = body["metadata"]["ownerReferences"].clone();
                object.as_mut().unwrap()["metadata"]["ownerReferences"] = owners;
            }),
        }
        (200, self.object.clone().unwrap_or_default().to_string())
    }

    /// The answer to a PUT that should store nothing.
    fn tried(&mut self, path: &str, body: Value) -> (u16, String) {
        self.tries += 1;
        if self.is_rash {
            return self.answer(&Method::PUT, (path, ""), body);
        }
        if let Some(refusal) = &self.refusal {
            return (409, refusal.to_string());
        }
        let mut object = self.filled(body);
        object["metadata"]["generation"] = 2.into();
        (200, object.to_string())
    }

    fn filled(&self, mut object: Value) -> Value {
        if self.fills {
            object["spec"]["filled"] = true.into();
        }
        object
    }

    /// Executes the tests and removals of a JSON patch. Returns whether all tests hold.
    fn patch(&mut self, mut there: Value, operations: &Value) -> bool {
        for one in operations.as_array().unwrap() {
            let path = one["path"].as_str().unwrap();
            let (list, at) = path.rsplit_once('/').unwrap();
            match one["op"].as_str() {
                Some("test") if there.pointer(path) != Some(&one["value"]) => return false,
                Some("test") => {}
                _ => drop(there.pointer_mut(list).unwrap().as_array_mut().unwrap().remove(at.parse().unwrap())),
            }
        }
        self.change(|object| *object = Some(there));
        true
    }

    /// Only an effective change makes another version.
    fn apply(&mut self, there: &Value, body: &Value) {
        let mut applied = there.clone();
        for (key, value) in body["spec"].as_object().into_iter().flatten() {
            applied["spec"][key] = value.clone();
        }
        if applied != *there {
            self.change(|object| *object = Some(applied));
        }
    }
}

fn rival() -> Owner {
    Owner { name: "h-other".into(), uid: "p".into(), ..owner() }
}

fn thing(a: &str, owners: &[Owner]) -> Value {
    let owners: Vec<_> = owners.iter().map(Owner::reference).collect();
    json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "a", "ownerReferences": owners},
        "spec": {"a": a}})
}

/// Processes the object, which must get `ours`.
async fn settled(target: &Target, strategy: &str, before: Remembered) -> Outcome {
    let config = json!({"resourceIdentifier": {"group": "x.io", "resource": "things", "name": "a"},
        "updateStrategy": {"type": strategy}});
    let spec: ManifestWorkSpec = serde_json::from_value(json!({"manifestConfigs": [config]})).unwrap();
    let (owner, metrics) = (owner(), &target.member.metrics);
    let setting = Setting { target, work: "w", spec: &spec, owner: &owner, executor: None, is_kept: true, metrics };
    let resource = Resource { name: "things".into(), is_namespaced: false };
    let all = manifests::read(&[thing("ours", &[])], |_, _, _| Lookup::Found(resource.clone()));
    settle(setting, &all[0], before, true).await.unwrap()
}

/// Removes the object.
async fn removed(one: &One) -> Removed {
    let (target, owner, tracked) = (Arc::new(one.target()), owner(), tracked("a"));
    let (option, metrics) = (None, &target.member.metrics);
    let leaving = Leaving { work: "w", owner: &owner, option, executor: None, is_executor_required: false, metrics };
    let slot = target.slot("w").unwrap();
    target.remove(&tracked, leaving, Ok(()), &slot.step().unwrap()).await.unwrap()
}

#[tokio::test]
async fn an_object_that_another_work_takes_up_before_it_is_deleted_stays() {
    let one = One::with(Some(thing("ours", &[owner()])));
    one.meddle(|object| *object = Some(thing("ours", &[owner(), rival()])));
    let removed = removed(&one).await;
    assert!(matches!(removed, Removed::Gone), "{removed:?}");
    assert_eq!(one.object()["metadata"]["ownerReferences"], json!([rival().reference()]), "it is theirs alone");
    assert_eq!(one.writes(), [Method::DELETE, Method::PATCH]);
}

#[tokio::test]
async fn an_object_that_is_written_all_the_time_goes_all_the_same() {
    let theirs = json!([rival().reference()]);
    let both = json!([rival().reference(), owner().reference()]);
    // The owners at first, and those from the third write on.
    for (owners, later, writes, left) in [
        (vec![owner()], None, [Method::DELETE, Method::DELETE, Method::DELETE, Method::DELETE], Value::Null),
        (vec![owner(), rival()], None, [Method::PATCH, Method::PATCH, Method::PATCH, Method::PATCH], theirs.clone()),
        (vec![owner()], Some(both), [Method::DELETE, Method::DELETE, Method::DELETE, Method::PATCH], theirs),
    ] {
        let one = One::with(Some(thing("ours", &owners)));
        one.stir(move |writes, object| {
            object["spec"]["a"] = writes.into();
            if let Some(later) = later.clone().filter(|_| writes >= 3) {
                object["metadata"]["ownerReferences"] = later;
            }
        });
        let removed = removed(&one).await;
        assert!(matches!(removed, Removed::Gone), "{removed:?}");
        assert_eq!((one.writes(), &one.object()["metadata"]["ownerReferences"]), (writes.to_vec(), &left));
    }
}

#[tokio::test]
async fn an_object_that_goes_before_it_is_written_is_made_anew() {
    for (strategy, write) in [("Update", Method::PUT), ("CreateOnly", Method::PATCH)] {
        let one = One::with(Some(thing("theirs", &[])));
        one.meddle(|object| *object = None);
        let outcome = settled(&one.target(), strategy, Remembered::default()).await;
        assert_eq!(outcome.result, Ok(()), "{strategy}");
        assert_eq!(one.writes(), [write, Method::POST], "{strategy}");
        assert_eq!(one.object()["spec"]["a"], "ours", "{strategy}");
    }
}

/// Rounds with a change by another client each, and the outcome of the last.
async fn rounds(one: &One, strategy: &str, count: u32, change: impl Fn(u32, &mut Value)) -> Outcome {
    let target = one.target();
    let mut outcome = settled(&target, strategy, Remembered::default()).await;
    for round in 0..count {
        one.change(|object| change(round, object.as_mut().unwrap()));
        tokio::time::advance(Duration::from_mins(6)).await;
        outcome = settled(&target, strategy, outcome.remembered).await;
    }
    outcome
}

#[tokio::test(start_paused = true)]
async fn an_apply_that_changes_nothing_repairs_nothing() {
    // It is applied once, after which the member's other fields are known.
    let one = One::with(Some(thing("theirs", &[owner()])));
    let scaled = |round: u32, object: &mut Value| object["spec"]["replicas"] = round.into();
    let outcome = rounds(&one, "ServerSideApply", 8, scaled).await;
    assert!(!outcome.remembered.contest.is_contested(Instant::now()) && outcome.contested_by.is_none());
    let undone = |round: u32, object: &mut Value| object["spec"]["a"] = round.into();
    let outcome = rounds(&one, "ServerSideApply", 8, undone).await;
    assert!(outcome.remembered.contest.is_contested(Instant::now()), "what is ours is");
    assert_eq!(outcome.note, None, "there is no other work");
}

#[tokio::test(start_paused = true)]
async fn two_works_that_want_different_things_are_told_of_each_other() {
    let one = One::with(Some(thing("ours", &[owner(), rival()])));
    let by = |manager: &'static str| {
        move |round: u32, object: &mut Value| {
            object["spec"]["a"] = format!("theirs {round}").into();
            object["metadata"]["managedFields"] = json!([{"manager": manager, "time": "2026-01-01T00:00:00Z"}]);
        }
    };
    let outcome = rounds(&one, "Update", 5, by(MANAGER)).await;
    assert_eq!(outcome.contested_by, Some(By::Work("h-other".to_owned())));
    assert!(outcome.note.is_some_and(|note| note.contains("AppliedManifestWork h-other, wants something else")));
    // Nothing needs to be done, but the contest is reported until nobody continues it.
    let calm = settled(&one.target(), "Update", outcome.remembered).await;
    assert!(calm.note.is_some() && calm.contested_by.is_none());
    let again = calm.remembered.again.unwrap();
    tokio::time::advance(again - Instant::now()).await;
    let over = settled(&one.target(), "Update", calm.remembered).await;
    assert!(over.note.is_none() && over.remembered.again.is_none());
    let outcome = rounds(&one, "Update", 5, by("kubectl")).await;
    assert_eq!(outcome.contested_by, Some(By::Manager("kubectl".to_owned())));
    assert_eq!(outcome.note, None, "the other work wants the same");
}

/// A quota that others use at the same time, or a webhook, answers 409, too. Nothing would wake a
/// work whose object was not made.
#[tokio::test(start_paused = true)]
async fn only_others_fields_are_a_conflict_that_waits_for_a_change() {
    let refusal = |causes: Value| {
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 409, "reason": "Conflict",
            "message": "no, it said", "details": {"name": "a", "kind": "things", "causes": causes}})
    };
    for strategy in ["ServerSideApply", "Update"] {
        let one = One::default();
        one.0.lock().refusal = Some(refusal(json!([])));
        let mut outcome = settled(&one.target(), strategy, Remembered::default()).await;
        let told = format!("{:?}", outcome.result);
        assert!(told.contains("answered with a conflict each time") && told.contains("no, it said"), "{told}");
        assert_eq!((one.writes().len(), outcome.is_conflict), (3, false), "{strategy}");
        let mut waits = Vec::new();
        for _ in 0..8 {
            waits.push(outcome.remembered.again.unwrap() - Instant::now());
            tokio::time::advance(waits[waits.len() - 1]).await;
            outcome = settled(&one.target(), strategy, outcome.remembered).await;
        }
        assert!(waits[0] == Duration::from_secs(1) && waits[7] > Duration::from_secs(30), "{waits:?}");
    }
    let one = One::with(Some(thing("theirs", &[owner()])));
    one.0.lock().refusal = Some(refusal(json!([{"reason": "FieldManagerConflict", "field": ".spec.a"}])));
    let outcome = settled(&one.target(), "ServerSideApply", Remembered::default()).await;
    assert_eq!((one.writes().len(), outcome.is_conflict, outcome.remembered.again), (1, true, None));
}

/// A member that fills in a field. To the object, another client may have added one more.
fn filling(added: bool) -> One {
    let mut found = thing("ours", &[owner()]);
    found["metadata"]["generation"] = 1.into();
    found["spec"]["filled"] = true.into();
    if added {
        found["spec"]["added"] = "x".into();
    }
    let one = One::with(Some(found));
    one.0.lock().fills = true;
    one
}

/// A replica that begins has seen none of them.
#[tokio::test(start_paused = true)]
async fn what_was_added_while_nobody_looked_is_repaired_and_what_the_member_fills_in_stays() {
    let one = filling(false);
    let outcome = settled(&one.target(), "Update", Remembered::default()).await;
    assert!(outcome.result.is_ok() && outcome.remembered.seen.is_some() && one.writes().is_empty(), "{outcome:?}");
    let one = filling(true);
    let outcome = settled(&one.target(), "Update", Remembered::default()).await;
    assert!(outcome.result.is_ok(), "{outcome:?}");
    assert_eq!((one.writes(), &one.object()["spec"]), (vec![Method::PUT], &json!({"a": "ours", "filled": true})));
    // A member that cannot try it says nothing of the object.
    let one = filling(true);
    one.0.lock().refusal = Some(json!({"kind": "Status", "code": 409, "message": "no dry run"}));
    let outcome = settled(&one.target(), "Update", Remembered::default()).await;
    assert!(outcome.result.is_ok() && one.writes().is_empty() && one.object()["spec"]["added"] == "x", "{outcome:?}");
}

/// A server behind the member's may know of no dry run.
#[tokio::test(start_paused = true)]
async fn a_dry_run_that_is_stored_is_the_repair() {
    let one = filling(true);
    one.0.lock().is_rash = true;
    let outcome = settled(&one.target(), "Update", Remembered::default()).await;
    assert_eq!((one.writes().len(), one.object()["spec"].get("added")), (1, None), "it is not written again");
    assert_ne!(outcome.remembered.contest, Contest::default());
    assert!(outcome.observed.is_some_and(|object| object == one.object()) && outcome.remembered.seen.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_is_sent_only_where_a_write_may_be() {
    let tries = |one: &One| one.0.lock().tries;
    let one = filling(true);
    let mut contested = Remembered::default();
    contested.contest.repaired(Instant::now());
    let outcome = settled(&one.target(), "Update", contested).await;
    assert!(outcome.result.is_ok() && outcome.remembered.again.is_some(), "{outcome:?}");
    assert_eq!(tries(&one), 0, "another client has just changed it back");
    let target = one.target();
    target.member.close();
    let tracked = tracked("a");
    let at = At { identity: &tracked.identity, version: "v1" };
    assert!(matches!(target.member.try_replace(at, &one.object()).await, Err(MemberError::NotLeading(_))));
    assert_eq!(tries(&one), 0, "the cluster gets no more deliveries");
}
