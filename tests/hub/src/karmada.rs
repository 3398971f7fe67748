//! Karmada's aggregated API server, with the hub as its control plane and the hub's etcd as its
//! store. Clusters are used without any of Karmada's controllers.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::time::Duration;

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kit::pki::{Authority, Leaf};
use serde_json::{Value, json};

use crate::control_plane::{Etcd, Launcher};
use crate::hub::{Hub, SECRET_NAMESPACE};
use crate::kubectl::Output;
use crate::ports;
use crate::process::Process;
use crate::tls_server::TlsServer;
use crate::tools::{self, Tool};

/// The name of its ServiceAccount, its role, and its Service.
pub const NAME: &str = "karmada-aggregated-apiserver";

/// Time for the control plane to find the group available.
const LIMIT: Duration = Duration::from_mins(1);

/// The running server. Ended on drop.
#[derive(Debug)]
pub struct Karmada {
    process: Process,
    server: TlsServer,
}

/// What its command prints of a cluster that has joined, whichever server has the group.
pub fn has_joined(output: &Output, name: &str) -> Result<()> {
    has_printed(output, &format!("cluster({name}) is joined successfully\n"))
}

/// What its command prints of one that has left.
pub fn has_left(output: &Output) -> Result<()> {
    has_printed(output, "")
}

fn has_printed(output: &Output, expected: &str) -> Result<()> {
    ensure!(output.status == 0 && output.stdout == expected && output.stderr.is_empty(), "{output:?}");
    Ok(())
}

// === impl Karmada ===

impl Karmada {
    /// Starts it, without waiting. Hubs reach it as the Service [`NAME`].
    pub fn start(launcher: &Launcher, hub: &Hub, etcd: &Etcd) -> Result<Self> {
        let kubeconfig = hub.create_reviewer(NAME)?;
        allow(hub)?;
        let authority = Authority::new("karmada-ca");
        let authority_file = authority.write_to(&launcher.directory, "karmada-ca")?;
        let leaf = Leaf::server(NAME).san(format!("{NAME}.{SECRET_NAMESPACE}.svc"));
        let serving = authority.issue(&leaf).write_to(&launcher.directory, NAME)?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, ports::free()?));
        let kubeconfig = kubeconfig.display();
        let flags = [
            format!("--secure-port={}", address.port()),
            format!("--bind-address={}", address.ip()),
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            format!("--etcd-servers={}", etcd.url()),
            format!("--etcd-prefix=/karmada-{}", address.port()), // there may be several
            format!("--tls-cert-file={}", serving.certificate.display()),
            format!("--tls-private-key-file={}", serving.key.display()),
        ];
        let process = Process::start(NAME, &tools::provide(Tool::KarmadaServer)?, flags, &launcher.directory)?;
        hub.apply(&[json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME, "namespace": SECRET_NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": address.port()}]},
        })])?;
        Ok(Self { process, server: TlsServer::new(address, authority, authority_file) })
    }

    /// Starts a control plane named `name`, with its own files, and the server; its group is
    /// available when this returns.
    pub fn start_apart(launcher: &Launcher, etcd: &Etcd, name: &str) -> Result<(Hub, Self)> {
        let launcher = Launcher { directory: launcher.file(name), ..launcher.clone() };
        std::fs::create_dir_all(&launcher.directory)?;
        let mut plane = Hub::start_called(&launcher, etcd, name, &[])?;
        plane.wait_ready()?;
        let karmada = Self::start(&launcher, &plane, etcd)?;
        plane.apply(&[karmada.api_service()])?;
        plane.server.wait_for("apiservice v1alpha1.cluster.karmada.io", "Available", LIMIT)?;
        Ok((plane, karmada))
    }

    /// The APIService that Karmada installs for this server.
    pub fn api_service(&self) -> Value {
        let service = json!({"name": NAME, "namespace": SECRET_NAMESPACE, "port": self.address().port()});
        json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1alpha1.cluster.karmada.io"},
            "spec": {"group": "cluster.karmada.io", "version": "v1alpha1", "groupPriorityMinimum": 2000,
                "versionPriority": 10, "service": service, "caBundle": BASE64.encode(self.authority().root_pem())}})
    }

    /// The end of its log.
    pub fn log_tail(&self) -> String {
        self.process.log_tail()
    }
}

impl Deref for Karmada {
    type Target = TlsServer;

    fn deref(&self) -> &TlsServer {
        &self.server
    }
}

/// Lets it read the clusters' Secrets, and the hub's configuration of trusted certificates.
fn allow(hub: &Hub) -> Result<()> {
    let api_version = "rbac.authorization.k8s.io/v1";
    let rule = json!({"apiGroups": [""], "resources": ["secrets", "configmaps"], "verbs": ["get", "list", "watch"]});
    let role = json!({"apiVersion": api_version, "kind": "ClusterRole", "metadata": {"name": NAME}, "rules": [rule]});
    let binding = json!({
        "apiVersion": api_version, "kind": "ClusterRoleBinding", "metadata": {"name": format!("{NAME}-reader")},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": SECRET_NAMESPACE}],
    });
    hub.apply(&[role, binding])
}
