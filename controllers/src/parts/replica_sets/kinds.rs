//! The kinds that this part depends on.

use kube::api::ApiResource;

use crate::parts::hub_calls;
use crate::sources::Kind;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// `ManifestWorkReplicaSet`.
    Set,
    /// `ManifestWork` of a set.
    Work,
    Placement,
    Decision,
}

const SETS: Kind = kind(delivery::work::GROUP, "ManifestWorkReplicaSet", "manifestworkreplicasets", &["v1alpha1"]);
const WORKS: Kind = kind(delivery::work::GROUP, "ManifestWork", "manifestworks", &["v1"]);
const PLACEMENTS: Kind = kind(placement::objects::GROUP, "Placement", "placements", &["v1beta1"]);
const DECISIONS: Kind = kind(placement::objects::GROUP, "PlacementDecision", "placementdecisions", &["v1beta1"]);

const fn kind(
    group: &'static str,
    name: &'static str,
    plural: &'static str,
    versions: &'static [&'static str],
) -> Kind {
    Kind { group, name, plural, versions, is_custom: true }
}

// === impl Of ===

impl Of {
    pub const ALL: [Self; 4] = [Self::Set, Self::Work, Self::Placement, Self::Decision];

    pub const fn kind(self) -> &'static Kind {
        match self {
            Self::Set => &SETS,
            Self::Work => &WORKS,
            Self::Placement => &PLACEMENTS,
            Self::Decision => &DECISIONS,
        }
    }

    /// Its index in `ALL`.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its API resource.
    pub fn resource(self) -> ApiResource {
        let kind = self.kind();
        hub_calls::resource(kind.group, kind.versions[0], kind.name, kind.plural)
    }
}
