//! What a join creates on a member: a ServiceAccount, its rights and its token.
//!
//! The `ClusterRoleBinding` owns everything else. So a detach only deletes the binding, and the
//! garbage collector deletes the rest. That is one request, which can also be sent with the very
//! credential that it ends. The Namespace is the exception: a detach makes the binding its owner if
//! it contains nothing else.

use api::cluster_name::ClusterName;
use serde_json::{Value, json};

use crate::rights::Rights;
use crate::trouble::{Result, Trouble};

/// Label of this program's objects.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "kubectl-clusters");
/// Longest cluster name after which an account can be named: names of objects have at most 253
/// characters.
const LONGEST: usize = 220;

/// A ServiceAccount on a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub namespace: String,
    pub name: String,
}

// === impl Account ===

impl Account {
    /// The account of the cluster `name`, in `namespace`.
    pub fn of(name: &ClusterName, namespace: &str) -> Result<Self> {
        if name.as_str().len() > LONGEST {
            return Err(Trouble::usage(
                format!("the name is longer than {LONGEST} characters"),
                "choose a shorter one",
            ));
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_string() })
    }

    /// Parses `NAMESPACE/NAME`, the form in annotations.
    pub fn parse(text: &str) -> Option<Self> {
        let (namespace, name) = text.split_once('/')?;
        let whole = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
        whole.then(|| Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// `NAMESPACE/NAME`.
    pub fn path(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    /// The user name that API servers give it.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// Name of its `ClusterRoleBinding`, and of the `ClusterRole` if it has one of its own.
    pub fn binding(&self) -> String {
        format!("cluster-gateway:{}", self.name)
    }

    /// Name of the role that grants `rights`.
    pub fn role(&self, rights: &Rights) -> String {
        match rights {
            Rights::Role(role) => (*role).to_owned(),
            Rights::Rules(_) => self.binding(),
        }
    }

    /// The `ClusterRoleBinding`.
    pub fn binding_document(&self, rights: &Rights) -> Value {
        json!({
            "apiVersion": RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": self.binding(), "labels": labels()},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": self.role(rights)},
            "subjects": [{"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}],
        })
    }

    /// The `ClusterRole` for `rights`, unless they are an existing role.
    pub fn role_document(&self, rights: &Rights, owner: &str) -> Option<Value> {
        let Rights::Rules(rules) = rights else { return None };
        let metadata = json!({"name": self.binding(), "labels": labels(), "ownerReferences": [self.owner(owner)]});
        Some(json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": metadata, "rules": rules}))
    }

    /// The Namespace. It gets an owner only when it is to be deleted.
    pub fn namespace_document(&self, owner: Option<&str>) -> Value {
        let mut metadata = json!({"name": self.namespace, "labels": labels()});
        if let Some(owner) = owner {
            metadata["ownerReferences"] = json!([self.owner(owner)]);
        }
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    }

    /// The ServiceAccount. No pod runs as it.
    pub fn document(&self, owner: &str) -> Value {
        let owners = [self.owner(owner)];
        let metadata =
            json!({"name": self.name, "namespace": self.namespace, "labels": labels(), "ownerReferences": owners});
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata,
            "automountServiceAccountToken": false})
    }

    /// A Secret into which the member writes a token. The token is valid as long as the Secret
    /// exists.
    pub fn token_document(&self, owner: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "type": TOKEN_TYPE,
            "metadata": {
                "generateName": format!("{}-token-", self.name),
                "namespace": self.namespace,
                "labels": labels(),
                "annotations": {ACCOUNT_ANNOTATION: self.name},
                "ownerReferences": [self.owner(owner)],
            },
        })
    }

    /// An owner reference to its binding, whose uid is `uid`.
    pub fn owner(&self, uid: &str) -> Value {
        json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "name": self.binding(), "uid": uid})
    }
}

/// Type of Secrets that hold tokens.
pub const TOKEN_TYPE: &str = "kubernetes.io/service-account-token";
/// Annotation of such a Secret: the ServiceAccount whose token it holds.
pub const ACCOUNT_ANNOTATION: &str = "kubernetes.io/service-account.name";
const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn labels() -> Value {
    json!({MANAGED_BY.0: MANAGED_BY.1})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account() -> Account {
        Account::of(&ClusterName::parse("berlin").unwrap(), "cluster-gateway").unwrap()
    }

    #[test]
    fn an_account_is_told_and_read_alike() {
        assert_eq!(Account::parse(&account().path()), Some(account()));
        assert_eq!(account().user(), "system:serviceaccount:cluster-gateway:berlin");
        for wrong in ["", "a", "/a", "a/", "a/b/c"] {
            assert_eq!(Account::parse(wrong), None, "{wrong}");
        }
        assert!(Account::of(&ClusterName::parse(&"a".repeat(250)).unwrap(), "ns").is_err());
    }

    #[test]
    fn all_but_the_namespace_goes_with_the_binding() {
        let own = Rights::Rules(vec![json!({"verbs": ["get"]})]);
        let role = account().role_document(&own, "u").unwrap();
        for document in
            [role, account().document("u"), account().token_document("u"), account().namespace_document(Some("u"))]
        {
            let owner = &document["metadata"]["ownerReferences"][0];
            assert_eq!((&owner["uid"], &owner["name"]), (&json!("u"), &json!("cluster-gateway:berlin")), "{document}");
        }
        let namespace = &account().namespace_document(None)["metadata"];
        assert_eq!(
            (&namespace["ownerReferences"], &namespace["labels"][MANAGED_BY.0]),
            (&Value::Null, &json!(MANAGED_BY.1))
        );
    }

    #[test]
    fn rights_are_a_role_that_is_there_or_one_of_its_own() {
        let view = Rights::Role("view");
        assert_eq!(account().binding_document(&view)["roleRef"]["name"], "view");
        assert_eq!(account().role_document(&view, "u"), None);
        let own = Rights::Rules(vec![json!({"verbs": ["get"]})]);
        assert_eq!(account().binding_document(&own)["roleRef"]["name"], "cluster-gateway:berlin");
    }
}
