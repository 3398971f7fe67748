//! No right that the chart grants to a source can be left out: without it, the program requests it
//! and is refused.
//!
//! Each right has its own namespace, whose controllers lack only that right. The controllers of all
//! namespaces follow the same objects, through the same life.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::helm;
use hub_tests::testbed::Testbed;
use hub_tests::trouble::Trouble;
use hub_tests::{tools, wait};
use serde_json::{Value, json};

use super::{NAME, as_account, grant, is_refused_in, rendered, started_over, without_right};
use crate::fixture::{
    SOON, apply, definition, event, kubeconfig_secret, member_kubeconfig, namespace, wait_gone, wait_secret,
};
use crate::others::value;
use crate::removal;

/// A source, with the resources that only its rules grant.
struct Source {
    /// The prefix of the namespaces' names; the chart is rendered for the namespace with exactly
    /// this name.
    place: &'static str,
    values: &'static str,
    /// The resources of the source's own rules; all resources if empty.
    of: &'static [&'static str],
    /// The objects of one valid cluster with this token, and of one that is refused for the reason
    /// with this number.
    objects: fn(&Testbed, &str, usize) -> Result<Vec<Value>>,
    /// The valid cluster's object, as kubectl names it.
    whole: &'static str,
    refused: Option<Broken>,
}

/// The object of a refused cluster; its name is `broken`.
struct Broken {
    /// The object, as kubectl names it.
    object: &'static str,
    /// The namespace of the Events about it.
    events_in: &'static str,
}

/// A right in a role: `role` is the role's index among the objects, `rule` the rule's in the role.
#[derive(Debug, Clone)]
struct Right {
    role: usize,
    rule: usize,
    resource: String,
    verb: String,
}

const CLUSTER: &str = "whole";

pub fn kubeconfig(testbed: &Testbed) -> Result<()> {
    apply(testbed, &[namespace("rights-kubeconfig-fleet")])?;
    none_can_be_left_out(
        testbed,
        &Source {
            place: "rights-kubeconfig",
            values: "controllers.sources.kubeconfig=true,controllers.watchNamespaces={rights-kubeconfig-fleet}",
            of: &[],
            objects: |testbed, token, reason| {
                let fleet = "rights-kubeconfig-fleet";
                let refused = ["{}", "a: a: a"][reason];
                Ok(vec![
                    kubeconfig_secret(fleet, CLUSTER, &member_kubeconfig(testbed, token)),
                    kubeconfig_secret(fleet, "broken", refused),
                ])
            },
            whole: "secret whole -n rights-kubeconfig-fleet",
            refused: Some(Broken {
                object: "secret broken -n rights-kubeconfig-fleet",
                events_in: "rights-kubeconfig-fleet",
            }),
        },
    )
}

pub fn cluster_api(testbed: &Testbed) -> Result<()> {
    apply(testbed, &[namespace("rights-capi-fleet")])?;
    none_can_be_left_out(
        testbed,
        &Source {
            place: "rights-capi",
            values: "controllers.sources.capi=true,controllers.watchNamespaces={rights-capi-fleet}",
            of: &["clusters", "customresourcedefinitions"],
            objects: |testbed, token, reason| {
                let fleet = "rights-capi-fleet";
                let kubeconfigs = [member_kubeconfig(testbed, token), ["{}", "a: a: a"][reason].to_owned()];
                let mut all = Vec::new();
                for (name, kubeconfig) in [CLUSTER, "broken"].into_iter().zip(kubeconfigs) {
                    let cluster = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                    "metadata": {"name": name, "namespace": fleet},
                    "spec": {"controlPlaneEndpoint": {"host": "10.9.8.7", "port": 6443}}});
                    apply(testbed, std::slice::from_ref(&cluster))?;
                    let found = testbed.hub.server.read(&format!("clusters.cluster.x-k8s.io {name} -n {fleet}"))?;
                    all.push(json!({"apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
                    "metadata": {"name": format!("{name}-kubeconfig"), "namespace": fleet,
                        "labels": {"cluster.x-k8s.io/cluster-name": name},
                        "ownerReferences": [{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
                            "name": name, "uid": found["metadata"]["uid"]}]},
                    "stringData": {"value": kubeconfig}}));
                    all.push(cluster);
                }
                Ok(all)
            },
            whole: "clusters.cluster.x-k8s.io whole -n rights-capi-fleet",
            refused: Some(Broken {
                object: "clusters.cluster.x-k8s.io broken -n rights-capi-fleet",
                events_in: "rights-capi-fleet",
            }),
        },
    )
}

pub fn karmada(testbed: &Testbed) -> Result<()> {
    let kind = definition("cluster.karmada.io", "Cluster", "v1alpha1", "Cluster");
    apply(testbed, &[namespace("karmada-cluster"), kind])?;
    none_can_be_left_out(
        testbed,
        &Source {
            place: "rights-karmada-less",
            values: "controllers.sources.karmada=true",
            of: &["clusters", "secrets"],
            objects: |_, token, reason| {
                let cluster = |name: &str, endpoint: &str| {
                    json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
                    "spec": {"syncMode": "Push", "apiEndpoint": endpoint,
                        "secretRef": {"namespace": "karmada-cluster", "name": CLUSTER}}})
                };
                let secret = json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": CLUSTER, "namespace": "karmada-cluster"}, "stringData": {"token": token}});
                let refused = ["https://169.254.169.254", "http://10.9.8.7"][reason];
                Ok(vec![secret, cluster(CLUSTER, "https://10.9.8.7"), cluster("broken", refused)])
            },
            whole: "clusters.cluster.karmada.io whole",
            refused: Some(Broken { object: "clusters.cluster.karmada.io broken", events_in: "default" }),
        },
    )
}

pub fn kubefed(testbed: &Testbed) -> Result<()> {
    let _alone = removal::alone();
    testbed.hub.server.apply_text(&tools::kubefed_kind()?)?;
    apply(testbed, &[namespace("rights-kubefed-fleet")])?;
    none_can_be_left_out(
        testbed,
        &Source {
            place: "rights-kubefed",
            values: "controllers.sources.kubefed=true,controllers.kubefedNamespace=rights-kubefed-fleet",
            of: &["kubefedclusters", "secrets"],
            objects: |_, token, reason| {
                let fleet = "rights-kubefed-fleet";
                let cluster = |name: &str, endpoint: &str| {
                    json!({"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
                    "metadata": {"name": name, "namespace": fleet},
                    "spec": {"apiEndpoint": endpoint, "secretRef": {"name": CLUSTER}}})
                };
                let secret = json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": CLUSTER, "namespace": fleet}, "stringData": {"token": token}});
                let refused = ["https://169.254.169.254", "http://10.9.8.7"][reason];
                Ok(vec![secret, cluster(CLUSTER, "https://10.9.8.7"), cluster("broken", refused)])
            },
            whole: "kubefedclusters.core.kubefed.io whole -n rights-kubefed-fleet",
            refused: Some(Broken {
                object: "kubefedclusters.core.kubefed.io broken -n rights-kubefed-fleet",
                events_in: "rights-kubefed-fleet",
            }),
        },
    )
}

pub fn ocm(testbed: &Testbed) -> Result<()> {
    apply(testbed, &[namespace(CLUSTER)])?;
    none_can_be_left_out(
        testbed,
        &Source {
            place: "rights-ocm",
            values: "controllers.sources.ocm=true,controllers.ocm.credential=rights-reader",
            of: &["managedclusters", "secrets"],
            objects: |testbed, token, _| {
                let authority = std::fs::read_to_string(testbed.member.server.authority_file())?;
                let cluster = |name: &str, url: &str| {
                    json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                    "metadata": {"name": name}, "spec": {"hubAcceptsClient": true, "managedClusterClientConfigs": [
                        {"url": url, "caBundle": STANDARD.encode(&authority)}]}})
                };
                let secret = json!({"apiVersion": "v1", "kind": "Secret",
                "metadata": {"name": "rights-reader", "namespace": CLUSTER,
                    "labels": {"authentication.open-cluster-management.io/is-managed-serviceaccount": "true"}},
                "stringData": {"ca.crt": authority, "token": token}});
                Ok(vec![cluster(CLUSTER, &testbed.member.server.url()), secret])
            },
            whole: "managedcluster whole",
            refused: None,
        },
    )?;
    tokens_alone(testbed, "rights-ocm")
}

/// The source may read only the hub's Secrets of one name, even beside other sources that watch
/// some namespaces.
fn tokens_alone(testbed: &Testbed, place: &str) -> Result<()> {
    for (namespace, name, expected) in
        [(CLUSTER, "rights-reader", true), (CLUSTER, "other", false), (CLUSTER, "", false), ("", "", false)]
    {
        for verb in ["get", "list", "watch"] {
            let what = json!({"verb": verb, "resource": "secrets", "namespace": namespace, "name": name});
            ensure!(testbed.hub.server.may(place, NAME, &what)? == expected, "{what}: not {expected}");
        }
    }
    let values =
        "controllers.sources.ocm=true,controllers.sources.capi=true,controllers.watchNamespaces={rights-capi-fleet}";
    for object in rendered(testbed, place, values)? {
        let is_everywhere = object["kind"] == "ClusterRoleBinding"
            && object["roleRef"]["name"].as_str().is_some_and(|role| role.ends_with(":secrets"));
        ensure!(!is_everywhere, "{object}");
    }
    Ok(())
}

fn none_can_be_left_out(testbed: &Testbed, source: &Source) -> Result<()> {
    let hub = &testbed.hub.server;
    let whole = rendered(testbed, source.place, source.values)?;
    apply(testbed, &[namespace(source.place)])?;
    let rights = source.rights(&whole);
    ensure!(!rights.is_empty(), "the chart grants {} nothing of its own", source.place);
    let mark = testbed.audit.mark()?;
    // A program with all rights shows when each step is done.
    grant(testbed, source.place, &whole)?;
    let mut running = vec![as_account(testbed, source.place, &whole)?];
    // The hub itself sends lists as events of watches, without the right to list.
    let paged = Trouble::start(hub.client(None))?;
    for (number, right) in rights.iter().enumerate() {
        let place = place(source, number);
        let objects = source.lacking(&whole, right, &place)?;
        apply(testbed, &[namespace(&place)])?;
        if right.verb == "list" {
            running.push(started_over(testbed, &place, &objects, &paged)?);
            continue;
        }
        grant(testbed, &place, &objects)?;
        running.push(as_account(testbed, &place, &objects)?);
        if right.is_of_standby() {
            running.push(as_account(testbed, &place, &objects)?);
        }
    }
    apply(testbed, &(source.objects)(testbed, "first", 0)?)?;
    wait_secret(testbed, source.place, CLUSTER)?;
    if let Some(Broken { events_in, .. }) = &source.refused {
        wait::until("an Event", SOON, || event(testbed, events_in, "broken", "ClusterRefused"))?;
    }
    apply(testbed, &(source.objects)(testbed, "second", 1)?)?;
    wait::until_true("the second token", SOON, || Ok(value(testbed, source.place, CLUSTER, "token")? == "second"))?;
    // Without these rights, the controllers keep the cluster of a deleted object, or do not trust
    // the deletion. They use them only now.
    let (at_the_end, before): (Vec<_>, Vec<_>) =
        rights.iter().enumerate().partition(|(_, right)| right.verb == "delete" || right.is_of_kinds("get"));
    source.wait_missed(testbed, mark, before)?;
    for object in [source.whole].into_iter().chain(source.refused.as_ref().map(|broken| broken.object)) {
        hub.delete(object)?;
    }
    wait_gone(testbed, source.place, CLUSTER)?;
    source.wait_missed(testbed, mark, at_the_end)?;
    super::nothing_refused(testbed, source.place)
}

fn place(source: &Source, number: usize) -> String {
    format!("{}-{number}", source.place)
}

// === impl Right ===

impl Right {
    fn is_of_kinds(&self, verb: &str) -> bool {
        self.resource == "customresourcedefinitions" && self.verb == verb
    }

    /// Whether it is the right that a standby needs to wait for the leader's Lease.
    fn is_of_standby(&self) -> bool {
        self.resource == "leases" && self.verb == "watch"
    }

    /// Whether the hub has refused it in this namespace: reads are in the programs' `log`, writes
    /// in the hub's audit log.
    fn is_missed(&self, testbed: &Testbed, log: &str, place: &str, mark: usize) -> bool {
        if is_refused_in(log, place, &self.verb, &self.resource) {
            return true;
        }
        // A program that has written nothing has no refused writes.
        let refused = testbed.audit.refusals(place, mark).unwrap_or_default();
        let (verb, path) = (format!("{:?}", self.verb), format!("/{}", self.resource));
        refused.iter().any(|line| line.contains(&verb) && line.contains(&path))
    }
}

// === impl Source ===

impl Source {
    /// Waits until each of these rights is missed in its namespace.
    fn wait_missed(&self, testbed: &Testbed, mark: usize, mut rights: Vec<(usize, &Right)>) -> Result<()> {
        wait::until("all rights to be missed", SOON, || {
            let log = testbed.log()?;
            rights.retain(|(number, right)| !right.is_missed(testbed, &log, &place(self, *number), mark));
            let names: Vec<_> = rights.iter().map(|(_, right)| format!("{} {}", right.verb, right.resource)).collect();
            ensure!(names.is_empty(), "nothing is missed without {names:?}: {rights:?}");
            Ok(())
        })
    }

    /// The granted rights, one by one.
    fn rights(&self, objects: &[Value]) -> Vec<Right> {
        let mut rights = Vec::new();
        for (role, object) in objects.iter().enumerate() {
            for (rule, granted) in object["rules"].as_array().into_iter().flatten().enumerate() {
                let list = |field: &str| -> Vec<String> {
                    let all = granted[field].as_array().into_iter().flatten();
                    all.filter_map(Value::as_str).map(str::to_owned).collect()
                };
                for resource in list("resources").into_iter().filter(|resource| self.is_own(object, resource)) {
                    let of_verb = |verb| Right { role, rule, resource: resource.clone(), verb };
                    rights.extend(list("verbs").into_iter().map(of_verb));
                }
            }
        }
        rights
    }

    /// Rights that every source needs are tested with the simplest source, which has no kind that
    /// may be missing.
    fn is_own(&self, role: &Value, resource: &str) -> bool {
        if self.of.is_empty() {
            return resource != "customresourcedefinitions";
        }
        self.of.contains(&resource) && role["kind"] == "ClusterRole"
    }

    /// The objects for another namespace, without one right.
    fn lacking(&self, whole: &[Value], right: &Right, place: &str) -> Result<Vec<Value>> {
        let mut objects = whole.to_vec();
        let rules = objects[right.role]["rules"].as_array_mut().context("rules")?;
        let narrowed = without_right(&rules[right.rule], (&right.resource, &right.verb));
        rules.splice(right.rule..=right.rule, narrowed);
        for object in objects.iter_mut().filter(|object| helm::RIGHTS.iter().any(|kind| object["kind"] == *kind)) {
            // A binding in a namespace that all share gets a name of its own.
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or(self.place).to_owned();
            if object["kind"] == "RoleBinding" && namespace != self.place {
                let name = format!("{}-{place}", object["metadata"]["name"].as_str().context("a name")?);
                object["metadata"]["name"] = name.into();
            }
        }
        let text = serde_json::to_string(&objects)?;
        // The names of the watched namespaces have the same prefix.
        let (fleet, mark) = (format!("{}-fleet", self.place), "THE-FLEET");
        let text = text.replace(&fleet, mark).replace(&format!("{place}\""), "THIS-PLACE\"");
        let text = text.replace(self.place, place).replace("THIS-PLACE", place).replace(mark, &fleet);
        ensure!(text.contains(NAME), "no account");
        Ok(serde_json::from_str(&text)?)
    }
}
