//! The kinds that a choice depends on.

use kube::api::ApiResource;
use placement::objects::GROUP;

use crate::parts::hub_calls;
use crate::sources::Kind;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    Placement,
    Decision,
    Cluster,
    Set,
    Binding,
    /// Optional: a hub without add-ons may lack this kind.
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

    /// Whether Placements lose clusters when objects of this kind are removed.
    pub const fn is_guarded(self) -> bool {
        matches!(self, Self::Cluster | Self::Set | Self::Binding)
    }

    /// Whether the content of this kind moves workloads, so that a stale object must not count. A
    /// stale decision does no harm: the hub refuses a write at an old version.
    pub const fn moves(self) -> bool {
        matches!(self, Self::Placement | Self::Cluster | Self::Set | Self::Binding)
    }

    /// Index into arrays of all kinds.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The resource as this part writes it.
    pub fn resource(self) -> ApiResource {
        let kind = self.kind();
        hub_calls::resource(kind.group, kind.versions[0], kind.name, kind.plural)
    }
}
