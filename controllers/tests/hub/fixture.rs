//! The kinds of the sources on the hub of the testbed, and controllers.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use controllers::Controllers;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hub_tests::control_plane::ApiServer;
pub use hub_tests::fixture::{Fixture, test};
use hub_tests::http;
use hub_tests::testbed::Testbed;
use hub_tests::tools;
use hub_tests::wait;
use k8s_openapi::api::core::v1::Secret;
use kit::lines;
use kube::api::{DeleteParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::program::Program;

/// The limit for what takes a hub less than a second, longer because the machine may be busy.
pub const SOON: Duration = Duration::from_secs(20);

/// Concurrent requests of a client.
const AT_ONCE: usize = 16;

/// A namespace that holds clusters, and the controllers that write there.
pub struct Running {
    pub namespace: String,
    pub controllers: Option<Controllers>,
    arguments: Vec<String>,
}

/// A kind with any fields, in place of its own definition.
pub fn definition(group: &str, kind: &str, version: &str, scope: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": scope, "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

/// Installs upstream's `ClusterProfile`.
pub fn profile_kind(testbed: &Testbed) -> Result<()> {
    testbed
        .hub
        .server
        .apply_text(&tools::inventory_file("config/crd/bases/multicluster.x-k8s.io_clusterprofiles.yaml")?)
}

/// A kubeconfig of the member for the user of `token`.
pub fn member_kubeconfig(testbed: &Testbed, token: &str) -> String {
    let authority = std::fs::read(testbed.member.server.authority_file()).expect("a file of this testbed");
    kubeconfig(&testbed.member.server.url(), &authority, &json!({"token": token}))
}

/// A kubeconfig of one cluster and one user.
pub fn kubeconfig(url: &str, authority: &[u8], user: &Value) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "clusters": [{"name": "it", "cluster": {
            "server": url, "certificate-authority-data": STANDARD.encode(authority)}}],
        "users": [{"name": "it", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
    })
    .to_string()
}

/// A Secret that the default label selector matches.
pub fn kubeconfig_secret(namespace: &str, name: &str, kubeconfig: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {"cluster.core.oam.dev/kubeconfig": "true"}},
        "stringData": {"kubeconfig": kubeconfig},
    })
}

/// Does `one` for each number below `count`, many at a time, as the user of `kubeconfig`.
pub fn each<F: Future<Output = Result<()>>>(
    kubeconfig: &Path,
    count: u32,
    one: impl Fn(Client, u32) -> F,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = hub::client::client(Some(kubeconfig), "crowd").await?;
        let all = stream::iter(0..count).map(|number| one(client.clone(), number));
        all.buffer_unordered(AT_ONCE).try_for_each(|()| async { Ok(()) }).await
    })
}

/// Creates `count` Secrets in `fleet`, called `no-…`, whose kubeconfigs are refused.
pub fn create_refused(testbed: &Testbed, fleet: &str, count: u32) -> Result<()> {
    each(&testbed.hub.server.kubectl().kubeconfig, count, |client, number| async move {
        let name = format!("no-{number}");
        let secret: Secret = serde_json::from_value(kubeconfig_secret(fleet, &name, "{}"))?;
        Api::<Secret>::namespaced(client, fleet).create(&PostParams::default(), &secret).await.context(name)?;
        Ok(())
    })
}

/// Deletes them, one by one: a hub that is to delete ten thousand by one request does not answer
/// in time.
pub fn delete_refused(testbed: &Testbed, fleet: &str, count: u32) -> Result<()> {
    each(&testbed.hub.server.kubectl().kubeconfig, count, |client, number| async move {
        let name = format!("no-{number}");
        Api::<Secret>::namespaced(client, fleet).delete(&name, &DeleteParams::default()).await.context(name)?;
        Ok(())
    })
}

/// Applies objects to the hub.
pub fn apply(testbed: &Testbed, objects: &[Value]) -> Result<()> {
    testbed.hub.server.apply(objects)
}

/// Time for the commands of a block; some of them wait.
const SCRIPT: Duration = Duration::from_mins(5);

/// Runs the commands of a page as the hub's administrator, with its kubectl; returns what they
/// print.
pub fn script(testbed: &Testbed, directory: &Path, script: &str) -> Result<String> {
    testbed.hub.server.kubectl().shell(script)?.directory(directory).limit(SCRIPT).run()?.success()
}

/// Prints figures for those who run a test by hand.
#[expect(clippy::print_stderr, reason = "they are no outcome")]
pub fn print(figures: &str) {
    eprintln!("{figures}");
}

pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

/// A field of a Secret by its JSON pointer: empty if the Secret has no such field, an error if
/// there is no such Secret.
pub fn secret_field(testbed: &Testbed, namespace: &str, name: &str, pointer: &str) -> Result<String> {
    testbed.hub.server.text(&format!("secret {name} -n {namespace}"), pointer)
}

pub fn wait_secret(testbed: &Testbed, namespace: &str, name: &str) -> Result<()> {
    wait::until(&format!("Secret {name}"), SOON, || secret_field(testbed, namespace, name, "/metadata/name")).map(drop)
}

pub fn wait_gone(testbed: &Testbed, namespace: &str, name: &str) -> Result<()> {
    wait_end(&testbed.hub.server, &format!("secret {name} -n {namespace}"))
}

/// Waits until the object, or the last one that the line selects, is gone.
pub fn wait_end(server: &ApiServer, line: &str) -> Result<()> {
    wait_end_within(server, line, SOON)
}

pub fn wait_end_within(server: &ApiServer, line: &str, limit: Duration) -> Result<()> {
    wait::until_true(&format!("the end of {line}"), limit, || Ok(server.names(line)?.is_empty()))
}

/// Kind, name and version of all objects that the line selects, which must be at least one. Each
/// write changes the version.
pub fn versions(server: &ApiServer, line: &str) -> Result<Vec<String>> {
    let version = |object: &Value| {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        format!("{}/{}={}", object["kind"].as_str().unwrap_or_default(), text("name"), text("resourceVersion"))
    };
    let found = server.read(line)?;
    let found = found["items"].as_array().with_context(|| format!("no list: {line}"))?;
    ensure!(!found.is_empty(), "there is nothing: {line}");
    Ok(found.iter().map(version).collect())
}

/// The notes of Events with `reason` on objects called `name` in `namespace`.
pub fn event(testbed: &Testbed, namespace: &str, name: &str, reason: &str) -> Result<String> {
    let selector = format!("regarding.name={name},reason={reason}");
    let line = format!("events.events.k8s.io -n {namespace} --field-selector {selector}");
    let events = testbed.hub.server.read(&line)?;
    let notes = events["items"].as_array().into_iter().flatten().filter_map(|event| event["note"].as_str());
    let notes = notes.collect::<Vec<_>>().join(" ");
    if notes.is_empty() { Err(anyhow!("no Event {reason} on {namespace}/{name}")) } else { Ok(notes) }
}

/// Waits until the programs of the product have logged a line that has all of these.
pub fn wait_logged(testbed: &Testbed, parts: &[&str]) -> Result<()> {
    wait::until(&format!("a line with {parts:?}"), SOON, || {
        ensure!(!lines::with(&testbed.log()?, parts).is_empty(), "the log has none");
        Ok(())
    })
}

/// The condition of this type; null: there is none.
pub fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let all = status["conditions"].as_array().into_iter().flatten();
    all.into_iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}

/// `status/reason` of a condition.
pub fn said(condition: &Value) -> String {
    ["status", "reason"].map(|field| condition[field].as_str().unwrap_or_default()).join("/")
}

/// A testbed whose hub has the kinds of the sources.
pub fn prepared() -> Result<Testbed> {
    let testbed = Testbed::start()?;
    for kind in tools::cluster_api_kinds("cluster.x-k8s.io_clusters.yaml")? {
        testbed.hub.server.apply_text(&kind)?;
    }
    let ocm = [
        "cluster/v1/0000_00",
        "cluster/v1alpha1/0000_05",
        "cluster/v1beta1/0000_0",
        "cluster/v1beta2/0000_0",
        "work/v1/0000_00",
        "work/v1alpha1/0000_00",
        "addon/v1alpha1/0000_0",
    ];
    testbed.hub.server.apply_text(&tools::kinds("open-cluster-management.io/api", &ocm)?)?;
    Ok(testbed)
}

/// Arguments of controllers that write into `namespace`. Flags that `more` repeats have the value
/// from here.
pub fn arguments(namespace: &str, kubeconfig: &Path, more: &[&str]) -> Vec<String> {
    let mut arguments = vec![
        "cluster-gateway-controllers".to_owned(),
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--secret-namespace={namespace}"),
        "--admin-listen=127.0.0.1:0".to_owned(),
    ];
    let given = |flag: &str| flag.starts_with("--secret-namespace=") || flag.starts_with("--admin-listen=");
    arguments.extend(more.iter().filter(|flag| !given(flag)).map(|flag| (*flag).to_owned()));
    arguments
}

// === impl Running ===

impl Running {
    /// Starts controllers that write into `namespace`, and creates the namespace if it does not
    /// exist.
    pub fn start(testbed: &Testbed, namespace: &str, more: &[&str]) -> Result<Self> {
        apply(testbed, &[self::namespace(namespace)])?;
        Self::as_user(namespace, &testbed.hub.server.kubectl().kubeconfig, more)
    }

    /// The same with another kubeconfig.
    pub fn as_user(namespace: &str, kubeconfig: &Path, more: &[&str]) -> Result<Self> {
        let arguments = arguments(namespace, kubeconfig, more);
        let controllers = Some(Controllers::start(&arguments)?);
        Ok(Self { namespace: namespace.to_owned(), controllers, arguments })
    }

    /// Starts another replica as a separate process.
    pub fn process(&self, testbed: &Testbed, name: &str) -> Result<Program> {
        Program::start(testbed, name, &self.arguments)
    }

    /// Starts another replica.
    pub fn replica(&self) -> Result<Self> {
        let controllers = Some(Controllers::start(&self.arguments)?);
        Ok(Self { namespace: self.namespace.clone(), controllers, arguments: self.arguments.clone() })
    }

    /// Stops the controllers.
    pub fn stop(&mut self) -> Result<()> {
        self.controllers.take().context("they run")?.stop()
    }

    /// Stops the controllers and starts others.
    pub fn restart(&mut self) -> Result<()> {
        self.stop()?;
        self.controllers = Some(Controllers::start(&self.arguments)?);
        Ok(())
    }

    /// Starts the controllers again after they were stopped.
    pub fn restart_stopped(&mut self) -> Result<()> {
        self.controllers = Some(Controllers::start(&self.arguments)?);
        Ok(())
    }

    fn address(&self) -> Result<SocketAddr> {
        Ok(self.controllers.as_ref().context("they run")?.admin_address())
    }

    /// The body of an answer of the admin listener, whatever its status.
    pub fn get(&self, path: &str) -> Result<String> {
        Ok(http::Client::plain(self.address()?).get(path, &[])?.text())
    }

    /// The sum of a metric's series whose labels contain `labels`.
    pub fn metric(&self, name: &str, labels: &str) -> Result<f64> {
        Ok(kit::exposition::sum(&self.get("/metrics")?, name, labels))
    }

    /// The report of an object whose reference ends in `object`.
    pub fn report(&self, object: &str) -> Result<Value> {
        let reports: Vec<Value> = serde_json::from_str(&self.get("/debug/sources?format=json")?)?;
        let found = reports.into_iter().find(|report| report["object"].as_str().is_some_and(|it| it.ends_with(object)));
        found.with_context(|| format!("nothing is told of {object}"))
    }

    /// Waits until an object is in `state`; returns the reason.
    pub fn wait_state(&self, object: &str, state: &str) -> Result<String> {
        wait::until(&format!("{object} to be {state}"), SOON, || {
            let report = self.report(object)?;
            ensure!(report["state"] == state, "{report}");
            Ok(report["reason"].as_str().unwrap_or_default().to_owned())
        })
    }

    pub fn metrics(&self) -> Result<String> {
        self.get("/metrics")
    }
}
