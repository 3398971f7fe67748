//! A release on the hub with its gateway running here, on the port of the release.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use gateway::Gateway;
use hub_tests::helm::{self, Workload};
use hub_tests::http::Client;
use hub_tests::hub::SECRET_NAMESPACE as NAMESPACE;
use hub_tests::ports;
use hub_tests::prelude::*;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;

use crate::fixture::Planes;

/// The APIService of every release.
pub(crate) const API_SERVICE: &str = "v1alpha1.cluster.core.oam.dev";
/// The hub's condition of an API that it can use.
pub(crate) const AVAILABLE: &str = "True Passed";
/// Time for the gateway to read the hub's Secrets and ConfigMap.
const READY: Duration = Duration::from_secs(30);
/// Time for the hub's next check of a failed API, and slack for a busy machine.
const CONDITION: Duration = Duration::from_mins(1);
/// Time for objects to be gone.
const GONE: Duration = Duration::from_secs(20);

/// An installed release.
pub(crate) struct Release<'a> {
    planes: &'a Planes,
    name: &'static str,
    /// Name of the Deployment.
    deployment: &'static str,
    /// The listening port of its gateway, and of its Service.
    pub(crate) port: u16,
    directory: PathBuf,
    removed: bool,
}

// === impl Release ===

impl<'a> Release<'a> {
    /// Installs it with `more` arguments; its Service leads to this machine.
    pub(crate) fn install(
        planes: &'a Planes,
        (name, deployment, service): (&'static str, &'static str, &str),
        more: &[String],
    ) -> Result<Self> {
        let port = ports::free()?;
        let directory = planes.directory.join(name);
        let ports = format!("--set=port={port},service.port={port},shutdownDelaySeconds=0,drainTimeoutSeconds=1");
        planes.helm.on_chart(&format!("install {name}"), NAMESPACE, &[more, &[ports]].concat())?;
        let release = Self { planes, name, deployment, port, directory, removed: false };
        let external = json!({"spec": {"type": "ExternalName", "externalName": "localhost", "clusterIP": null}});
        planes.hub.server.patch(&format!("service {service} -n {NAMESPACE}"), &external)?;
        Ok(release)
    }

    /// Changes values.
    pub(crate) fn upgrade(&self, values: &str) -> Result<()> {
        self.upgrade_with(&[format!("--set={values}")])
    }

    /// Changes values by more arguments.
    pub(crate) fn upgrade_with(&self, more: &[String]) -> Result<()> {
        let more = [&["--reuse-values".to_owned()], more].concat();
        self.planes.helm.on_chart(&format!("upgrade {}", self.name), NAMESPACE, &more).map(drop)
    }

    /// Goes back to the values of a revision.
    pub(crate) fn rollback(&self, revision: u32) -> Result<()> {
        let words = ["rollback", self.name, &revision.to_string(), &format!("--namespace={NAMESPACE}")];
        self.planes.helm.args(words).run()?.success().map(drop)
    }

    /// The objects that an upgrade would create, rendered with access to the hub.
    pub(crate) fn preview(&self, more: &[String]) -> Result<Vec<Value>> {
        let port = format!("--set=port={0},service.port={0}", self.port);
        let more = [&["--dry-run=server".to_owned(), port], more].concat();
        self.planes.helm.template(self.name, NAMESPACE, &more)
    }

    /// The workload that a node would run now, from the hub.
    pub(crate) fn workload(&self) -> Result<Workload> {
        Workload::read(&self.planes.hub.server, NAMESPACE, self.deployment, &self.directory)
    }

    /// Runs `workload` and waits until its readiness probe would succeed.
    pub(crate) fn run(&self, workload: &Workload) -> Result<Gateway> {
        let gateway = Gateway::start(&workload.args).with_context(|| workload.args.join(" "))?;
        let address = gateway.address();
        ensure!(address.ip().is_unspecified() && address.port() == self.port, "at {address}");
        gateway.wait_ready(READY)?;
        self.probe(&workload.deployment["spec"]["template"]["spec"]["containers"][0])?;
        Ok(gateway)
    }

    /// Sends the kubelet's probe.
    fn probe(&self, container: &Value) -> Result<()> {
        let client = Client::probe((Ipv4Addr::LOCALHOST, self.port).into());
        for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
            let path = container[probe]["httpGet"]["path"].as_str().context("no path")?;
            client.get(path, &[])?.expect(StatusCode::OK).context(probe)?;
        }
        Ok(())
    }

    /// Whether the running gateway presents this certificate, in a Secret's form.
    pub(crate) fn serves(&self, certificate: &Value) -> Result<bool> {
        let pem = BASE64.decode(certificate.as_str().context("no certificate")?)?;
        let shown = Client::probe((Ipv4Addr::LOCALHOST, self.port).into()).peer_certificate()?;
        Ok(shown == CertificateDer::from_pem_slice(&pem)?)
    }

    /// Waits until the hub's condition of the API's availability is `expected`: status and reason.
    pub(crate) fn wait_condition(&self, expected: &str) -> Result<()> {
        wait::until_true(&format!("the condition {expected:?}"), CONDITION, || Ok(self.condition()? == expected))
            .with_context(|| self.condition().unwrap_or_default())
    }

    fn condition(&self) -> Result<String> {
        let conditions = self.api_service()?["status"]["conditions"].take();
        let available = conditions.as_array().and_then(|all| all.iter().find(|one| one["type"] == "Available"));
        let word = |key: &str| available.and_then(|one| one[key].as_str()).unwrap_or_default().to_owned();
        Ok(format!("{} {}", word("status"), word("reason")))
    }

    /// The APIService that the hub has.
    pub(crate) fn api_service(&self) -> Result<Value> {
        self.planes.hub.server.field(&format!("apiservice {API_SERVICE}"), "")
    }

    /// Changes the APIService's spec by a merge patch.
    pub(crate) fn patch_api_service(&self, spec: &Value) -> Result<()> {
        self.planes.hub.server.patch(&format!("apiservice {API_SERVICE}"), &json!({"spec": spec})).map(drop)
    }

    /// Recreates the APIService with another spec, and returns the one before. A check by the hub
    /// with the old spec that is still in flight cannot write its result to the new object; after a
    /// patch it could.
    pub(crate) fn replace_api_service(&self, spec: &Value) -> Result<Value> {
        let before = self.api_service()?;
        let mut anew = before.clone();
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            anew["metadata"].as_object_mut().context("metadata")?.remove(field);
        }
        anew["status"].take();
        for (key, value) in spec.as_object().context("fields")? {
            anew["spec"][key] = value.clone();
        }
        let hub = &self.planes.hub.server;
        hub.delete(&format!("apiservice {API_SERVICE}"))?;
        hub.create(&[anew])?;
        Ok(before)
    }

    /// Uninstalls it and waits until nothing of it is left.
    pub(crate) fn uninstall(mut self) -> Result<()> {
        let namespace = format!("--namespace={NAMESPACE}");
        let manifest = self.planes.helm.args(["get", "manifest", self.name, &namespace]).run()?.success()?;
        let objects = helm::parse(&manifest)?;
        ensure!(!objects.is_empty(), "helm knows of no object");
        self.remove()?;
        let hub = &self.planes.hub.server;
        let left = || -> Result<Vec<String>> {
            let mut left = hub.names(&format!("secrets -n {NAMESPACE} -l owner=helm"))?;
            for object in &objects {
                let known = hub.known(object, NAMESPACE)?;
                left.extend((!known.is_null()).then(|| format!("{}/{}", known["kind"], known["metadata"]["name"])));
            }
            Ok(left)
        };
        wait::until_true("its objects to be gone", GONE, || Ok(left()?.is_empty()))
            .with_context(|| left().unwrap_or_default().join(", "))
    }

    fn remove(&mut self) -> Result<()> {
        self.removed = true;
        let words = ["uninstall", self.name, &format!("--namespace={NAMESPACE}")];
        self.planes.helm.args(words).run()?.success().map(drop)
    }
}

impl Drop for Release<'_> {
    /// A failure of this test must not make the next one fail.
    fn drop(&mut self) {
        if !self.removed {
            drop(self.remove());
        }
    }
}
