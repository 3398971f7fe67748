//! Which users may write which fields of clusters.

use anyhow::{Context as _, Result, ensure};
use http::{Method, StatusCode};
use hub_tests::http::{Client, Response};
use hub_tests::kubectl::Kubectl;
use hub_tests::promtool;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use kit::lines;
use serde_json::{Value, json};

use super::agent::ask;
use super::{Registration, SET_RIGHT, accept, exists, managed, took, wait_condition};
use crate::fixture::{SOON, apply, event};

const GROUP: &str = "cluster.open-cluster-management.io";
const SET: &str = "cluster.open-cluster-management.io/clusterset";
const ACCEPTED: &str = "HubAcceptedManagedCluster";
const UNREACHABLE: &str = "cluster.open-cluster-management.io/unreachable";
const UNAVAILABLE: &str = "cluster.open-cluster-management.io/unavailable";
/// A right is missing.
const NO: StatusCode = StatusCode::FORBIDDEN;
/// No user may do it.
const BAD: StatusCode = StatusCode::UNPROCESSABLE_ENTITY;
/// The chart's policies, by the ends of their names.
pub const POLICIES: [&str; 3] = ["managedclusters", "managedclustersetbindings", "limits"];
const AUTOMATIC: &str = "open-cluster-management.io/automatically-accepted-on";

/// Grants rules to the bootstrap user, so that only admission refuses its requests.
fn grant(testbed: &Testbed, place: &str, name: &str, rules: &Value) -> Result<()> {
    let name = format!("{place}-{name}");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": super::BOOTSTRAP, "namespace": place}]});
    apply(testbed, &[role, binding])
}

/// A user that RBAC lets write clusters and bindings, but neither accept clusters nor join or bind
/// sets.
struct Writer {
    client: Client,
    authorization: String,
    place: &'static str,
}

/// The status code and the text of the hub's answer.
type Answer = (StatusCode, String);

impl Writer {
    fn of(testbed: &Testbed, place: &'static str) -> Result<Self> {
        let token = testbed.hub.server.service_account_token(place, super::BOOTSTRAP)?;
        let client = testbed.hub.server.client(None);
        Ok(Self { client, authorization: format!("Bearer {token}"), place })
    }

    fn send(&self, method: &Method, path: &str, kind: &str, document: &Value) -> Result<Answer> {
        let headers = [("authorization", self.authorization.as_str()), ("content-type", kind)];
        let path = format!("/apis/{GROUP}/{path}");
        let answer = self.client.send(method, &path, &headers, document.to_string().into())?;
        Ok((answer.status, answer.text()))
    }

    fn create(&self, document: &Value) -> Result<Answer> {
        let path = match document["kind"].as_str() {
            Some("ManagedCluster") => "v1/managedclusters".to_owned(),
            _ => format!("v1beta2/namespaces/{}/managedclustersetbindings", self.place),
        };
        self.send(&Method::POST, &path, "application/json", document)
    }

    fn patch(&self, change: &Value) -> Result<Answer> {
        self.send(&Method::PATCH, "v1/managedclusters/guarded", "application/merge-patch+json", change)
    }

    /// Waits until the hub enforces the policies that were just installed.
    fn wait_enforced(&self) -> Result<()> {
        let (cluster, merge) = ("v1/managedclusters/guarded?dryRun=All", "application/merge-patch+json");
        let bindings = format!("v1beta2/namespaces/{}/managedclustersetbindings?dryRun=All", self.place);
        let (accepts, binding) = (json!({"spec": {"hubAcceptsClient": true}}), self.binding("gold", "gold"));
        wait::until("the policies", SOON, || {
            expect(&self.send(&Method::PATCH, cluster, merge, &accepts)?, NO, "may not accept")?;
            expect(&self.send(&Method::POST, &bindings, "application/json", &binding)?, NO, "may not bind")
        })
    }

    fn moves_to(&self, set: Option<&str>) -> Result<Answer> {
        self.patch(&json!({"metadata": {"labels": {SET: set}}}))
    }

    fn binding(&self, name: &str, set: &str) -> Value {
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSetBinding",
            "metadata": {"name": name, "namespace": self.place}, "spec": {"clusterSet": set}})
    }
}

/// Checks the status code as well as the text: 403 if a right is missing, 422 if no user may do it.
fn expect((status, told): &Answer, expected: StatusCode, word: &str) -> Result<()> {
    ensure!(*status == expected && told.contains(word), "{status}, not {expected} {word}: {told}");
    Ok(())
}

pub fn refused(testbed: &Testbed) -> Result<()> {
    let place = "admission-place";
    let _registration = Registration::start(testbed, place)?;
    let writer = Writer::of(testbed, place)?;
    // Not all resources of the group, which would include `managedclustersets/join` and
    // `managedclustersets/bind`.
    let named = ["managedclusters", "managedclustersetbindings"];
    grant(testbed, place, "all", &json!([{"apiGroups": [GROUP], "resources": named, "verbs": ["*"]}]))?;
    expect(&writer.create(&managed("guarded"))?, StatusCode::CREATED, "guarded")?;
    writer.wait_enforced()?;
    created(&writer)?;
    changed(&writer)?;
    allowed(testbed, &writer)?;
    leaves(testbed, &writer)?;
    hubs_taints(testbed)?;
    crowded(testbed, &writer)?;
    stubborn(testbed)?;
    testbed.hub.server.delete("managedclusters guarded crowded stubborn stubborn-first")
}

/// A change of taints.
type Change<'a> = dyn Fn(&mut Vec<Value>) + 'a;

/// An agent may write taints, but not the hub's own: neither since when its cluster is unreachable
/// nor which tolerations fit is its to say.
fn hubs_taints(testbed: &Testbed) -> Result<()> {
    let hub = testbed.hub.server.kubectl();
    let replace = |change: &Change<'_>| -> Result<Response> {
        let mut cluster = super::get(testbed, "managedcluster guarded")?;
        change(cluster["spec"]["taints"].as_array_mut().context("its taints")?);
        let agent = [
            ("impersonate-user", "system:open-cluster-management:guarded:agent"),
            ("impersonate-group", "system:open-cluster-management:guarded"),
        ];
        hub.send(&Method::PUT, &format!("/apis/{GROUP}/v1/managedclusters/guarded"), &agent, &cluster)
    };
    let hubs = |taint: &Value| taint["key"] == UNREACHABLE;
    let change = |taints: &mut Vec<Value>, change: fn(&mut Value)| {
        taints.iter_mut().filter(|taint| hubs(taint)).for_each(change);
    };
    // The controllers may write the object at any time.
    let own = json!({"key": "own", "effect": "NoSelect"});
    wait::until("the agent's rights", SOON, || replace(&|taints| taints.push(own.clone()))?.expect(StatusCode::OK))?;
    let drop_time = |taint: &mut Value| drop(taint.as_object_mut().and_then(|fields| fields.remove("timeAdded")));
    let refused: [&Change<'_>; 4] = [
        &|taints| taints.retain(|taint| !hubs(taint)),
        &|taints| change(taints, drop_time),
        &|taints| change(taints, |taint| taint["value"] = json!("x")),
        &|taints| taints.push(json!({"key": UNAVAILABLE, "effect": "NoSelect"})),
    ];
    let before = since(testbed)?;
    for (number, change) in refused.into_iter().enumerate() {
        wait::until("a refusal", SOON, || {
            let answer = replace(change)?;
            let is_refused = answer.status.is_client_error() && answer.text().contains("the hub's own");
            ensure!(is_refused, "{number}: {}: {}", answer.status, answer.text());
            Ok(())
        })?;
    }
    let after = since(testbed)?;
    ensure!(after == before && before.is_string(), "{before}, and now {after}");
    Ok(())
}

/// Since when a cluster is unreachable.
fn since(testbed: &Testbed) -> Result<Value> {
    let cluster = super::get(testbed, "managedcluster guarded")?;
    let taints = cluster["spec"]["taints"].as_array().context("its taints")?;
    let found = taints.iter().find(|taint| taint["key"] == UNREACHABLE);
    Ok(found.map(|taint| taint["timeAdded"].clone()).unwrap_or_default())
}

/// Of a cluster whose agent leaves no room for a taint, the hub's taint is set and every decision
/// carried out.
fn crowded(testbed: &Testbed, writer: &Writer) -> Result<()> {
    let of = |taints: Vec<Value>| {
        let mut cluster = managed("crowded");
        cluster["spec"]["taints"] = taints.into();
        cluster
    };
    let hubs = || json!({"key": UNREACHABLE, "effect": "PreferNoSelect"});
    let too_many = [many(64), vec![hubs(), hubs(), hubs()]].concat();
    expect(&writer.create(&of(too_many))?, BAD, "at most 64")?;
    expect(&writer.create(&of(many(64)))?, StatusCode::CREATED, "crowded")?;
    wait::until_true("the hub's taint", SOON, || Ok(taints(testbed, "crowded")?.contains(&UNREACHABLE.to_owned())))?;
    for (accepted, condition) in [(true, "True/HubClusterAdminAccepted"), (false, "False/HubClusterAdminDenied")] {
        accept(testbed, "crowded", accepted)?;
        wait_condition(testbed, "crowded", ACCEPTED, condition)?;
        ensure!(taints(testbed, "crowded")?.len() == 65);
    }
    Ok(())
}

/// The hub refuses each change of a cluster's taints: its Event says so, and the cluster is
/// accepted and denied all the same.
fn stubborn(testbed: &Testbed) -> Result<()> {
    let kind = |kind: &str, spec: Value| {
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "stubborn"},
            "spec": spec})
    };
    let resources = json!([{"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["UPDATE"],
        "resources": ["managedclusters"]}]);
    let expression = "!object.metadata.name.startsWith('stubborn') \
        || object.?spec.?taints.orValue([]) == oldObject.?spec.?taints.orValue([])";
    let policy = json!({"matchConstraints": {"resourceRules": resources},
        "validations": [{"expression": expression, "message": "no taints here"}]});
    apply(
        testbed,
        &[
            kind("ValidatingAdmissionPolicy", policy),
            kind("ValidatingAdmissionPolicyBinding", json!({"policyName": "stubborn", "validationActions": ["Deny"]})),
        ],
    )?;
    apply(testbed, &[managed("stubborn-first")])?;
    let path = format!("/apis/{GROUP}/v1/managedclusters/stubborn-first?dryRun=All");
    let change = json!({"spec": {"taints": [{"key": "a", "effect": "NoSelect"}]}});
    wait::until_true("the policy", SOON, || {
        let answer = testbed.hub.server.ask(&Method::PATCH, &path, "application/merge-patch+json", &change)?;
        Ok(answer.text().contains("no taints here"))
    })?;
    apply(testbed, &[managed("stubborn")])?;
    for (accepted, condition) in [(true, "True/HubClusterAdminAccepted"), (false, "False/HubClusterAdminDenied")] {
        accept(testbed, "stubborn", accepted)?;
        wait_condition(testbed, "stubborn", ACCEPTED, condition)?;
    }
    let note = wait::until("an Event", SOON, || event(testbed, "default", "stubborn", "AcceptanceFailed"))?;
    ensure!(note.contains("no taints here"), "{note}");
    let finalizers = super::get(testbed, "managedcluster stubborn")?["metadata"]["finalizers"].clone();
    ensure!(finalizers.to_string().contains("api-resource-cleanup"), "{finalizers}");
    testbed.hub.server.delete("validatingadmissionpolicy,validatingadmissionpolicybinding stubborn")
}

/// The keys of a cluster's taints.
fn taints(testbed: &Testbed, name: &str) -> Result<Vec<String>> {
    let cluster = super::get(testbed, &format!("managedcluster {name}"))?;
    let taints = cluster["spec"]["taints"].as_array().cloned().unwrap_or_default();
    Ok(taints.iter().filter_map(|taint| taint["key"].as_str().map(str::to_owned)).collect())
}

/// `taints` taints without times.
fn many(taints: usize) -> Vec<Value> {
    (0..taints).map(|number| json!({"key": format!("k{number}"), "effect": "NoSelect"})).collect()
}

fn created(writer: &Writer) -> Result<()> {
    let with = |path: &str, value: Value| {
        let mut cluster = managed("other");
        *cluster.pointer_mut(path).expect("a field of it") = value;
        cluster
    };
    let metadata = |key: &str, value: Value| with("/metadata", json!({"name": "other", key: value}));
    let urls = |url: &str| json!({"hubAcceptsClient": false, "managedClusterClientConfigs": [{"url": url}]});
    let taint = json!({"key": "a", "effect": "NoSelect", "timeAdded": "2020-01-01T00:00:00Z"});
    let probe = |policy: &str| metadata("annotations", json!({"cluster.core.oam.dev/admission-probe": policy}));
    for (document, status, word) in [
        // If it were stored, no user could update it any more.
        (probe(""), NO, "is in force"),
        (probe("managedclustersetbindings"), NO, "is in force"),
        (with("/spec/hubAcceptsClient", json!(true)), NO, "may not accept"),
        (with("/metadata/name", json!("a.b")), BAD, "name of a namespace"),
        (with("/metadata/name", json!("a".repeat(64))), BAD, "name of a namespace"),
        (with("/metadata/name", json!("Upper")), BAD, "a lowercase RFC 1123 subdomain"),
        (with("/metadata/name", json!("work")), BAD, "are reserved"),
        (with("/metadata/name", json!("registration")), BAD, "are reserved"),
        (with("/spec", json!({"taints": many(65)})), BAD, "at most 64"),
        (with("/spec", urls("http://m:6443")), BAD, "must be https"),
        (with("/spec", urls("https://")), BAD, "must be https"),
        (metadata("labels", json!({SET: "gold"})), NO, "may not move"),
        (metadata("annotations", json!({AUTOMATIC: "never"})), NO, "may not accept"),
        (with("/spec", json!({"taints": [taint]})), NO, "timeAdded"),
        (writer.binding("gold", "gold"), NO, "may not bind"),
        (writer.binding("gold", "silver"), BAD, "must be metadata.name"),
    ] {
        expect(&writer.create(&document)?, status, word).with_context(|| document.to_string())?;
    }
    Ok(())
}

fn changed(writer: &Writer) -> Result<()> {
    for (change, status, word) in [
        (json!({"spec": {"hubAcceptsClient": true}}), NO, "may not accept"),
        (json!({"metadata": {"labels": {SET: "gold"}}}), NO, "may not move"),
        (json!({"spec": {"managedClusterClientConfigs": [{"url": "http://m"}]}}), BAD, "must be https"),
        (json!({"metadata": {"annotations": {AUTOMATIC: "x"}}}), NO, "may not accept"),
        // Values that the agent may write do not prevent an administrator's writes.
        (json!({"spec": {"taints": many(64)}}), StatusCode::OK, ""),
        (json!({"spec": {"taints": many(32)}}), StatusCode::OK, ""),
        // Writes that concern only the cluster itself are allowed.
        (json!({"metadata": {"labels": {"env": "test"}}}), StatusCode::OK, ""),
        (json!({"spec": {"managedClusterClientConfigs": [{"url": "https://m:6443"}]}}), StatusCode::OK, ""),
    ] {
        expect(&writer.patch(&change)?, status, word).with_context(|| change.to_string())?;
    }
    Ok(())
}

fn allowed(testbed: &Testbed, writer: &Writer) -> Result<()> {
    let rights = json!([
        {"apiGroups": ["register.open-cluster-management.io"], "resources": ["managedclusters/accept"],
            "verbs": ["update"], "resourceNames": ["guarded"]},
        {"apiGroups": [GROUP], "resources": ["managedclustersets/join"], "verbs": ["create"],
            "resourceNames": ["gold", "default"]},
        {"apiGroups": [GROUP], "resources": ["managedclustersets/bind"], "verbs": ["create"],
            "resourceNames": ["gold"]}]);
    grant(testbed, writer.place, "words", &rights)?;
    let accepts = json!({"spec": {"hubAcceptsClient": true}});
    wait::until_true("who may", SOON, || Ok(writer.patch(&accepts)?.0 == StatusCode::OK))?;
    expect(&writer.moves_to(Some("gold"))?, StatusCode::OK, "gold")?;
    expect(&writer.moves_to(Some("silver"))?, NO, "may not move")?;
    expect(&writer.create(&writer.binding("gold", "gold"))?, StatusCode::CREATED, "gold")?;
    wait::until_true("that there is no such set", SOON, || {
        let binding = super::get(testbed, &format!("managedclustersetbinding gold -n {}", writer.place))?;
        Ok(binding["status"]["conditions"][0]["reason"] == "ClusterSetNotFound")
    })
}

/// Leaving a set needs the same right as joining it.
fn leaves(testbed: &Testbed, writer: &Writer) -> Result<()> {
    let set =
        || Ok::<_, anyhow::Error>(super::get(testbed, "managedcluster guarded")?["metadata"]["labels"][SET].clone());
    wait::timely("the set of those without one", SET_RIGHT, || {
        took(|| expect(&writer.moves_to(None)?, StatusCode::OK, "guarded"), || Ok(set()? == "default"))
    })?;
    testbed.hub.server.patch("managedcluster guarded", &json!({"metadata": {"labels": {SET: "silver"}}}))?;
    // A user that may put clusters into "gold" and "default" cannot take one out of "silver".
    for to in [Some("gold"), Some("default"), Some(""), None] {
        expect(&writer.moves_to(to)?, NO, "may not move").with_context(|| format!("from silver to {to:?}"))?;
    }
    let set = set()?;
    ensure!(set == "silver", "{set}");
    Ok(())
}

/// Deletes each policy in turn, or its binding, and installs it again.
pub fn removed(testbed: &Testbed) -> Result<()> {
    let registration = Registration::start(testbed, "open-place")?;
    apply(testbed, &[managed("open1")])?;
    accept(testbed, "open1", true)?;
    wait_condition(testbed, "open1", ACCEPTED, "True/HubClusterAdminAccepted")?;
    let clusters = ["open2", "open3", "open4"];
    for (number, (policy, cluster)) in POLICIES.into_iter().zip(clusters).enumerate() {
        let kind = if number == 1 { "validatingadmissionpolicy" } else { "validatingadmissionpolicybinding" };
        let name = format!("door-cluster-gateway-controllers-{policy}");
        testbed.hub.server.delete(&format!("{kind} {name}"))?;
        // The previously deleted one is installed again here.
        let others = registration.policies.iter().filter(|object| object["metadata"]["name"] != name.as_str());
        apply(testbed, &others.cloned().collect::<Vec<_>>())?;
        without(testbed, &registration, policy, cluster)?;
    }
    apply(testbed, &registration.policies)?;
    wait_in_force(&registration, |_| true)?;
    promtool::evaluated(&registration.running.metrics()?, &["ClusterGatewayAdmissionMissing"])?;
    clusters
        .iter()
        .try_for_each(|cluster| wait_condition(testbed, cluster, ACCEPTED, "True/HubClusterAdminAccepted"))?;
    wait::until_true("readiness", SOON, || Ok(!registration.running.get("/readyz?verbose")?.contains("[-]")))?;
    ensure!(exists(testbed, "rolebinding open-cluster-management:managedcluster:open1:work -n open1")?);
    testbed.hub.server.delete("managedclusters open1 open2 open3 open4")
}

/// No cluster is accepted without `policy`.
fn without(testbed: &Testbed, registration: &Registration, policy: &str, cluster: &str) -> Result<()> {
    // The hub takes a moment to stop enforcing it, and the controllers to see that.
    wait_in_force(registration, |one| one != policy)?;
    let told = registration.running.get("/readyz?verbose")?;
    for one in POLICIES {
        let is_missing = told.contains(&format!("[-]ocm-admission-{one} "));
        ensure!(is_missing == (one == policy), "{policy} is gone, and of {one} it says: {told}");
    }
    apply(testbed, &[managed(cluster)])?;
    accept(testbed, cluster, true)?;
    wait_condition(testbed, cluster, ACCEPTED, "False/Error")?;
    let note = wait::until("an Event", SOON, || event(testbed, "default", cluster, "AcceptanceFailed"))?;
    let named = format!("the admission policy {policy} is not in force");
    ensure!(note.contains(&named) && lines::has(&testbed.log()?, &named), "{note}");
    ensure!(!exists(testbed, &format!("namespace {cluster}"))?, "it was accepted without {policy}");
    Ok(())
}

/// Waits for the metric of each policy.
fn wait_in_force(registration: &Registration, is_in_force: impl Fn(&str) -> bool) -> Result<()> {
    wait::until("the metrics of admission", SOON, || {
        for policy in POLICIES {
            let labels = format!("policy=\"{policy}\"");
            let told = registration.running.metric("cluster_gateway_controllers_ocm_admission", &labels)? > 0.5;
            ensure!(told == is_in_force(policy), "{policy}: {told}");
        }
        Ok(())
    })
}

/// What a stolen token of the controllers may not do, although RBAC allows it to the controllers.
pub fn limits(testbed: &Testbed) -> Result<()> {
    let place = "limits-place";
    let _registration = Registration::start(testbed, place)?;
    let hub = testbed.hub.server.kubectl();
    let me = format!("system:serviceaccount:{place}:door-cluster-gateway-controllers");
    let send = |method: &Method, path: &str, body: &Value| hub.send(method, path, &[("impersonate-user", &*me)], body);
    ask(&hub, "limited", "limited-first")?;
    apply(
        testbed,
        &[
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "limits-theirs"}, "rules": []}),
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "limits-theirs", "namespace": place}}),
        ],
    )?;
    // The hub takes a moment to enforce the policy.
    let rule = json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]});
    let own = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "limits-own"}, "rules": [rule]});
    let (roles, theirs) = ("/apis/rbac.authorization.k8s.io/v1/clusterroles", "limits-theirs");
    wait::until_true("the policy", SOON, || {
        Ok(send(&Method::POST, &format!("{roles}?dryRun=All"), &own)?.text().contains("of clusters only"))
    })?;
    let mut approved = super::get(testbed, "csr limited-first")?;
    approved["status"]["conditions"] = json!([{"type": "Approved", "status": "True", "reason": "Limits"}]);
    let approval = "/apis/certificates.k8s.io/v1/certificatesigningrequests/limited-first/approval";
    // The right to update does not say which Leases are the controllers' own.
    let lease = super::get(testbed, &format!("lease {theirs} -n {place}"))?;
    for (method, path, body, word) in [
        (Method::PUT, approval, &approved, "agents and of users in autoApproveUsers only"),
        (Method::DELETE, &format!("{roles}/{theirs}"), &Value::Null, "of clusters only"),
        (Method::POST, roles, &own, "of clusters only"),
        (
            Method::PUT,
            &format!("/apis/coordination.k8s.io/v1/namespaces/{place}/leases/{theirs}"),
            &lease,
            "their own Lease",
        ),
    ] {
        let answer = send(&method, path, body)?;
        let is_refused = answer.status.is_client_error() && answer.text().contains(word);
        ensure!(is_refused, "{method} {path}: {}: {}", answer.status, answer.text());
    }
    applied(&hub, &me, &format!("{roles}/{theirs}"))?;
    secrets(testbed, place, &me)?;
    testbed.hub.server.delete("clusterrole limits-theirs")
}

/// The same by server-side apply, as the controllers write.
fn applied(hub: &Kubectl, me: &str, role: &str) -> Result<()> {
    let labelled = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "limits-theirs", "labels": {"open-cluster-management.io/cluster-name": "x"}}});
    let headers = [("impersonate-user", me), ("content-type", "application/apply-patch+yaml")];
    let path = format!("{role}?fieldManager=limits&force=false");
    let answer = hub.send(&Method::PATCH, &path, &headers, &labelled)?;
    ensure!(answer.text().contains("of clusters only"), "{}: {}", answer.status, answer.text());
    Ok(())
}

/// RBAC may let the controllers write Secrets anywhere, for other parts; the policy limits all of
/// them.
fn secrets(testbed: &Testbed, place: &str, me: &str) -> Result<()> {
    let rules = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}]);
    testbed.hub.server.apply(&[json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "limits-secrets"}, "rules": rules})])?;
    testbed.hub.server.bind("limits-secrets", "limits-secrets", (place, crate::rights::NAME))?;
    let (hub, secret) = (testbed.hub.server.kubectl(), json!({"metadata": {"name": "limits-secret"}}));
    let create = |namespace: &str| {
        let path = format!("/api/v1/namespaces/{namespace}/secrets?dryRun=All");
        hub.send(&Method::POST, &path, &[("impersonate-user", me)], &secret)
    };
    wait::until("that they may write where clusters are", SOON, || create(place)?.expect(StatusCode::CREATED))?;
    for namespace in ["default", "kube-system"] {
        let told = create(namespace)?.text();
        ensure!(told.contains("write Secrets of clusters only"), "{namespace}: {told}");
    }
    testbed.hub.server.delete("clusterrole,clusterrolebinding limits-secrets")
}
