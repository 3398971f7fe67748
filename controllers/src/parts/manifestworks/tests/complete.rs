//! Complete objects are no longer applied, but still reported.

use serde_json::{Value, json};

use super::*;

const A: &str = "/apis/batch/v1/namespaces/c1/jobs/a";
const B: &str = "/apis/batch/v1/namespaces/c1/jobs/b";
const MAP: &str = "/api/v1/namespaces/c1/configmaps/m";

fn job(name: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "c1"},
        "spec": {"ttlSecondsAfterFinished": 0}})
}

fn map(value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "c1"}, "data": {"v": value}})
}

/// Rules for the completion of jobs, and for a value of ConfigMaps.
fn rules() -> Value {
    let of =
        |group: &str, resource: &str| json!({"group": group, "resource": resource, "namespace": "c1", "name": "*"});
    json!([{"resourceIdentifier": of("batch", "jobs"),
            "conditionRules": [{"type": "WellKnownConditions", "condition": "Complete"}]},
        {"resourceIdentifier": of("", "configmaps"),
            "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "v", "path": ".data.v"}]}]}])
}

/// A hub on which these manifests are applied.
async fn applied(manifests: &[Value]) -> (Hub, Part, Writer<DynamicObject>) {
    let hub = Hub::default();
    hub.edit(|work| work["spec"] = json!({"workload": {"manifests": manifests}, "manifestConfigs": rules()}));
    let (part, mut writer) = part(&hub);
    go_over(&part, &mut writer, &hub).await;
    assert_eq!(said(&hub.told()["status"], "Applied"), "True/AppliedManifestWorkComplete", "{:?}", hub.told());
    (hub, part, writer)
}

fn finish(hub: &Hub, job: &str) {
    hub.put(job, &json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}));
}

fn manifest(hub: &Hub, ordinal: usize) -> Value {
    hub.told()["status"]["resourceStatus"]["manifests"][ordinal].clone()
}

/// The writes to the member, from `since` on.
fn on_member(hub: &Hub, since: usize) -> Vec<String> {
    hub.writes().into_iter().skip(since).filter(|one| one.contains("/proxy/")).collect()
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_complete_is_not_made_again_though_the_work_is_not() {
    let (hub, part, mut writer) = applied(&[job("a"), job("b")]).await;
    finish(&hub, A);
    look_again(&part).await;
    go_over(&part, &mut writer, &hub).await;
    assert_eq!(said(&manifest(&hub, 0), "Complete"), "True/ConditionRuleEvaluated");
    assert_eq!(said(&hub.told()["status"], "Complete"), "False/ConditionRulesAggregated");
    // Its TTL is over, and the work wants something else for all.
    hub.remove(A);
    hub.put(B, &json!({"spec": {"ttlSecondsAfterFinished": 7}}));
    hub.edit(|work| work["metadata"]["generation"] = 2.into());
    go_over(&part, &mut writer, &hub).await;
    assert!(hub.object(A).is_null(), "it is run again");
    assert_eq!(hub.object(B)["spec"]["ttlSecondsAfterFinished"], 0, "what is not complete is repaired");
    let gone = manifest(&hub, 0);
    assert_eq!(said(&gone, "Applied"), "True/AppliedManifestComplete");
    assert_eq!(said(&gone, "Available"), "False/ResourceNotAvailable");
    assert_eq!(said(&gone, "Complete"), "True/ConditionRuleEvaluated");
    let listed = hub.object("/apis/work.open-cluster-management.io/v1/appliedmanifestworks/h-w");
    let names: Vec<&Value> =
        listed["status"]["appliedResources"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["b"], "what is gone is tracked no more");
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_rule_goes_is_brought_to_what_is_wanted_again() {
    let (hub, part, mut writer) = applied(&[job("a"), job("b")]).await;
    finish(&hub, A);
    look_again(&part).await;
    go_over(&part, &mut writer, &hub).await;
    hub.put(A, &json!({"spec": {"ttlSecondsAfterFinished": 7}}));
    look_again(&part).await;
    go_over(&part, &mut writer, &hub).await;
    assert_eq!(hub.object(A)["spec"]["ttlSecondsAfterFinished"], 7, "it is left as it is");
    hub.edit(|work| {
        work["metadata"]["generation"] = 2.into();
        work["spec"]["manifestConfigs"] = json!([]);
    });
    go_over(&part, &mut writer, &hub).await;
    assert_eq!(said(&manifest(&hub, 0), "Complete"), "");
    assert_eq!(hub.object(A)["spec"]["ttlSecondsAfterFinished"], 0);
}

#[tokio::test(start_paused = true)]
async fn that_a_work_is_complete_is_told_at_once() {
    let (hub, part, mut writer) = applied(&[job("a")]).await;
    finish(&hub, A);
    look_again(&part).await;
    once(&part, &mut writer, &hub).await;
    assert_eq!(said(&hub.told()["status"], "Complete"), "True/ConditionRulesAggregated");
}

#[tokio::test(start_paused = true)]
async fn what_is_about_to_be_told_complete_is_not_made_again() {
    let (hub, part, mut writer) = applied(&[job("a")]).await;
    // It has reported so much recently that it must wait.
    let memory = part.memories.of(&("c1".to_owned(), "w".to_owned()));
    (0..20).for_each(|_| memory.try_lock().unwrap().status_writes.wrote(Instant::now()));
    finish(&hub, A);
    look_again(&part).await;
    once(&part, &mut writer, &hub).await;
    assert_eq!(said(&hub.told()["status"], "Complete"), "False/ConditionRulesAggregated", "it waits");
    hub.remove(A);
    look_again(&part).await;
    tokio::time::advance(Duration::from_secs(11)).await;
    once(&part, &mut writer, &hub).await;
    assert!(hub.object(A).is_null(), "it is run again");
    tokio::time::advance(Duration::from_mins(2)).await;
    go_over(&part, &mut writer, &hub).await;
    assert_eq!(said(&hub.told()["status"], "Complete"), "True/ConditionRulesAggregated");
}

#[tokio::test(start_paused = true)]
async fn what_is_complete_is_told_at_once_where_nothing_can_wait() {
    let (hub, part, mut writer) = applied(&[job("a")]).await;
    let memory = part.memories.of(&("c1".to_owned(), "w".to_owned()));
    (0..20).for_each(|_| memory.try_lock().unwrap().status_writes.wrote(Instant::now()));
    let (target, mut full, mut bytes) = (part.target("c1").unwrap(), Vec::new(), 64 << 20);
    while bytes > 0 {
        match target.kept.take(bytes) {
            Some(charge) => full.push(charge),
            None => bytes /= 2,
        }
    }
    finish(&hub, A);
    look_again(&part).await;
    once(&part, &mut writer, &hub).await;
    assert_eq!(said(&hub.told()["status"], "Complete"), "True/ConditionRulesAggregated");
}

/// Otherwise the pass after its own time would run it again.
#[tokio::test(start_paused = true)]
async fn of_a_status_that_is_too_large_what_is_complete_stays() {
    let (hub, part, mut writer) = applied(&[job("a"), job("b"), map("1")]).await;
    // What is told of all three objects does not fit, and what is told of one does.
    let bytes = hub.told()["status"].to_string().len();
    hub.takes(bytes * 3 / 4);
    finish(&hub, A);
    look_again(&part).await;
    go_over(&part, &mut writer, &hub).await;
    let status = hub.told()["status"].clone();
    let applied = status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Applied").unwrap();
    assert!(applied["message"].to_string().contains("the status of its 3 manifests is larger than"), "{applied}");
    let manifests = status["resourceStatus"]["manifests"].as_array().unwrap();
    assert_eq!(manifests.len(), 1, "{status}");
    let (meta, conditions) = (&manifests[0]["resourceMeta"], manifests[0]["conditions"].as_array().unwrap());
    assert_eq!((&meta["name"], conditions.len()), (&json!("a"), 1), "{status}");
    assert_eq!(said(&manifests[0], "Complete"), "True/ConditionRuleEvaluated");
    // Its time is over, nobody here knows of it, and the work says something else of all.
    hub.remove(A);
    hub.put(B, &json!({"spec": {"ttlSecondsAfterFinished": 7}}));
    hub.edit(|work| work["metadata"]["generation"] = 2.into());
    part.leave(&("c1".to_owned(), "w".to_owned()));
    go_over(&part, &mut writer, &hub).await;
    assert!(hub.object(A).is_null(), "it is run again");
    assert_eq!(hub.object(B)["spec"]["ttlSecondsAfterFinished"], 0, "what is not complete is repaired");
    assert_eq!(said(&hub.told()["status"], "Applied"), "True/AppliedManifestWorkComplete");
    // At rest, nothing is written.
    let told = hub.writes().len();
    look_again(&part).await;
    go_over(&part, &mut writer, &hub).await;
    assert_eq!(hub.writes().len(), told);
    // Where there is no room for that either, it goes last.
    let mut bare = hub.told()["status"].clone();
    bare["resourceStatus"]["manifests"] = json!([]);
    hub.takes(bare.to_string().len() + 50);
    hub.edit(|work| work["metadata"]["generation"] = 3.into());
    go_over(&part, &mut writer, &hub).await;
    assert_eq!(hub.told()["status"]["resourceStatus"]["manifests"], json!([]), "{:?}", hub.told()["status"]);
}

/// Who deletes it when its time is over is on the hub.
#[tokio::test(start_paused = true)]
async fn a_complete_work_is_read_on_and_not_applied() {
    let (hub, part, mut writer) = applied(&[job("a"), map("1")]).await;
    finish(&hub, A);
    look_again(&part).await;
    go_over(&part, &mut writer, &hub).await;
    assert_eq!(said(&hub.told()["status"], "Complete"), "True/ConditionRulesAggregated");
    let writes = hub.writes().len();
    hub.put(MAP, &json!({"data": {"v": "2"}}));
    hub.remove(A);
    hub.edit(|work| {
        work["metadata"]["generation"] = 2.into();
        work["spec"]["workload"]["manifests"][1] = map("3");
    });
    go_over(&part, &mut writer, &hub).await;
    let (map, status) = (manifest(&hub, 1), hub.told()["status"].clone());
    assert_eq!(map["statusFeedback"]["values"][0]["fieldValue"]["string"], "2");
    assert_eq!(said(&map, "Available"), "True/ResourceAvailable");
    assert_eq!(said(&status, "Available"), "False/ResourcesNotAvailable", "its job is gone");
    assert_eq!(said(&status, "Complete"), "True/ConditionRulesAggregated");
    let applied = status["conditions"].as_array().unwrap().iter().find(|one| one["type"] == "Applied").unwrap();
    assert_eq!(applied["observedGeneration"], 1, "nobody applies it: {applied}");
    assert_eq!(on_member(&hub, writes), [""; 0]);
    // Once it is known, nothing is written.
    let told = hub.writes().len();
    look_again(&part).await;
    go_over(&part, &mut writer, &hub).await;
    assert_eq!(hub.writes().len(), told);
}

#[tokio::test(start_paused = true)]
async fn a_work_whose_rule_goes_is_complete_no_more_and_is_applied() {
    let (hub, part, mut writer) = applied(&[job("a"), map("1")]).await;
    finish(&hub, A);
    look_again(&part).await;
    go_over(&part, &mut writer, &hub).await;
    let writes = hub.writes().len();
    hub.edit(|work| {
        work["metadata"]["generation"] = 2.into();
        work["spec"]["workload"]["manifests"][1] = map("3");
        work["spec"]["manifestConfigs"] = json!([]);
    });
    go_over(&part, &mut writer, &hub).await;
    let status = hub.told()["status"].clone();
    assert_eq!((said(&status, "Complete"), said(&manifest(&hub, 0), "Complete")), (String::new(), String::new()));
    assert_eq!(hub.object(MAP)["data"]["v"], "3");
    assert_eq!(said(&status, "Applied"), "True/AppliedManifestWorkComplete");
    assert!(!on_member(&hub, writes).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_work_that_was_complete_before_it_was_applied_is_left_alone() {
    let hub = Hub::default();
    hub.edit(|work| {
        work["spec"]["workload"]["manifests"] = json!([map("1")]);
        work["status"] = json!({"conditions": [{"type": "Complete", "status": "True", "reason": "x", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    });
    let (part, mut writer) = part(&hub);
    assert_eq!(once(&part, &mut writer, &hub).await, Action::await_change());
    assert_eq!(hub.writes(), [""; 0]);
}
