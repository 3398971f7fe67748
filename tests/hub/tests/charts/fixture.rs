//! What tests share: helm for rendering, and a hub with a member for releases.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result, anyhow, ensure};
use hub_tests::audit::Audit;
use hub_tests::control_plane::{ApiServer, Etcd, Launcher, start_autoscaler};
use hub_tests::helm::{Chart, Helm};
use hub_tests::hub::{Hub, MemberSecret, SECRET_NAMESPACE};
use hub_tests::karmada::Karmada;
use hub_tests::kubeconfig::{Credential, Kubeconfig};
use hub_tests::kubectl::Kubectl;
use hub_tests::process::Process;
use hub_tests::scratch::Scratch;
use hub_tests::tools::{Tool, Tools};
use libtest_mimic::{Failed, Trial};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

/// The hub's name of the member.
pub(crate) const CLUSTER: &str = "member";
/// The hub's name of the member when it is reached through a tunnel.
pub(crate) const TUNNELLED: &str = "tunnelled";
const CLUSTERS: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways";

const TOOLS: [Tool; 4] = [Tool::Etcd, Tool::ApiServer, Tool::ControllerManager, Tool::Kubectl];

/// The parts that tests have needed so far.
#[derive(Default)]
pub(crate) struct Fixture {
    place: OnceLock<Result<Scratch, String>>,
    planes: OnceLock<Result<Planes, String>>,
}

/// A hub without a server of our API group, and a member that it knows.
pub(crate) struct Planes {
    pub(crate) hub: Hub,
    /// The audit log of accounts on the hub.
    pub(crate) audit: Audit,
    pub(crate) member: ApiServer,
    pub(crate) helm: Helm,
    pub(crate) directory: PathBuf,
    pub(crate) launcher: Launcher,
    etcd: Etcd,
    /// There is one API group: a test that installs a release holds it.
    group: Mutex<()>,
}

/// A test that only renders.
pub(crate) fn rendering(fixture: &Arc<Fixture>, name: &str, run: fn(&Helm, PathBuf) -> Result<()>) -> Trial {
    let (fixture, own) = (Arc::clone(fixture), name.replace(|sign: char| !sign.is_ascii_alphanumeric(), "-"));
    trial(name, move || {
        // A separate directory: all tests write the same files with values, and helm could read an
        // incomplete one.
        let directory = fixture.directory()?.join(&own);
        std::fs::create_dir_all(&directory)?;
        run(&Helm::prepare(&directory, &directory.join("no.kubeconfig"))?, directory)
    })
}

/// A test on the hub.
pub(crate) fn on_hub(fixture: &Arc<Fixture>, name: &str, run: fn(&Planes) -> Result<()>) -> Trial {
    let fixture = Arc::clone(fixture);
    trial(name, move || {
        let directory = fixture.directory()?;
        let planes = fixture.planes.get_or_init(|| Planes::start(directory).map_err(|error| format!("{error:#}")));
        run(planes.as_ref().map_err(|error| anyhow!("there is nothing to test on: {error}"))?)
    })
}

pub(crate) fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

fn trial(name: &str, run: impl FnOnce() -> Result<()> + Send + 'static) -> Trial {
    Trial::test(name, move || run().map_err(|error| Failed::from(format!("{error:#}"))))
}

// === impl Fixture ===

impl Fixture {
    fn directory(&self) -> Result<PathBuf> {
        let place = self.place.get_or_init(|| Scratch::create().map_err(|error| format!("{error:#}")));
        Ok(place.as_ref().map_err(|error| anyhow!("no place for files: {error}"))?.path().to_path_buf())
    }

    /// Stops everything; after a failure the logs stay.
    #[allow(clippy::print_stderr, reason = "the place of the logs belongs to the output of a failed run")]
    pub(crate) fn close(self: Arc<Self>, failed: bool) {
        let Some(fixture) = Arc::into_inner(self) else { return };
        drop(fixture.planes);
        if let Some(Ok(mut place)) = fixture.place.into_inner()
            && failed
        {
            place.keep();
            eprintln!("the logs of this run are in {}", place.path().display());
        }
    }
}

// === impl Planes ===

impl Planes {
    fn start(directory: PathBuf) -> Result<Self> {
        let launcher = Launcher { tools: Tools::only(&TOOLS)?, directory: directory.clone() };
        let etcd = Etcd::start(&launcher)?;
        let (audit, flags) = Audit::prepare(&launcher, "hub")?;
        let mut hub = Hub::start_with(&launcher, &etcd, &flags)?;
        let mut member = ApiServer::start(&launcher, &etcd, CLUSTER, "10.97.0.0/16", &[])?;
        hub.wait_ready().context("the hub did not come up")?;
        member.wait_ready().context("the member did not come up")?;
        hub.register_member(CLUSTER, &MemberSecret::with_certificate(&member, member.admin()))?;
        let helm = Helm::prepare(&directory, &hub.server.kubeconfig("helm", admin(&hub, &launcher)?)?)?;
        Ok(Self { hub, audit, member, helm, directory, launcher, etcd, group: Mutex::new(()) })
    }

    /// Checks that the hub has granted all requests of releases' pods since `mark`: the programs do
    /// not request by default what the chart does not grant by default.
    pub(crate) fn ensure_nothing_refused(&self, mark: usize) -> Result<()> {
        let refused = self.audit.refusals(SECRET_NAMESPACE, mark)?;
        ensure!(refused.is_empty(), "the hub answers 403 to {}", refused.join(", "));
        Ok(())
    }

    /// Waits until no other release serves the API group.
    pub(crate) fn claim_group(&self) -> MutexGuard<'_, ()> {
        self.group.lock()
    }

    /// kubectl to the member through the hub. `name` distinguishes this user from others.
    pub(crate) fn through_hub(&self, name: &str, credential: Credential) -> Result<Kubectl> {
        self.to_cluster(CLUSTER, name, credential)
    }

    /// The same to the member under another name.
    pub(crate) fn to_cluster(&self, cluster: &str, name: &str, credential: Credential) -> Result<Kubectl> {
        let (url, authority) = (self.hub.server.url(), self.hub.server.authority_file().to_path_buf());
        let kubeconfig = Kubeconfig { server: format!("{url}{CLUSTERS}/{cluster}/proxy"), authority, credential };
        let file = self.directory.join(format!("{name}-to-{cluster}.kubeconfig"));
        Ok(self.launcher.kubectl(&kubeconfig.write(file)?))
    }

    /// A Karmada whose API server is not the hub, which is then its host cluster.
    pub(crate) fn start_karmada(&self, name: &str) -> Result<(Hub, Karmada)> {
        Karmada::start_apart(&self.launcher, &self.etcd, name)
    }

    /// Whether the ServiceAccount `namespace/account` may do on the hub what `attributes` say.
    pub(crate) fn may(&self, namespace: &str, account: &str, attributes: &Value) -> Result<bool> {
        self.hub.server.may(namespace, account, attributes)
    }

    /// Starts the controller that scales Deployments on the hub, at one round per second.
    pub(crate) fn start_autoscaler(&self) -> Result<Process> {
        start_autoscaler(&self.launcher, &self.hub.server)
    }

    /// helm with the agent's chart for the member.
    pub(crate) fn helm_of_member(&self) -> Result<Helm> {
        let admin = self.member.admin().write_to(&self.directory, "helm-of-member")?;
        let kubeconfig = self.member.kubeconfig("helm-of-member", Credential::Certificate(admin))?;
        Ok(Helm::prepare(&self.directory, &kubeconfig)?.with(Chart::Agent))
    }

    /// kubectl to the member through the gateway at `port`, without the hub.
    pub(crate) fn through_gateway(
        &self,
        name: &str,
        port: u16,
        ca: PathBuf,
        credential: Credential,
    ) -> Result<Kubectl> {
        let server = format!("https://127.0.0.1:{port}{CLUSTERS}/{CLUSTER}/proxy");
        let kubeconfig = Kubeconfig { server, authority: ca, credential };
        Ok(self.launcher.kubectl(&kubeconfig.write(self.directory.join(format!("{name}-through-gateway.kubeconfig")))?))
    }
}

impl Drop for Planes {
    /// Signals everything at the same time; then each field's own drop waits for its part.
    fn drop(&mut self) {
        self.hub.release();
        self.member.release();
        self.etcd.release();
    }
}

fn admin(hub: &Hub, launcher: &Launcher) -> Result<Credential> {
    Ok(Credential::Certificate(hub.server.admin().write_to(&launcher.directory, "helm")?))
}
