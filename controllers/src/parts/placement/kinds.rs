//! The kinds that a choice depends on.

use kube::api::ApiResource;
use placement::objects::GROUP;

use crate::parts::hub;
use crate::sources::Kind;

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Placement,
    Decision,
    Cluster,
    Set,
    Binding,
    /// Nothing waits for these: a hub without add-ons may lack the kind.
    Score,
}

const PLACEMENTS: Kind = kind("Placement", "placements", &["v1beta1"]);
const DECISIONS: Kind = kind("PlacementDecision", "placementdecisions", &["v1beta1"]);
const CLUSTERS: Kind = kind("ManagedCluster", "managedclusters", &["v1"]);
const SETS: Kind = kind("ManagedClusterSet", "managedclustersets", &["v1beta2"]);
const BINDINGS: Kind = kind("ManagedClusterSetBinding", "managedclustersetbindings", &["v1beta2"]);
const SCORES: Kind = kind("AddOnPlacementScore", "addonplacementscores", &["v1alpha1"]);

const fn kind(name: &'static str, plural: &'static str, versions: &'static [&'static str]) -> Kind {
    Kind { group: GROUP, name, plural, versions, is_custom: true }
}

// === impl Of ===

impl Of {
    pub const ALL: [Self; 6] = [Self::Placement, Self::Decision, Self::Cluster, Self::Set, Self::Binding, Self::Score];

    pub const fn kind(self) -> &'static Kind {
        match self {
            Self::Placement => &PLACEMENTS,
            Self::Decision => &DECISIONS,
            Self::Cluster => &CLUSTERS,
            Self::Set => &SETS,
            Self::Binding => &BINDINGS,
            Self::Score => &SCORES,
        }
    }

    /// Whether Placements lose clusters when objects of it go.
    pub const fn is_guarded(self) -> bool {
        matches!(self, Self::Cluster | Self::Set | Self::Binding)
    }

    /// Whether workloads move by what it says: what is stale of it must not count. Of decisions, it
    /// is refused.
    pub const fn moves(self) -> bool {
        matches!(self, Self::Placement | Self::Cluster | Self::Set | Self::Binding)
    }

    /// Its position among all.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// As it is written.
    pub fn resource(self) -> ApiResource {
        let kind = self.kind();
        hub::resource(kind.group, kind.versions[0], kind.name, kind.plural)
    }
}
