//! The objects of an accepted cluster on the hub. They and their names are upstream's, so that
//! either side's controllers can take over from the other's.
//! <https://github.com/open-cluster-management-io/ocm/tree/v1.2.0/pkg/registration/hub/manifests>
//!
//! Only our controllers know the right to link through a tunnel. It has objects of its own:
//! upstream's controllers would rewrite their role without it, and ours would write it back.

mod observed;
mod rules;

use serde_json::{Value, json};

use self::rules::{accepted_rules, looking_rules, object};

pub use self::observed::{Difference, ObservedGrant};
pub use self::rules::{common_roles, is_common};

const RBAC: &str = "rbac.authorization.k8s.io";
const PREFIX: &str = "open-cluster-management:managedcluster:";
/// Suffixes of the names of roles that all clusters share. No cluster has such a name.
pub(super) const COMMON: [&str; 2] = ["registration", "work"];
/// The prefix for objects that upstream does not have.
const OWN_PREFIX: &str = "cluster-gateway:managedcluster:";
/// The suffix of the names of the right to link through a tunnel.
const TUNNEL: &str = ":tunnel";
/// The role of agents that fill the token Secret of their own cluster's `ManagedServiceAccount`.
const CREDENTIAL: &str = "cluster-gateway:managedcluster:credential";
/// Finalizer that holds the right to works while there are any.
pub const WORK_FINALIZER: &str = "cluster.open-cluster-management.io/manifest-work-cleanup";

/// A kind of object that acceptance writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    Namespace,
    ClusterRole,
    ClusterRoleBinding,
    RoleBinding,
}

/// The key of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub kind: Kind,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
    pub name: String,
}

/// An object that acceptance writes, and its wanted content.
#[derive(Debug, Clone, PartialEq)]
pub struct DesiredGrant {
    pub key: Key,
    pub document: Value,
}

/// A cluster: its name, which [`super::standing::check_name`] allowed, and its object's uid.
#[derive(Debug, Clone, Copy)]
pub struct Cluster<'a> {
    pub name: &'a str,
    pub uid: &'a str,
}

// === impl Kind ===

impl Kind {
    pub const ALL: [Self; 4] = [Self::Namespace, Self::ClusterRole, Self::ClusterRoleBinding, Self::RoleBinding];

    /// Group, version, kind and plural.
    pub fn resource(self) -> [&'static str; 4] {
        match self {
            Self::Namespace => ["", "v1", "Namespace", "namespaces"],
            Self::ClusterRole => [RBAC, "v1", "ClusterRole", "clusterroles"],
            Self::ClusterRoleBinding => [RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings"],
            Self::RoleBinding => [RBAC, "v1", "RoleBinding", "rolebindings"],
        }
    }
}

// === impl Cluster ===

impl Cluster<'_> {
    /// Everything that acceptance grants, in the order of writing. `fills`: the agent may fill the
    /// Secret of [`common_roles`].
    pub fn granted(&self, fills: bool) -> Vec<DesiredGrant> {
        let mut all = vec![self.namespace(), self.role(true), self.tunnel_role()];
        all.extend([self.binding(), self.registration(), self.work(), self.tunnel_binding()]);
        all.extend(fills.then(|| self.credential()));
        all
    }

    /// The grants that stay after a denial, if they exist: the cluster may read its own
    /// `ManagedCluster`, and so learn of a later acceptance.
    pub fn left(&self) -> [DesiredGrant; 2] {
        [self.role(false), self.binding()]
    }

    /// The grants that a denial removes, in the order of removal.
    pub fn withdrawn(&self) -> [Key; 5] {
        let [binding, role] = [self.tunnel_binding().key, self.tunnel_role().key];
        [binding, self.registration().key, self.work().key, self.credential().key, role]
    }

    /// The grants that the cluster's end removes after that. The namespace stays, because it
    /// contains people's objects.
    pub fn ended(&self) -> [Key; 2] {
        [self.binding().key, self.role(false).key]
    }

    /// The right to works: when the cluster leaves, it stays until the last work is gone.
    pub fn work_key(&self) -> Key {
        self.work().key
    }

    /// An object that exists from the first acceptance to the end, and that no agent can write: it
    /// proves that an administrator judged the cluster.
    pub fn mark_key(&self) -> Key {
        self.role(false).key
    }

    pub fn namespace_key(&self) -> Key {
        self.namespace().key
    }

    fn namespace(&self) -> DesiredGrant {
        self.object(Kind::Namespace, "", self.name.to_owned(), json!({}))
    }

    fn role(&self, is_accepted: bool) -> DesiredGrant {
        let rules = if is_accepted { accepted_rules(self.name) } else { looking_rules(self.name) };
        self.object(Kind::ClusterRole, "", format!("{PREFIX}{}", self.name), json!({"rules": rules}))
    }

    fn binding(&self) -> DesiredGrant {
        let name = format!("{PREFIX}{}", self.name);
        let content = self.bound(&name);
        self.object(Kind::ClusterRoleBinding, "", name, content)
    }

    fn registration(&self) -> DesiredGrant {
        let content = self.bound(&format!("{PREFIX}registration"));
        self.object(Kind::RoleBinding, self.name, format!("{PREFIX}{}:registration", self.name), content)
    }

    fn work(&self) -> DesiredGrant {
        let content = self.bound(&format!("{PREFIX}work"));
        let mut work = self.object(Kind::RoleBinding, self.name, format!("{PREFIX}{}:work", self.name), content);
        work.document["metadata"]["finalizers"] = json!([WORK_FINALIZER]);
        work
    }

    fn credential(&self) -> DesiredGrant {
        let name = format!("{OWN_PREFIX}{}:credential", self.name);
        self.owned(self.object(Kind::RoleBinding, self.name, name, self.bound(CREDENTIAL)))
    }

    fn tunnel_role(&self) -> DesiredGrant {
        let rules = json!([{"apiGroups": ["cluster.core.oam.dev"], "resources": ["clustergateways/tunnel"],
            "resourceNames": [self.name], "verbs": ["create"]}]);
        self.owned(self.object(Kind::ClusterRole, "", self.tunnel_name(), json!({"rules": rules})))
    }

    fn tunnel_binding(&self) -> DesiredGrant {
        let name = self.tunnel_name();
        let content = self.bound(&name);
        self.owned(self.object(Kind::ClusterRoleBinding, "", name, content))
    }

    fn tunnel_name(&self) -> String {
        format!("{OWN_PREFIX}{}{TUNNEL}", self.name)
    }

    /// Makes its deletion follow the cluster's, with any controllers: upstream's do not know the
    /// object.
    fn owned(&self, mut wanted: DesiredGrant) -> DesiredGrant {
        wanted.document["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "name": self.name, "uid": self.uid}]);
        wanted
    }

    fn bound(&self, role: &str) -> Value {
        let group = |prefix: &str| json!({"kind": "Group", "apiGroup": RBAC, "name": format!("{prefix}{}", self.name)});
        json!({
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [group("system:open-cluster-management:"), group("open-cluster-management:")],
        })
    }

    fn object(&self, kind: Kind, namespace: &str, name: String, content: Value) -> DesiredGrant {
        object(kind, namespace, name, self.name, content)
    }
}

/// Whether acceptance creates objects with such a name. Anyone who may write `RoleBinding`s in a
/// namespace chooses their names and labels, so only the names for the cluster of the namespace's
/// name count.
pub fn is_made(kind: Kind, namespace: &str, name: &str) -> bool {
    let cluster = Cluster { name: namespace, uid: "" };
    match kind {
        Kind::Namespace => true,
        Kind::ClusterRole | Kind::ClusterRoleBinding => name.starts_with(PREFIX) || name.starts_with(OWN_PREFIX),
        Kind::RoleBinding => {
            let made = [cluster.registration(), cluster.work(), cluster.credential()];
            made.iter().any(|wanted| wanted.key.name == name)
        }
    }
}

/// The cluster for which acceptance would create an object of this key.
pub fn made_for(key: &Key) -> Option<&str> {
    match key.kind {
        Kind::Namespace => Some(&key.name),
        Kind::RoleBinding => Some(&key.namespace),
        Kind::ClusterRole | Kind::ClusterRoleBinding => {
            let own = || key.name.strip_prefix(OWN_PREFIX)?.strip_suffix(TUNNEL);
            key.name.strip_prefix(PREFIX).or_else(own)
        }
    }
}

#[cfg(test)]
mod tests;
