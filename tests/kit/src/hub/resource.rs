//! The resources the hub stores, and how the path of a request names them.

use percent_encoding::percent_decode_str;

/// A resource the hub knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// `v1 secrets`.
    Secrets,
    /// `v1 configmaps`.
    ConfigMaps,
    /// `apiregistration.k8s.io/v1 apiservices`, cluster-scoped.
    ApiServices,
    /// `rbac.authorization.k8s.io/v1 clusterroles`, cluster-scoped.
    ClusterRoles,
    /// `rbac.authorization.k8s.io/v1 clusterrolebindings`, cluster-scoped.
    ClusterRoleBindings,
    /// `cluster.open-cluster-management.io/v1 managedclusters`, cluster-scoped: a custom resource,
    /// which a hub has only after [`FakeHub::install`](super::FakeHub::install).
    ManagedClusters,
}

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// All objects, of one namespace if given.
    Collection(Resource, Option<String>),
    /// One object; the namespace is empty for cluster-scoped resources.
    Object(Resource, String, String),
    TokenReviews,
    AccessReviews,
    /// Discovery: the API groups there are.
    Groups,
    Version,
    Health,
    Unknown,
}

// === impl Resource ===

impl Resource {
    /// Whether every hub has it.
    pub(super) fn is_built_in(self) -> bool {
        self != Self::ManagedClusters
    }

    pub(super) const ALL: [Self; 6] = [
        Self::Secrets,
        Self::ConfigMaps,
        Self::ApiServices,
        Self::ClusterRoles,
        Self::ClusterRoleBindings,
        Self::ManagedClusters,
    ];

    /// `v1`, or group and version.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Secrets | Self::ConfigMaps => "v1",
            Self::ApiServices => "apiregistration.k8s.io/v1",
            Self::ClusterRoles | Self::ClusterRoleBindings => "rbac.authorization.k8s.io/v1",
            Self::ManagedClusters => "cluster.open-cluster-management.io/v1",
        }
    }

    /// The kind of its objects.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Secrets => "Secret",
            Self::ConfigMaps => "ConfigMap",
            Self::ApiServices => "APIService",
            Self::ClusterRoles => "ClusterRole",
            Self::ClusterRoleBindings => "ClusterRoleBinding",
            Self::ManagedClusters => "ManagedCluster",
        }
    }

    /// The API group; empty for the core's.
    pub(super) fn group(self) -> &'static str {
        self.api_version().split_once('/').map_or("", |(group, _)| group)
    }

    /// The plural in paths.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Secrets => "secrets",
            Self::ConfigMaps => "configmaps",
            Self::ApiServices => "apiservices",
            Self::ClusterRoles => "clusterroles",
            Self::ClusterRoleBindings => "clusterrolebindings",
            Self::ManagedClusters => "managedclusters",
        }
    }

    /// Whether its objects live in namespaces.
    pub fn namespaced(self) -> bool {
        matches!(self, Self::Secrets | Self::ConfigMaps)
    }

    fn find(api_version: &str, plural: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|resource| resource.api_version() == api_version && resource.plural() == plural)
    }
}

// === impl Target ===

impl Target {
    /// The resource it is about, if it is about one that is stored.
    pub(super) fn resource(&self) -> Option<Resource> {
        match self {
            Self::Collection(resource, _) | Self::Object(resource, ..) => Some(*resource),
            _ => None,
        }
    }

    pub(super) fn parse(path: &str) -> Self {
        let segments: Vec<String> = path
            .trim_matches('/')
            .split('/')
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            ["version"] => Self::Version,
            ["apis"] => Self::Groups,
            ["healthz" | "livez" | "readyz"] => Self::Health,
            ["apis", "authentication.k8s.io", "v1", "tokenreviews"] => Self::TokenReviews,
            ["apis", "authorization.k8s.io", "v1", "subjectaccessreviews"] => Self::AccessReviews,
            ["api", version, rest @ ..] => Self::of_group(version, rest),
            ["apis", group, version, rest @ ..] => Self::of_group(&format!("{group}/{version}"), rest),
            _ => Self::Unknown,
        }
    }

    fn of_group(api_version: &str, rest: &[&str]) -> Self {
        let (namespace, rest) = match rest {
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
            rest => (None, rest),
        };
        let Some(resource) = rest.first().and_then(|plural| Resource::find(api_version, plural)) else {
            return Self::Unknown;
        };
        match (&rest[1..], namespace) {
            ([], namespace) if namespace.is_none() || resource.namespaced() => Self::Collection(resource, namespace),
            ([name], Some(namespace)) if resource.namespaced() => Self::Object(resource, namespace, (*name).to_owned()),
            ([name], None) if !resource.namespaced() => Self::Object(resource, String::new(), (*name).to_owned()),
            _ => Self::Unknown,
        }
    }
}
