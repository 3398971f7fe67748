//! A cluster of Cluster API's own core manager, which writes the kubeconfig Secret of a member.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use hub_tests::kubeconfig::Credential;
use hub_tests::kubectl;
use hub_tests::ports;
use hub_tests::process::Process;
use hub_tests::testbed::{Route, Testbed};
use hub_tests::tools::{self, Tool};
use hub_tests::wait;
use kit::pki::Leaf;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{AT_ONCE, CLUSTERS, ENDED, alone, deletion, through_hub};
use crate::fixture::{Running, SOON, apply, namespace, print, secret_field, wait_end_within};

const FLEET: &str = "fleet-manager";
/// The period in which the manager looks at each cluster: it does not watch the Secrets.
const LOOK: &str = "--sync-period=1s";
/// Time for the manager to start, or for the garbage collector to learn of its kinds.
const UPSTREAM: Duration = Duration::from_mins(2);
/// The field in which a member reports the client certificate of a request (KEP-4193).
const SHOWN: &str = "/status/userInfo/extra/authentication.kubernetes.io~1credential-id/0";

/// A watch of one cluster's Secrets.
struct Secrets(kubectl::Running);

pub fn trial(testbed: &Testbed) -> Result<()> {
    let _alone = alone();
    apply(testbed, &[namespace(FLEET)])?;
    let mut manager = manager(testbed)?;
    let mut controllers = Running::start(testbed, CLUSTERS, &["--enable=capi", "--watch-namespaces=fleet-manager"])?;
    let mut names = (0..).map(|number| format!("made{number}"));
    let (mut name, mut secrets) = (String::new(), None);
    let mut begin = || -> Result<_> {
        let name = names.next().expect("there are endless");
        let (secrets, took) = born(testbed, &mut manager, &name)?;
        Ok((name, secrets, took))
    };
    wait::timely("from the manager's Secret to the first answer", AT_ONCE, || {
        let (born, told, took) = begin()?;
        (name, secrets) = (born, Some(told));
        Ok(took)
    })?;
    let mut secrets = secrets.context("a watch")?;
    for route in [Route::Hub, Route::Gateway] {
        let token = Credential::Token(testbed.token.clone());
        let seen = testbed.kubectl_as(route, &name, "made", token)?.ok("get namespace default -o name")?;
        ensure!(seen.trim() == "namespace/default", "{seen}");
    }
    let mut marks = (0..).map(|number| format!("made-mark{number}"));
    wait::timely("from the Secret made anew to its use", AT_ONCE, || {
        renewed(testbed, &name, &marks.next().expect("there are endless"), &mut secrets)
    })?;
    let mut is_first = true;
    wait::timely("from the end of the cluster to that of its streams", ENDED, || {
        if !std::mem::take(&mut is_first) {
            (name, _, _) = begin()?;
        }
        let took = deletion(testbed, &controllers, FLEET, &name)?;
        print(&format!("the streams ended {took:?} after the cluster"));
        ensure!(secret_field(testbed, CLUSTERS, &name, "/metadata/name").is_err(), "its Secret is left");
        wait_end_within(&testbed.hub.server, &format!("secret {name}-kubeconfig -n {FLEET}"), UPSTREAM)?;
        Ok(took)
    })?;
    controllers.stop()
}

/// Upstream's manager, limited to this fleet: other tests have clusters that it must not handle.
fn manager(testbed: &Testbed) -> Result<Process> {
    for kind in tools::cluster_api_kinds("")? {
        testbed.hub.server.apply_text(&kind)?;
    }
    let directory = testbed.directory("cluster-api")?;
    // For its webhooks, which are not called: objects of the newest version need none.
    testbed.hub.server.authority().issue(&Leaf::server("localhost")).write_to(&directory, "tls")?;
    let arguments = [
        format!("--kubeconfig={}", testbed.hub.server.kubectl().kubeconfig.display()),
        format!("--namespace={FLEET}"),
        format!("--webhook-cert-dir={}", directory.display()),
        format!("--webhook-port={}", ports::free()?),
        format!("--health-addr=127.0.0.1:{}", ports::free()?),
        "--diagnostics-address=0".to_owned(),
        "--skip-crd-migration-phases=StorageVersionMigration,CleanupManagedFields".to_owned(),
        LOOK.to_owned(),
    ];
    Process::start("cluster-api", &tools::provide(Tool::ClusterApi)?, arguments, &directory)
}

/// The cluster, and the CA of its control plane as an installer provides it.
fn objects(testbed: &Testbed, name: &str) -> [Value; 2] {
    let (server, of_cluster) = (&testbed.member.server, json!({"cluster.x-k8s.io/cluster-name": name}));
    let authority = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "cluster.x-k8s.io/secret",
        "metadata": {"name": format!("{name}-ca"), "namespace": FLEET, "labels": of_cluster},
        "stringData": {"tls.crt": server.authority().root_pem(), "tls.key": server.authority().key_pem()},
    });
    let address = server.address();
    let endpoint = json!({"host": address.ip().to_string(), "port": address.port()});
    let cluster = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": {"name": name, "namespace": FLEET},
        "spec": {"controlPlaneEndpoint": endpoint},
    });
    [authority, cluster]
}

/// Only the manager writes the kubeconfig. Returns the time from that write to the first answer of
/// the member.
fn born(testbed: &Testbed, manager: &mut Process, name: &str) -> Result<(Secrets, Duration)> {
    let [authority, cluster] = objects(testbed, name);
    let mut secrets = Secrets::of(testbed, name)?;
    apply(testbed, &[authority])?;
    // The watch is open once it reports this Secret.
    secrets.wait("ADDED", &format!("{name}-ca"))?;
    apply(testbed, &[cluster])?;
    let written = secrets.wait("ADDED", &format!("{name}-kubeconfig"));
    let written = written.with_context(|| manager.log_tail())?;
    wait::until("an answer of the member", SOON, || through_hub(testbed, name, "/version"))?;
    let took = written.elapsed();
    print(&format!("{name} answered {took:?} after the manager's Secret"));
    Ok((secrets, took))
}

/// Deletes the Secret; the manager creates another. Returns the time from the new Secret until the
/// gateway used its certificate.
fn renewed(testbed: &Testbed, name: &str, mark: &str, secrets: &mut Secrets) -> Result<Duration> {
    let path =
        format!("{}/api/v1/namespaces/default/configmaps?watch=true&labelSelector={mark}", Testbed::proxy_path(name));
    let mut watch = testbed.hub.server.kubectl().args(["get", "--raw", &path]).start()?;
    let tell = |what: &str| {
        let metadata = json!({"name": format!("{mark}-{what}"), "namespace": "default", "labels": {mark: ""}});
        testbed.member.server.apply(&[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})])
    };
    tell("before")?;
    ensure!(watch.next_line(SOON)?.contains("before"));
    let first = shown(testbed, name)?;
    let secret = format!("{name}-kubeconfig");
    testbed.hub.server.delete(&format!("secret {secret} -n {FLEET} --wait=false"))?;
    secrets.wait("DELETED", &secret)?;
    ensure!(through_hub(testbed, name, "/version").is_ok(), "a Secret that is being replaced ended the registration");
    let written = secrets.wait("ADDED", &secret)?;
    let second = wait::until("another certificate", SOON, || {
        let now = shown(testbed, name)?;
        ensure!(now != first, "{now}");
        Ok(now)
    })?;
    let took = written.elapsed();
    print(&format!("the new certificate was shown {took:?} after the manager's Secret"));
    ensure!(second == held(testbed, name)?, "it is not the one of the new Secret");
    tell("after")?;
    ensure!(watch.next_line(SOON)?.contains("after"), "the watch ended with the old certificate");
    Ok(took)
}

/// The fingerprint of the certificate that the gateway presents to the member now.
fn shown(testbed: &Testbed, name: &str) -> Result<String> {
    let path = format!("{}/apis/authentication.k8s.io/v1/selfsubjectreviews", Testbed::proxy_path(name));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
    let (server, headers) = (&testbed.hub.server, [("content-type", "application/json")]);
    let answer = server.client(Some(server.admin())).send(&Method::POST, &path, &headers, review.into())?;
    fingerprint(&answer.json()?)
}

/// The fingerprint of the certificate in the manager's Secret, as the member reports it to a client
/// that uses the kubeconfig directly.
fn held(testbed: &Testbed, name: &str) -> Result<String> {
    let kubeconfig = testbed.directory("cluster-api")?.join(format!("{name}.kubeconfig"));
    std::fs::write(&kubeconfig, crate::others::value(testbed, FLEET, &format!("{name}-kubeconfig"), "value")?)?;
    let review = testbed.launcher().kubectl(&kubeconfig).ok("auth whoami -o json")?;
    fingerprint(&serde_json::from_str(&review)?)
}

fn fingerprint(review: &Value) -> Result<String> {
    review.pointer(SHOWN).and_then(Value::as_str).map(str::to_owned).with_context(|| review.to_string())
}

// === impl Secrets ===

impl Secrets {
    fn of(testbed: &Testbed, cluster: &str) -> Result<Self> {
        let selector = format!("cluster.x-k8s.io%2Fcluster-name%3D{cluster}");
        let path = format!("/api/v1/namespaces/{FLEET}/secrets?watch=true&labelSelector={selector}");
        Ok(Self(testbed.hub.server.kubectl().args(["get", "--raw", &path]).start()?))
    }

    /// Waits for such a watch event of the Secret; returns when it came.
    fn wait(&mut self, event: &str, name: &str) -> Result<Instant> {
        loop {
            let told: Value = serde_json::from_str(&self.0.next_line(UPSTREAM)?)?;
            let now = Instant::now();
            if told["type"] == event && told["object"]["metadata"]["name"] == name {
                return Ok(now);
            }
        }
    }
}
