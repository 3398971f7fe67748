//! kubectl's reading commands: each prints through hub and gateway what it prints on the member.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Result, anyhow};
use hub_tests::testbed::Testbed;
use libtest_mimic::Trial;
use serde_json::json;

use crate::compare::{self, Ways};
use crate::fixture::Fixture;

/// Exit code and command line: one of each kind.
const SOME: &[(i32, &str)] = &[
    (0, "get pods -n reads -o wide"),
    (0, "get pods -n reads -o yaml"),
    (0, "get pods,configmaps,services,deployments -A -l suite=reads"),
    (0, "get configmaps -n reads -l suite=reads --chunk-size=3"),
    (0, "get nodes -o wide"),
    (1, "get pod absent -n reads"),
    (0, "describe deployment web -n reads"),
    (0, "logs -l app=web-0 -n reads --prefix"),
    (1, "logs absent -n reads"),
    (0, "explain deployment --recursive"),
    (0, "api-resources"),
    (0, "version -o yaml"),
    (0, "auth can-i --list -n reads"),
    (0, "auth whoami -o yaml"),
    (1, "top pods -n reads"),
];

/// More of them.
const MORE: &[(i32, &str)] = &[
    (0, "get pods -n reads"),
    (0, "get pod web-0 -n reads -o json"),
    (0, "get pods -n reads -o name --sort-by=.metadata.name"),
    (0, "get pods -n reads --field-selector=metadata.name=web-1 --show-labels"),
    (0, "get configmaps -n reads -l suite=reads --chunk-size=3 -o jsonpath={.items[*].metadata.name}"),
    (0, "get node node-a -o jsonpath={.status.addresses}"),
    (0, "get namespace reads -o yaml"),
    (0, "get pods -n empty"),
    (1, "get nosuchkind"),
    (0, "describe pod web-0 -n reads"),
    (0, "describe configmap settings-1 -n reads"),
    (0, "describe service web -n reads"),
    (0, "rollout history deployment/web -n reads"),
    (0, "logs web-0 -n reads"),
    (0, "logs web-0 -n reads --tail=1"),
    (1, "logs web-0 -n reads -c absent"),
    (0, "explain pod.spec.containers.ports"),
    (1, "explain nosuchkind"),
    (0, "api-resources --api-group=apps --verbs=delete -o wide"),
    (0, "api-versions"),
    (0, "auth can-i create pods -n reads"),
    (1, "top nodes"),
];

/// How many `ConfigMap`s there are, so that a list comes in several chunks.
const CONFIG_MAPS: usize = 12;
/// Time for the Deployment's pods.
const AVAILABLE: Duration = Duration::from_mins(1);

pub(crate) fn trials(fixture: &Arc<Fixture>, ways: Ways) -> Vec<Trial> {
    static PREPARED: OnceLock<Result<(), String>> = OnceLock::new();
    let trial = |&(status, line): &(i32, &'static str)| {
        ways.test(fixture, &format!("reads::{line}"), move |testbed| {
            let prepared = PREPARED.get_or_init(|| prepare(testbed).map_err(|error| format!("{error:#}")));
            prepared.as_ref().map_err(|error| anyhow!("{error}"))?;
            compare::everywhere(testbed, ways, status, |kubectl, _| kubectl.args(line.split(' '))).map(drop)
        })
    };
    let more = if ways == Ways::Dialled { MORE } else { &[] };
    SOME.iter().chain(more).map(trial).collect()
}

fn prepare(testbed: &Testbed) -> Result<()> {
    let (server, kubectl) = (&testbed.member.server, testbed.member.server.kubectl());
    let map = |number: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"number": format!("{number}")},
            "metadata": {"name": format!("settings-{number}"), "namespace": "reads", "labels": {"suite": "reads"}}})
    };
    server.create_namespace("reads")?;
    server.create_namespace("empty")?;
    testbed.member.run_pod("reads", "web-0", "one\ntwo\nthree\n")?;
    testbed.member.run_pod("reads", "web-1", "eins\nzwei\n")?;
    for pod in ["web-0", "web-1"] {
        server.label(&format!("pod {pod} -n reads suite=reads"))?;
    }
    kubectl.ok("create deployment web --image=none --replicas=2 -n reads")?;
    kubectl.ok("create service clusterip web --tcp=80:8080 -n reads")?;
    server.create(&(0..CONFIG_MAPS).map(map).collect::<Vec<_>>())?;
    kubectl.ok("label configmaps,services,deployments --all -n reads suite=reads --overwrite")?;
    server.wait_for("deployment web -n reads", "Available", AVAILABLE)
}
