//! `ServiceAccounts`: their rights, and their tokens.

use std::time::Duration;

use anyhow::{Context as _, Result};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{JSON, Objects};
use crate::control_plane::ApiServer;
use crate::wait;

/// Lifetime of a requested token, a day: longer than any run.
const TOKEN_SECONDS: u64 = 24 * 60 * 60;
const REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const RBAC: &str = "rbac.authorization.k8s.io";
/// Time for a server to notice a right.
const LIMIT: Duration = Duration::from_secs(30);

// === impl ApiServer ===

impl ApiServer {
    /// A token for a ServiceAccount, which is created if it does not exist.
    pub fn service_account_token(&self, namespace: &str, name: &str) -> Result<String> {
        let metadata = json!({"name": name, "namespace": namespace});
        self.apply(&[json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})])?;
        self.token(namespace, name)
    }

    /// The same for an existing ServiceAccount.
    pub fn token(&self, namespace: &str, name: &str) -> Result<String> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token");
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": TOKEN_SECONDS}});
        let answer = Objects::of(self).send(&Method::POST, &path, JSON, &request)?;
        let answer = answer.expect(StatusCode::CREATED)?.json()?;
        answer["status"]["token"].as_str().map(str::to_owned).context("no token")
    }

    /// Binds a `ClusterRole` to a ServiceAccount in all namespaces, by a binding named `name`.
    pub fn bind(&self, name: &str, role: &str, (namespace, account): (&str, &str)) -> Result<()> {
        self.create(&[json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
        })])
    }

    /// Grants a ServiceAccount what `rules` say, by a role and a binding named `name`: in
    /// `namespace`, or everywhere. Returns once the server, whose authorizer follows what is
    /// stored, grants the first of them.
    pub fn grant(&self, name: &str, namespace: Option<&str>, rules: &Value, (of, account): (&str, &str)) -> Result<()> {
        let (scope, version) = (if namespace.is_some() { "" } else { "Cluster" }, format!("{RBAC}/v1"));
        let metadata = json!({"name": name, "namespace": namespace});
        let kind = format!("{scope}Role");
        let role = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules});
        let binding = json!({"apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "namespace": of, "name": account}]});
        self.create(&[role, binding])?;
        let word = |list: &str| rules[0][list][0].as_str().unwrap_or_default();
        let (resource, subresource) = word("resources").split_once('/').unwrap_or((word("resources"), ""));
        let verb = if word("verbs") == "*" { "get" } else { word("verbs") };
        let attributes = json!({"verb": verb, "group": word("apiGroups"), "resource": resource,
            "subresource": subresource, "name": word("resourceNames"), "namespace": namespace.unwrap_or_default()});
        wait::until_true(&format!("the right {name}"), LIMIT, || self.may(of, account, &attributes))
    }

    /// The name of the user whose token this is; `None` if it is nobody's.
    pub fn user_of(&self, token: &str) -> Result<Option<String>> {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
        let answer = Objects::of(self).send(&Method::POST, TOKEN_REVIEWS, JSON, &review)?;
        let answer = answer.expect(StatusCode::CREATED)?.json()?;
        let is_known = answer["status"]["authenticated"] == true;
        Ok(answer["status"]["user"]["username"].as_str().filter(|_| is_known).map(str::to_owned))
    }

    /// Whether the ServiceAccount `namespace/account` may do what `attributes` (a review's
    /// `resourceAttributes`) say.
    pub fn may(&self, namespace: &str, account: &str, attributes: &Value) -> Result<bool> {
        let groups = ["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")];
        self.may_user(&format!("system:serviceaccount:{namespace}:{account}"), &groups, attributes)
    }

    /// The same for a user with these groups.
    pub fn may_user(&self, user: &str, groups: &[&str], attributes: &Value) -> Result<bool> {
        let groups = [groups, &["system:authenticated"]].concat();
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": groups, "resourceAttributes": attributes},
        });
        let answer = Objects::of(self).send(&Method::POST, REVIEWS, JSON, &review)?;
        let answer = answer.expect(StatusCode::CREATED)?.json()?;
        answer["status"]["allowed"].as_bool().with_context(|| answer.to_string())
    }
}
