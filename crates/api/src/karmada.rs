//! What of Karmada's API is served here, by its names
//! (`github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1`).

/// Group of its clusters.
pub const GROUP: &str = "cluster.karmada.io";
/// The one version of [`GROUP`].
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of everything in [`GROUP`].
pub const API_VERSION: &str = "cluster.karmada.io/v1alpha1";
/// The resource below which members are proxied.
pub const CLUSTERS: &str = "clusters";
