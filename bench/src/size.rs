//! Amounts of the scenarios delivery and joining.

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub clusters: usize,
    /// `ManifestWorks` of each cluster with [`Size::OBJECTS`] objects each, beside one with one.
    pub works: usize,
    /// `ManagedClusters` whose agents renew their Leases.
    pub managed: usize,
}

// === impl Size ===

impl Size {
    /// A small one, to try.
    pub const SMOKE: Self = Self { clusters: 5, works: 1, managed: 10 };
    /// Objects of a work.
    pub const OBJECTS: usize = 10;

    /// Number of objects of all clusters.
    pub fn objects(self) -> usize {
        self.clusters * (self.works * Self::OBJECTS + 1)
    }
}
