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
/// Kind of one of [`CLUSTERS`].
pub const KIND: &str = "Cluster";

/// Label of a cluster's Secret: `spec.region`.
pub const REGION_LABEL: &str = "topology.kubernetes.io/region";
/// Label of a cluster's Secret: `spec.zones`, or the older `spec.zone`. Several are joined by
/// [`ZONE_DELIMITER`].
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// Label of a cluster's Secret: `spec.provider`. No key of Kubernetes means this.
pub const PROVIDER_LABEL: &str = "cluster.core.oam.dev/provider";
/// As Kubernetes joins the zones of volumes (`k8s.io/cloud-provider/volume`).
pub const ZONE_DELIMITER: &str = "__";

/// Annotation of a cluster's Secret: JSON of what a Cluster says beyond it.
pub const ANNOTATION: &str = "cluster.core.oam.dev/karmada-cluster";

/// Annotation of a cluster's Secret: the cluster was created by Karmada's API (`true`), and may be
/// given another address by it.
pub const CREATED_ANNOTATION: &str = "cluster.core.oam.dev/karmada-created";

/// The group of a resource that is served here.
pub fn group_of(resource: &str) -> &'static str {
    if resource == CLUSTERS { GROUP } else { crate::GROUP }
}
