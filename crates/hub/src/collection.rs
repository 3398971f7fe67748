//! What there is to ask of the hub.

/// Objects of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collection {
    /// The Secrets of the namespace that holds clusters.
    Secrets,
    /// OCM's `ManagedCluster`.
    ManagedClusters,
    /// What discovery names: no resource, there is a list only.
    ApiGroups,
}

// === impl Collection ===

impl Collection {
    pub fn plural(self) -> &'static str {
        match self {
            Self::Secrets => "secrets",
            Self::ManagedClusters => "managedclusters",
            Self::ApiGroups => "API groups",
        }
    }
}
