//! Amount of the scenario of delivery.

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub clusters: usize,
    /// `ManifestWorks` of each cluster with [`Size::OBJECTS`] objects each, beside one with one.
    pub works: usize,
}

// === impl Size ===

impl Size {
    /// A small one, to try.
    pub const SMOKE: Self = Self { clusters: 5, works: 1 };
    /// Objects of a work.
    pub const OBJECTS: usize = 10;

    /// Number of objects of all clusters.
    pub fn objects(self) -> usize {
        self.clusters * (self.works * Self::OBJECTS + 1)
    }
}
