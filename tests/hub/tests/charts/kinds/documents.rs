//! Documents that both definitions of a kind get.

use hub_tests::prelude::*;

/// A document of a kind, its status, and whether the server must refuse any of it.
#[derive(Debug)]
pub(crate) struct Document {
    resource: &'static str,
    version: &'static str,
    kind: &'static str,
    spec: Option<Value>,
    pub(crate) status: Option<Value>,
    pub(crate) is_refused: bool,
}

const CLUSTER: (&str, &str, &str) = ("managedclusters", "cluster.open-cluster-management.io/v1", "ManagedCluster");
const SET: (&str, &str, &str) =
    ("managedclustersets", "cluster.open-cluster-management.io/v1beta2", "ManagedClusterSet");
const BINDING: (&str, &str, &str) =
    ("managedclustersetbindings", "cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding");
const PLACEMENT: (&str, &str, &str) = ("placements", "cluster.open-cluster-management.io/v1beta1", "Placement");
const DECISION: (&str, &str, &str) =
    ("placementdecisions", "cluster.open-cluster-management.io/v1beta1", "PlacementDecision");
const SCORE: (&str, &str, &str) =
    ("addonplacementscores", "cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore");
const WORK: (&str, &str, &str) = ("manifestworks", "work.open-cluster-management.io/v1", "ManifestWork");
const WORKS: (&str, &str, &str) =
    ("manifestworkreplicasets", "work.open-cluster-management.io/v1alpha1", "ManifestWorkReplicaSet");

type Kind = (&'static str, &'static str, &'static str);

// === impl Document ===

impl Document {
    pub(crate) fn object(&self, name: &str) -> Value {
        let mut object = json!({"apiVersion": self.version, "kind": self.kind, "metadata": {"name": name}});
        if self.is_namespaced() {
            object["metadata"]["namespace"] = "kinds".into();
        }
        if let Some(spec) = &self.spec {
            object["spec"] = spec.clone();
        }
        object
    }

    /// The path of all objects of its kind, where its own are.
    pub(crate) fn path(&self) -> String {
        let namespace = if self.is_namespaced() { "/namespaces/kinds" } else { "" };
        format!("/apis/{}{namespace}/{}", self.version, self.resource)
    }

    fn is_namespaced(&self) -> bool {
        !["ManagedCluster", "ManagedClusterSet"].contains(&self.kind)
    }
}

fn taken((resource, version, kind): Kind, spec: Value, status: Option<Value>) -> Document {
    let spec = Some(spec).filter(|spec| !spec.is_null());
    Document { resource, version, kind, spec, status, is_refused: false }
}

fn refused(kind: Kind, spec: Value) -> Document {
    Document { is_refused: true, ..taken(kind, spec, None) }
}

/// A document with a status that must be refused.
fn untold(kind: Kind, spec: Value, status: Value) -> Document {
    Document { is_refused: true, ..taken(kind, spec, Some(status)) }
}

fn condition(of: &str, status: &str, reason: &str) -> Value {
    json!({"type": of, "status": status, "reason": reason, "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"})
}

pub(crate) fn documents() -> Vec<Document> {
    [clusters(), sets(), placements(), prioritizers(), decisions(), works(), configs(), replica_sets()]
        .into_iter()
        .flatten()
        .collect()
}

fn clusters() -> Vec<Document> {
    let taint = |key: &str, effect: &str| json!({"taints": [{"key": key, "effect": effect}]});
    let told = json!({"conditions": [condition("ManagedClusterJoined", "True", "Joined"),
            condition("ManagedClusterConditionAvailable", "Unknown", "Gone")],
        "allocatable": {"cpu": "1500m", "memory": "2Gi"}, "capacity": {"cpu": 2}, "version": {"kubernetes": "v1.35.0"},
        "clusterClaims": [{"name": "id", "value": "7"}],
        "managedNamespaces": [{"clusterSet": "s", "name": "n", "conditions": [condition("A", "True", "B")]}]});
    let full = json!({"hubAcceptsClient": true, "leaseDurationSeconds": 5,
        "managedClusterClientConfigs": [{"url": "https://a"}, {"url": "https://b", "caBundle": "YQ=="}],
        "taints": [{"key": "a.b/c", "value": "v", "effect": "NoSelectIfNew", "timeAdded": null}]});
    vec![
        taken(CLUSTER, Value::Null, None),
        taken(CLUSTER, json!({}), None),
        taken(CLUSTER, full, Some(told)),
        refused(CLUSTER, json!({"hubAcceptsClient": "yes"})),
        refused(CLUSTER, json!({"managedClusterClientConfigs": [{"caBundle": "YQ=="}]})),
        refused(CLUSTER, json!({"unknown": 1})),
        refused(CLUSTER, taint("a", "NoExecute")),
        refused(CLUSTER, taint("-a", "NoSelect")),
        refused(CLUSTER, taint(&"a".repeat(317), "NoSelect")),
        untold(CLUSTER, json!({}), json!({"conditions": [condition("A", "Maybe", "B")]})),
        untold(CLUSTER, json!({}), json!({"conditions": [condition("A", "True", "")]})),
        untold(CLUSTER, json!({}), json!({"conditions": [condition("A", "True", "B"), condition("A", "True", "B")]})),
        untold(CLUSTER, json!({}), json!({"allocatable": {"cpu": "much"}})),
        untold(CLUSTER, json!({}), json!({"clusterClaims": [{"name": "", "value": "v"}]})),
    ]
}

fn sets() -> Vec<Document> {
    let selects = json!({"clusterSelector": {"selectorType": "LabelSelector",
        "labelSelector": {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}}});
    let empty = json!({"conditions": [condition("ClusterSetEmpty", "True", "NoClusterMatched")]});
    let twice = json!({"conditions": [condition("A", "True", "B"), condition("A", "True", "B")]});
    vec![
        taken(SET, Value::Null, None),
        taken(SET, json!({}), Some(empty)),
        taken(SET, json!({"clusterSelector": {}}), Some(twice)),
        taken(SET, selects, None),
        taken(SET, json!({"managedNamespaces": [{"name": "a"}, {"name": "b"}]}), None),
        refused(SET, json!({"managedNamespaces": [{"name": "a"}, {"name": "a"}]})),
        refused(SET, json!({"managedNamespaces": [{"name": "A"}]})),
        refused(SET, json!({"clusterSelector": {"selectorType": "All"}})),
        taken(BINDING, json!({"clusterSet": "a"}), Some(json!({"conditions": [condition("Bound", "True", "B")]}))),
        taken(BINDING, json!({}), None),
        refused(BINDING, json!({"clusterSet": ""})),
    ]
}

fn placements() -> Vec<Document> {
    let told = json!({"numberOfSelectedClusters": 3,
        "conditions": [condition("PlacementSatisfied", "True", "AllDecisionsScheduled")],
        "decisionGroups": [{"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["a-decision-1"]}]});
    let group = |name: &str, size: Value| {
        json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size,
            "decisionGroups": [{"groupName": name, "groupClusterSelector": {"labelSelector": {"matchLabels": {"a": "b"}},
                "claimSelector": {"matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]}}}]}}})
    };
    let selector = json!({"requiredClusterSelector": {"celSelector": {"celExpressions": ["true"]},
        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Maybe"}]}, "claimSelector": {}}});
    let spread = |more: Value| json!({"spreadPolicy": {"spreadConstraints": [more]}});
    let toleration = |more: Value| json!({"tolerations": [more]});
    vec![
        refused(PLACEMENT, Value::Null),
        taken(PLACEMENT, json!({}), Some(told)),
        taken(PLACEMENT, json!({"clusterSets": ["a"], "numberOfClusters": 0, "predicates": [selector]}), None),
        refused(PLACEMENT, json!({"numberOfClusters": "2"})),
        taken(PLACEMENT, json!({"sortBy": "Score", "scoreRateLimit": "5m"}), None),
        refused(PLACEMENT, json!({"sortBy": "Name"})),
        refused(PLACEMENT, json!({"scoreRateLimit": "5d"})),
        refused(PLACEMENT, json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"a": "b"}}}]})),
        taken(PLACEMENT, json!({"decisionStrategy": {"groupStrategy": {}}}), None),
        taken(PLACEMENT, group("canary", json!(2)), None),
        taken(PLACEMENT, group("canary", json!("50%")), None),
        refused(PLACEMENT, group("canary", json!("abc"))),
        refused(PLACEMENT, group("canary", json!("-1"))),
        refused(PLACEMENT, group("canary", json!("0%"))),
        refused(PLACEMENT, group("canary", json!("200%"))),
        refused(PLACEMENT, group("c", json!(2))),
        taken(PLACEMENT, spread(json!({"topologyKey": "a/b", "topologyKeyType": "Claim"})), None),
        refused(PLACEMENT, spread(json!({"topologyKey": "a/b", "topologyKeyType": "Zone"}))),
        refused(PLACEMENT, spread(json!({"topologyKey": "a", "topologyKeyType": "Label", "maxSkew": 0}))),
        refused(PLACEMENT, toleration(json!({"key": "", "value": "v"}))),
        taken(PLACEMENT, toleration(json!({"key": "a", "operator": "Maybe", "tolerationSeconds": 5})), None),
        refused(PLACEMENT, toleration(json!({"effect": "Always"}))),
    ]
}

fn prioritizers() -> Vec<Document> {
    let policy = |configuration: Value| json!({"prioritizerPolicy": {"configurations": [configuration]}});
    let add_on = |more: Value| policy(json!({"scoreCoordinate": {"type": "AddOn", "addOn": more}}));
    vec![
        taken(PLACEMENT, json!({"prioritizerPolicy": {}}), None),
        taken(PLACEMENT, json!({"prioritizerPolicy": {"mode": "Anything"}}), None),
        taken(PLACEMENT, policy(json!({"scoreCoordinate": {"builtIn": "Steady"}})), None),
        taken(PLACEMENT, policy(json!({"scoreCoordinate": {}, "weight": -10})), None),
        refused(PLACEMENT, policy(json!({"scoreCoordinate": {}, "weight": 11}))),
        refused(PLACEMENT, policy(json!({"weight": 1}))),
        refused(PLACEMENT, policy(json!({"scoreCoordinate": {"type": "Other"}}))),
        taken(PLACEMENT, add_on(json!({"resourceName": "a", "scoreName": "b"})), None),
        refused(PLACEMENT, add_on(json!({"resourceName": "a"}))),
    ]
}

fn decisions() -> Vec<Document> {
    let scores = |value: i32| json!({"scores": [{"name": "a", "value": value}], "validUntil": "2026-01-02T03:04:05Z"});
    vec![
        taken(DECISION, Value::Null, Some(json!({"decisions": []}))),
        taken(DECISION, Value::Null, Some(json!({"decisions": [{"clusterName": "a", "reason": ""}]}))),
        taken(DECISION, Value::Null, Some(json!({"decisions": [{"clusterName": "a", "reason": "", "score": 7}]}))),
        untold(DECISION, Value::Null, json!({"decisions": [{"clusterName": "a"}]})),
        untold(DECISION, Value::Null, json!({"other": 1})),
        refused(DECISION, json!({})),
        taken(SCORE, Value::Null, Some(scores(-100))),
        untold(SCORE, Value::Null, scores(101)),
        untold(SCORE, Value::Null, json!({"scores": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]})),
        untold(SCORE, Value::Null, json!({"validUntil": "soon"})),
    ]
}

fn works() -> Vec<Document> {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"b": "c"}});
    let subject = |of: &str, name: &str| json!({"executor": {"subject": {"type": of, "serviceAccount": {"namespace": "n", "name": name}}}});
    let feedback = |value: Value| {
        json!({"conditions": [condition("Applied", "True", "A")], "resourceStatus": {"manifests": [{
            "resourceMeta": {"ordinal": 0, "kind": "ConfigMap"}, "conditions": [condition("Applied", "True", "A")],
            "statusFeedback": {"values": [{"name": "a", "fieldValue": value}]}}]}})
    };
    vec![
        taken(WORK, Value::Null, None),
        taken(WORK, json!({}), Some(feedback(json!({"type": "Integer", "integer": 7})))),
        untold(WORK, json!({}), feedback(json!({"type": "Float"}))),
        untold(WORK, json!({}), feedback(json!({"type": "JsonRaw", "jsonRaw": "x".repeat(1025)}))),
        untold(WORK, json!({}), json!({"resourceStatus": {"manifests": [{"conditions": []}]}})),
        taken(WORK, json!({"workload": {"manifests": [map]}, "deleteOption": {}}), None),
        refused(WORK, json!({"workload": {"manifests": [{"data": {}}]}})),
        refused(WORK, json!({"workload": {"manifests": ["text"]}})),
        refused(WORK, json!({"deleteOption": {"propagationPolicy": "Background"}})),
        refused(WORK, json!({"deleteOption": {"selectivelyOrphans": {"orphaningRules": [{"name": "a"}]}}})),
        taken(WORK, subject("ServiceAccount", "a.b"), None),
        refused(WORK, subject("User", "a")),
        refused(WORK, subject("ServiceAccount", "A")),
        refused(WORK, subject("ServiceAccount", "")),
        refused(WORK, json!({"executor": {"subject": {}}})),
    ]
}

fn configs() -> Vec<Document> {
    let config = |field: &str, value: Value| {
        let mut config = json!({"resourceIdentifier": {"resource": "configmaps", "name": "a", "namespace": "n"}});
        config[field] = value;
        json!({"manifestConfigs": [config]})
    };
    let applied = |more: Value| config("updateStrategy", json!({"type": "ServerSideApply", "serverSideApply": more}));
    let ignored = |condition: &str, paths: Value| {
        applied(json!({"force": true, "ignoreFields": [{"condition": condition, "jsonPaths": paths}]}))
    };
    let ways = |mut paths: Value| {
        paths["condition"] = "OnSpokePresent".into();
        applied(json!({ "ignoreFields": [paths] }))
    };
    let rule = |condition: &str, of: &str| json!({"condition": condition, "type": of, "celExpressions": ["true"]});
    let path = json!({"name": "a", "path": ".b"});
    vec![
        taken(WORK, json!({"manifestConfigs": [{"resourceIdentifier": {"resource": "a", "name": "b"}}]}), None),
        refused(WORK, json!({"manifestConfigs": [{"resourceIdentifier": {"name": "b"}}]})),
        taken(WORK, config("updateStrategy", json!({})), None),
        refused(WORK, config("updateStrategy", json!({"type": "Replace"}))),
        taken(WORK, applied(json!({})), None),
        refused(WORK, applied(json!({"fieldManager": "mine"}))),
        taken(WORK, ignored("OnSpokeChange", json!([".a"])), None),
        taken(WORK, ignored("OnSpokeChange", json!([])), None),
        refused(WORK, ignored("Never", json!([".a"]))),
        taken(WORK, ways(json!({"jsonPointers": ["/a"], "jqPathExpressions": [".a"]})), None),
        refused(WORK, ways(json!({"jsonPointers": "/a"}))),
        refused(WORK, ways(json!({"jqPathExpressions": [1]}))),
        refused(WORK, config("feedbackScrapeType", json!("Push"))),
        taken(WORK, config("feedbackRules", json!([{"type": "JSONPaths", "jsonPaths": [path]}])), None),
        refused(WORK, config("feedbackRules", json!([{"type": "JSONPaths", "jsonPaths": [path, path]}]))),
        refused(WORK, config("feedbackRules", json!([{"type": "Other"}]))),
        taken(WORK, config("conditionRules", json!([rule("", "WellKnownConditions")])), None),
        refused(WORK, config("conditionRules", json!([rule("", "CEL")]))),
        refused(WORK, config("conditionRules", json!([rule("A", "CEL"), rule("A", "CEL")]))),
    ]
}

fn replica_sets() -> Vec<Document> {
    let rollout = |more: Value| json!({"placementRefs": [{"name": "p", "rolloutStrategy": more}]});
    let progressive = |more: Value| rollout(json!({"type": "Progressive", "progressive": more}));
    let told = json!({"summary": {"total": 3, "applied": 1}, "conditions": [
            condition("PlacementVerified", "True", "AsExpected"), condition("ManifestworkApplied", "False", "NotAsExpected")],
        "placementSummary": [{"name": "p", "availableDecisionGroups": "1 (3 clusters applied)", "summary": {"degraded": 1}}]});
    let whole = json!({"placementRefs": [{"name": "p"}], "cascadeDeletionPolicy": "Foreground",
        "manifestWorkTemplate": {"deleteOption": {}, "workload": {"manifests": []}}});
    let groups =
        json!({"mandatoryDecisionGroups": [{"groupName": "canary"}, {"groupIndex": 1}], "maxConcurrency": "25%"});
    vec![
        refused(WORKS, json!({})),
        refused(WORKS, json!({"placementRefs": []})),
        refused(WORKS, json!({"placementRefs": [{"name": ""}]})),
        taken(WORKS, json!({"placementRefs": [{"name": "p"}]}), Some(told)),
        taken(WORKS, whole, None),
        refused(WORKS, json!({"placementRefs": [{"name": "p"}], "cascadeDeletionPolicy": "Orphan"})),
        taken(WORKS, rollout(json!({})), None),
        refused(WORKS, rollout(json!({"type": "Sometimes"}))),
        taken(WORKS, rollout(json!({"type": "ProgressivePerGroup", "progressivePerGroup": {}})), None),
        taken(WORKS, progressive(groups), None),
        refused(WORKS, progressive(json!({"maxConcurrency": "x"}))),
        refused(WORKS, progressive(json!({"maxFailures": "101%"}))),
        refused(WORKS, progressive(json!({"progressDeadline": "soon"}))),
        taken(
            WORKS,
            progressive(json!({"progressDeadline": "10m", "minSuccessTime": "5s", "maxConcurrency": 2})),
            None,
        ),
    ]
}
