//! What is known of a name: its Secret and its `ManagedCluster`.

use std::collections::{HashMap, HashSet};

use api::list_options::Selectors;
use api::virtual_cluster::VirtualCluster;

use crate::resources::weight::ENTRY;

/// The objects that existed when a watch from a version had begun. Empty for watches that begin
/// with all objects: names that they received no event for do not exist.
#[derive(Default)]
pub struct ObjectsAtStart {
    /// Names that a Secret decides.
    pub secrets: HashSet<String>,
    pub managed: HashMap<String, VirtualCluster>,
}

/// The known state of a name. `None` means that there was no event.
#[derive(Default)]
pub(super) struct KnownName {
    /// Whether a Secret decides.
    pub(super) secret: Option<bool>,
    pub(super) managed: Managed,
    /// Whether the watcher sees the object.
    pub(super) shown: Option<bool>,
}

/// A name's `ManagedCluster`.
#[derive(Default)]
pub(super) enum Managed {
    #[default]
    Unheard,
    /// There is none that could be shown.
    Absent,
    There(Box<VirtualCluster>),
}

// === impl ObjectsAtStart ===

impl ObjectsAtStart {
    pub(super) fn held(&self) -> usize {
        let secrets = self.secrets.iter().map(|name| ENTRY + name.len()).sum::<usize>();
        secrets + self.managed.values().map(VirtualCluster::held).sum::<usize>()
    }

    /// Whether a watcher from `start` saw the `ManagedCluster` of this name, which a first Secret
    /// now hides. `None` if it was written after `start`: then it may be new, too.
    pub(super) fn shown_at(&self, start: u64, name: &str, selectors: &Selectors) -> Option<bool> {
        let cluster = self.managed.get(name)?;
        let version: u64 = cluster.resource_version.parse().ok()?;
        (version <= start).then(|| cluster.is_selected(selectors))
    }
}

// === impl KnownName ===

impl KnownName {
    pub(super) fn held(&self) -> usize {
        let object = if let Managed::There(cluster) = &self.managed { cluster.held() } else { 0 };
        size_of::<Self>() + object
    }

    pub(super) fn managed(&mut self, known: &mut ObjectsAtStart, name: &str) -> Option<VirtualCluster> {
        if matches!(self.managed, Managed::Unheard) {
            self.managed = known.managed.remove(name).into();
        }
        match &self.managed {
            Managed::There(cluster) => Some(VirtualCluster::clone(cluster)),
            Managed::Unheard | Managed::Absent => None,
        }
    }
}

// === impl Managed ===

impl From<Option<VirtualCluster>> for Managed {
    fn from(cluster: Option<VirtualCluster>) -> Self {
        cluster.map_or(Self::Absent, |cluster| Self::There(Box::new(cluster)))
    }
}
