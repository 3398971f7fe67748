//! What a hub and a member have in common: a kube-apiserver with its own CA on a shared etcd, and
//! its controllers.
//!
//! Starting does not wait; `wait_ready` does, so that everything can come up at the same time.

mod manager;

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::StatusCode;
use kit::pki::{Authority, Issued, Leaf, PemFiles};
use serde_json::json;

pub use self::manager::{
    start_autoscaler, start_controller_manager, start_job_controller, start_kwok, start_scheduler,
};
use crate::http::{Client, Pool};
use crate::kubeconfig::{Credential, Kubeconfig};
use crate::kubectl::Kubectl;
use crate::ports;
use crate::process::Process;
use crate::tools::{Tool, Tools};
use crate::wait;

/// Time for a control plane to become ready on a busy machine; 5 s is usual on an idle one.
const START_LIMIT: Duration = Duration::from_mins(2);

/// What all programs of a run share.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The programs.
    pub tools: Tools,
    /// The directory of their files.
    pub directory: PathBuf,
}

/// The store behind all API servers of a run.
#[derive(Debug)]
pub struct Etcd {
    process: Process,
    url: String,
}

/// A kube-apiserver and the keys to it.
#[derive(Debug)]
pub struct ApiServer {
    process: Process,
    args: Vec<String>,
    name: String,
    launcher: Launcher,
    address: SocketAddr,
    keys: Arc<Keys>,
    admin_kubeconfig: PathBuf,
    administrator: Pool,
}

/// What all replicas of an API server share.
#[derive(Debug)]
struct Keys {
    authority: Arc<Authority>,
    authority_file: PathBuf,
    authority_key: PathBuf,
    serving: PemFiles,
    service_accounts: PathBuf,
    admin: Issued,
    admin_files: PemFiles,
}

// === impl Launcher ===

impl Launcher {
    /// Starts `tool` with a log named `name`.
    pub fn start<A: AsRef<std::ffi::OsStr>>(
        &self,
        name: &str,
        tool: Tool,
        args: impl IntoIterator<Item = A>,
    ) -> Result<Process> {
        Process::start(name, self.tools.path(tool), args, &self.directory)
    }

    /// kubectl with the kubeconfig at `kubeconfig`.
    pub fn kubectl(&self, kubeconfig: &Path) -> Kubectl {
        Kubectl {
            binary: self.tools.path(Tool::Kubectl).to_path_buf(),
            kubeconfig: kubeconfig.to_path_buf(),
            cache: self.directory.join("kubectl-cache"),
        }
    }

    /// The path of a file of this run.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

// === impl Keys ===

impl Keys {
    fn create(launcher: &Launcher, name: &str, hosts: &[&str]) -> Result<Self> {
        let directory = &launcher.directory;
        let authority = Arc::new(Authority::new(&format!("{name}-ca")));
        let authority_file = authority.write_to(directory, &format!("{name}-ca"))?;
        let authority_key = launcher.file(&format!("{name}-ca.key"));
        std::fs::write(&authority_key, authority.key_pem())?;
        let serving = Leaf::server(name).san("kubernetes").san("kubernetes.default.svc");
        let serving = hosts.iter().fold(serving, |serving, &host| serving.san(host));
        let serving = authority.issue(&serving).write_to(directory, name)?;
        let service_accounts = launcher.file(&format!("{name}-service-accounts.key"));
        std::fs::write(&service_accounts, rsa_key()?)?;
        let admin = authority.issue(&Leaf::client(format!("{name}-admin")).group("system:masters"));
        let admin_files = admin.write_to(directory, &format!("{name}-admin"))?;
        Ok(Self { authority, authority_file, authority_key, serving, service_accounts, admin, admin_files })
    }
}

/// A key as installers create it, in PEM. Unlike ECDSA, RSA gives the same signature each time: if
/// the Secret of a token is deleted and recreated, it holds the same token.
fn rsa_key() -> Result<String> {
    let key = KeyPair::generate(KeySize::Rsa2048).map_err(|_| anyhow!("no RSA key"))?;
    let der = AsDer::<Pkcs8V1Der<'_>>::as_der(&key).map_err(|_| anyhow!("no PKCS#8"))?;
    Ok(format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", BASE64.encode(der.as_ref())))
}

// === impl Etcd ===

impl Etcd {
    /// Starts it. Its users retry, so no caller waits for it.
    pub fn start(launcher: &Launcher) -> Result<Self> {
        Self::start_called(launcher, "etcd")
    }

    /// The same with the name `name`, for tests with several.
    pub fn start_called(launcher: &Launcher, name: &str) -> Result<Self> {
        let url = format!("http://127.0.0.1:{}", ports::free()?);
        let peers = format!("http://127.0.0.1:{}", ports::free()?);
        let data = launcher.file(name);
        let args = [
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls={url}"),
            format!("--advertise-client-urls={url}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=default={peers}"),
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        Ok(Self { process: launcher.start(name, Tool::Etcd, args)?, url })
    }

    /// The URL for its clients.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process, for tests that signal or stop it.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Asks it to end.
    pub fn release(&mut self) {
        self.process.release();
    }
}

// === impl ApiServer ===

impl ApiServer {
    /// Starts the API server `name` under its own prefix in `etcd`, with services in
    /// `service_range` and `more` flags.
    pub fn start(launcher: &Launcher, etcd: &Etcd, name: &str, service_range: &str, more: &[String]) -> Result<Self> {
        Self::start_for(launcher, etcd, name, service_range, &[], more)
    }

    /// The same with a certificate that is also valid for `hosts`.
    pub fn start_for(
        launcher: &Launcher,
        etcd: &Etcd,
        name: &str,
        service_range: &str,
        hosts: &[&str],
        more: &[String],
    ) -> Result<Self> {
        let keys = Keys::create(launcher, name, hosts)?;
        let mut args = vec![
            format!("--etcd-servers={}", etcd.url),
            format!("--etcd-prefix=/{name}"),
            format!("--tls-cert-file={}", keys.serving.certificate.display()),
            format!("--tls-private-key-file={}", keys.serving.key.display()),
            format!("--client-ca-file={}", keys.authority_file.display()),
            format!("--service-cluster-ip-range={service_range}"),
            format!("--service-account-key-file={}", keys.service_accounts.display()),
            format!("--service-account-signing-key-file={}", keys.service_accounts.display()),
            format!("--service-account-issuer=https://{name}.local"),
        ];
        // It requests logs and streams from kubelets as an administrator.
        args.push(format!("--kubelet-client-certificate={}", keys.admin_files.certificate.display()));
        args.push(format!("--kubelet-client-key={}", keys.admin_files.key.display()));
        args.extend(COMMON_FLAGS.iter().map(|&flag| flag.to_owned()));
        args.extend_from_slice(more);
        Self::launch(launcher, name, Arc::new(keys), args)
    }

    /// Starts another replica with the same keys and objects, and `more` flags. It writes no audit
    /// log, because the first one does.
    pub fn start_replica(&self, name: &str, more: &[String]) -> Result<Self> {
        let apart = |arg: &&String| arg.starts_with("--audit-") || arg.starts_with("--secure-port=");
        let args = self.args.iter().filter(|arg| !apart(arg)).chain(more).cloned().collect();
        Self::launch(&self.launcher, name, Arc::clone(&self.keys), args)
    }

    fn launch(launcher: &Launcher, name: &str, keys: Arc<Keys>, mut args: Vec<String>) -> Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        args.push(format!("--secure-port={}", address.port()));
        let admin_kubeconfig = Kubeconfig {
            server: format!("https://{address}"),
            authority: keys.authority_file.clone(),
            credential: Credential::Certificate(keys.admin_files.clone()),
        };
        let admin_kubeconfig = admin_kubeconfig.write(launcher.file(&format!("{name}-admin.kubeconfig")))?;
        let process = launcher.start(&format!("{name}-apiserver"), Tool::ApiServer, &args)?;
        let (name, launcher) = (name.to_owned(), launcher.clone());
        let administrator = Pool::new(Client::new(address, &keys.authority, Some(&keys.admin)));
        Ok(Self { process, args, name, launcher, address, keys, admin_kubeconfig, administrator })
    }

    /// The launcher that it was started with.
    pub fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// Waits until it reports ready.
    pub fn wait_ready(&mut self) -> Result<()> {
        let client = self.client(Some(&self.keys.admin));
        let process = &mut self.process;
        let mut ended = None;
        wait::until(&format!("the API server {}", self.name), START_LIMIT, || {
            if let Err(error) = process.check() {
                ended = Some(error);
                return Ok(()); // it will not come back
            }
            client.get("/readyz", &[])?.expect(StatusCode::OK).map(drop)
        })
        .with_context(|| process.log_tail())?;
        ended.map_or(Ok(()), Err)
    }

    /// Its listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Signs its serving certificate and its users' certificates.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.keys.authority
    }

    /// The PEM file with [`ApiServer::authority`]'s certificate.
    pub fn authority_file(&self) -> &Path {
        &self.keys.authority_file
    }

    /// The certificate of a member of `system:masters`.
    pub fn admin(&self) -> &Issued {
        &self.keys.admin
    }

    /// kubectl as a member of `system:masters`.
    pub fn kubectl(&self) -> Kubectl {
        self.launcher.kubectl(&self.admin_kubeconfig)
    }

    /// Requests without kubectl, presenting `identity`.
    pub fn client(&self, identity: Option<&Issued>) -> Client {
        Client::new(self.address, &self.keys.authority, identity)
    }

    /// Requests of a member of `system:masters` that test nothing themselves.
    pub(crate) fn administrator(&self) -> &Pool {
        &self.administrator
    }

    /// A kubeconfig for this server as another user, written under `name`.
    pub fn kubeconfig(&self, name: &str, credential: Credential) -> Result<PathBuf> {
        let (server, authority) = (self.url(), self.keys.authority_file.clone());
        Kubeconfig { server, authority, credential }.write(self.launcher.file(&format!("{name}.kubeconfig")))
    }

    /// Creates `namespace`; with a controller manager around, also waits until pods can be created
    /// in it.
    pub fn create_namespace(&self, namespace: &str) -> Result<()> {
        self.create(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})])?;
        wait::until_true("the namespace's default ServiceAccount", START_LIMIT, || {
            Ok(!self.read(&format!("serviceaccount default -n {namespace}"))?.is_null())
        })
    }

    /// Kills it and waits until its port refuses connections.
    pub fn stop(&mut self) -> Result<()> {
        self.process.stop()?;
        // Its shell waits for it, unless it has only just started it.
        wait::until_true("its port to be free", START_LIMIT, || Ok(TcpStream::connect(self.address).is_err()))
    }

    /// Starts it on the same port with the same keys and objects, after [`ApiServer::stop`].
    pub fn start_again(&mut self) -> Result<()> {
        self.process = self.launcher.start(&format!("{}-apiserver", self.name), Tool::ApiServer, &self.args)?;
        Ok(())
    }

    /// Its process, for tests that signal or stop it.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The supervisor's process ID: the program is its descendant.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to end.
    pub fn release(&mut self) {
        self.process.release();
    }
}

/// `endpoint-reconciler-type=none`: the Service `kubernetes` would otherwise get the loopback
/// address, which is refused.
const COMMON_FLAGS: [&str; 7] = [
    "--bind-address=127.0.0.1",
    "--advertise-address=127.0.0.1",
    "--endpoint-reconciler-type=none",
    "--authorization-mode=RBAC",
    "--max-requests-inflight=4000",
    "--max-mutating-requests-inflight=2000",
    "--v=0",
];
