//! An operator's steps on the hub: registering the gateway as the server of its API group, and
//! clusters as Secrets.

use std::path::PathBuf;

use anyhow::Result;
use api::secret::{ClusterEndpoint, ClusterSecret, Credential as SecretCredential, Endpoint, Trust};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kit::pki::{Authority, Issued};
use serde_json::{Value, json};

use super::Hub;
use crate::control_plane::ApiServer;
use crate::kubeconfig::Credential;

/// The namespace of the clusters' Secrets: the gateway's default.
pub const SECRET_NAMESPACE: &str = "vela-system";
/// The name that the gateway's serving certificate must have for the hub:
/// `<service>.<namespace>.svc`.
pub const GATEWAY_HOST: &str = "gateway.vela-system.svc";

/// The name of the gateway's ServiceAccount and of its kubeconfig.
const GATEWAY: &str = "gateway";
/// Name of the `ClusterRole` that lets the gateway read Open Cluster Management's clusters.
const MANAGED_CLUSTERS: &str = "gateway-managed-clusters";

/// A cluster's Secret: how to reach a member, and with which credential.
#[derive(Clone, Debug)]
pub struct MemberSecret(ClusterSecret);

// === impl MemberSecret ===

impl MemberSecret {
    /// The member with this API server, with a ServiceAccount's token.
    pub fn with_token(server: &ApiServer, token: &str) -> Self {
        Self::new(server, SecretCredential::Token(token.to_owned().into()))
    }

    /// The member with this API server, with a client certificate.
    pub fn with_certificate(server: &ApiServer, identity: &Issued) -> Self {
        let (certificate, private_key) =
            (identity.chain_pem.clone().into(), identity.key_pem.clone().into_bytes().into());
        Self::new(server, SecretCredential::X509 { certificate, private_key })
    }

    /// The same at another address.
    #[must_use]
    pub fn at(mut self, endpoint: &str) -> Self {
        self.0.endpoint = at(endpoint);
        self
    }

    /// The same without an address: reached through the cluster's agents.
    #[must_use]
    pub fn behind_tunnel(mut self) -> Self {
        self.0.endpoint = ClusterEndpoint::ClusterProxy;
        self
    }

    /// The same with another CA for the member's certificate.
    #[must_use]
    pub fn trusting(mut self, authority: &Authority) -> Self {
        self.0.trust = Trust::Bundle(authority.root_pem().into());
        self
    }

    fn new(server: &ApiServer, credential: SecretCredential) -> Self {
        let trust = Trust::Bundle(server.authority().root_pem().into());
        Self(ClusterSecret::new(at(&server.url()), trust, credential))
    }

    /// The Secret that makes it the cluster `name`.
    pub fn document(&self, name: &str) -> Value {
        self.0.document(Some(SECRET_NAMESPACE), name).expect("a cluster that gateways can read")
    }
}

fn at(endpoint: &str) -> ClusterEndpoint {
    ClusterEndpoint::at(Endpoint::parse(endpoint, true).expect("a URL of an API server"))
}

// === impl Hub ===

impl Hub {
    /// Makes the hub send the API group to 127.0.0.1:`port`, and expect a certificate of
    /// `authority` there.
    pub fn register_gateway(&self, port: u16, authority: &Authority) -> Result<()> {
        self.register_gateway_for("cluster.core.oam.dev", port, authority)
    }

    /// The same for the API `group`, whose version is `v1alpha1`.
    pub fn register_gateway_for(&self, group: &str, port: u16, authority: &Authority) -> Result<()> {
        let service = json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "gateway", "namespace": SECRET_NAMESPACE},
            "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port, "protocol": "TCP"}]},
        });
        let api_service = json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": format!("v1alpha1.{group}")},
            "spec": {
                "group": group,
                "version": "v1alpha1",
                "groupPriorityMinimum": 2000,
                "versionPriority": 10,
                "caBundle": BASE64.encode(authority.root_pem()),
                "service": {"name": "gateway", "namespace": SECRET_NAMESPACE, "port": port},
            },
        });
        self.apply(&[service, api_service])
    }

    /// Grants the gateway's ServiceAccount exactly the rights that it needs; returns a kubeconfig
    /// for it.
    pub fn create_gateway_account(&self) -> Result<PathBuf> {
        let token = self.server.service_account_token(SECRET_NAMESPACE, GATEWAY)?;
        let account = json!([{"kind": "ServiceAccount", "name": GATEWAY, "namespace": SECRET_NAMESPACE}]);
        let secrets = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": {"name": "gateway", "namespace": SECRET_NAMESPACE},
            // `update`, `patch`: health is written to a Secret's annotations.
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch", "update", "patch"]}],
        });
        let managed = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": MANAGED_CLUSTERS},
            "rules": [{
                "apiGroups": ["cluster.open-cluster-management.io"],
                "resources": ["managedclusters"],
                "verbs": ["get", "list", "watch"],
            }],
        });
        self.apply(&[
            binding("ClusterRoleBinding", "gateway", None, ("ClusterRole", "system:auth-delegator"), &account),
            binding(
                "RoleBinding",
                "gateway",
                Some("kube-system"),
                ("Role", "extension-apiserver-authentication-reader"),
                &account,
            ),
            secrets,
            binding("RoleBinding", "gateway", Some(SECRET_NAMESPACE), ("Role", "gateway"), &account),
            managed,
            binding("ClusterRoleBinding", MANAGED_CLUSTERS, None, ("ClusterRole", MANAGED_CLUSTERS), &account),
        ])?;
        self.server.kubeconfig(GATEWAY, Credential::Token(token))
    }

    /// The kubeconfig that [`Hub::create_gateway_account`] wrote.
    pub fn gateway_kubeconfig(&self) -> PathBuf {
        self.launcher.file(&format!("{GATEWAY}.kubeconfig"))
    }

    /// Creates the ServiceAccount `name`, which may create TokenReviews and SubjectAccessReviews
    /// only; returns a kubeconfig for it.
    pub fn create_reviewer(&self, name: &str) -> Result<PathBuf> {
        let token = self.server.service_account_token(SECRET_NAMESPACE, name)?;
        let account = json!([{"kind": "ServiceAccount", "name": name, "namespace": SECRET_NAMESPACE}]);
        let role = ("ClusterRole", "system:auth-delegator");
        self.apply(&[binding("ClusterRoleBinding", name, None, role, &account)])?;
        self.server.kubeconfig(name, Credential::Token(token))
    }

    /// Lets the ServiceAccount `name` follow roles and bindings, and read the hub's client CA: a
    /// tunnel-server's rights beyond those of a reviewer.
    pub fn allow_following(&self, name: &str) -> Result<()> {
        let account = json!([{"kind": "ServiceAccount", "name": name, "namespace": SECRET_NAMESPACE}]);
        let role_name = format!("{name}-roles");
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role_name},
            "rules": [{
                "apiGroups": ["rbac.authorization.k8s.io"],
                "resources": ["clusterroles", "clusterrolebindings"],
                "verbs": ["list", "watch"],
            }],
        });
        let reader = ("Role", "extension-apiserver-authentication-reader");
        self.apply(&[
            role,
            binding("ClusterRoleBinding", &role_name, None, ("ClusterRole", &role_name), &account),
            binding("RoleBinding", name, Some("kube-system"), reader, &account),
        ])
    }

    /// Creates the ServiceAccount `name` and lets it be an agent of `clusters` (of none if empty);
    /// returns a token for it.
    pub fn create_agent(&self, name: &str, clusters: &[&str]) -> Result<String> {
        let token = self.server.service_account_token(SECRET_NAMESPACE, name)?;
        if !clusters.is_empty() {
            let account = json!([{"kind": "ServiceAccount", "name": name, "namespace": SECRET_NAMESPACE}]);
            self.allow_agent(name, &account, clusters)?;
        }
        Ok(token)
    }

    /// Lets `subjects` (RBAC subjects) be agents of `clusters`, by a `ClusterRole` and a
    /// `ClusterRoleBinding` named `name`.
    pub fn allow_agent(&self, name: &str, subjects: &Value, clusters: &[&str]) -> Result<()> {
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [{
                "apiGroups": ["cluster.core.oam.dev"],
                "resources": ["clustergateways/tunnel"],
                "resourceNames": clusters,
                "verbs": ["create"],
            }],
        });
        self.apply(&[role, binding("ClusterRoleBinding", name, None, ("ClusterRole", name), subjects)])
    }

    /// Lets the ServiceAccount `default/<name>` use the clusters named `clusters` (all of them if
    /// empty) with `verbs`; returns a token for it.
    pub fn create_user(&self, name: &str, clusters: &[&str], verbs: &[&str]) -> Result<String> {
        let token = self.server.service_account_token("default", name)?;
        let account = json!([{"kind": "ServiceAccount", "name": name, "namespace": "default"}]);
        self.allow(name, &account, clusters, verbs)?;
        Ok(token)
    }

    /// Lets `subjects` (RBAC subjects) use the clusters named `clusters` (all of them if empty)
    /// with `verbs`, by a `ClusterRole` and a `ClusterRoleBinding` named `name`.
    pub fn allow(&self, name: &str, subjects: &Value, clusters: &[&str], verbs: &[&str]) -> Result<()> {
        let mut rule =
            json!({"apiGroups": ["cluster.core.oam.dev"], "resources": ["clustergateways/proxy"], "verbs": verbs});
        if !clusters.is_empty() {
            rule["resourceNames"] = json!(clusters);
        }
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": [rule],
        });
        self.apply(&[role, binding("ClusterRoleBinding", name, None, ("ClusterRole", name), subjects)])
    }

    /// Creates or changes the Secret of the cluster `name`.
    pub fn register_member(&self, name: &str, secret: &MemberSecret) -> Result<()> {
        self.apply(&[secret.document(name)])
    }

    /// Deletes the Secret of the cluster `name`.
    pub fn forget_member(&self, name: &str) -> Result<()> {
        self.server.delete(&format!("secret {name} -n {SECRET_NAMESPACE}"))
    }

    /// Creates or changes objects, whichever client changed them before.
    pub fn apply(&self, documents: &[Value]) -> Result<()> {
        self.server.force(documents)
    }
}

fn binding(kind: &str, name: &str, namespace: Option<&str>, role: (&str, &str), subjects: &Value) -> Value {
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role.0, "name": role.1},
        "subjects": subjects,
    })
}
