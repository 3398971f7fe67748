//! Names of the part of Karmada's API that we serve
//! (`github.com/karmada-io/karmada/pkg/apis/cluster/v1alpha1`).

/// The group of Karmada's clusters.
pub const GROUP: &str = "cluster.karmada.io";
/// The only version of [`GROUP`].
pub const VERSION: &str = "v1alpha1";
/// `apiVersion` of everything in [`GROUP`].
pub const API_VERSION: &str = "cluster.karmada.io/v1alpha1";
/// The resource that has the members' proxy paths below it.
pub const CLUSTERS: &str = "clusters";
/// The kind of an object of [`CLUSTERS`].
pub const KIND: &str = "Cluster";

/// Label of a cluster's Secret: `spec.region`.
pub const REGION_LABEL: &str = "topology.kubernetes.io/region";
/// Label of a cluster's Secret: `spec.zones`, or the older `spec.zone`. [`ZONE_DELIMITER`]
/// separates several zones.
pub const ZONE_LABEL: &str = "topology.kubernetes.io/zone";
/// Label of a cluster's Secret: `spec.provider`. Kubernetes has no key with this meaning.
pub const PROVIDER_LABEL: &str = "cluster.core.oam.dev/provider";
/// The separator that Kubernetes uses for the zones of volumes (`k8s.io/cloud-provider/volume`).
pub const ZONE_DELIMITER: &str = "__";

/// Annotation of a cluster's Secret: JSON of the parts of a Cluster that the Secret does not
/// contain otherwise.
pub const ANNOTATION: &str = "cluster.core.oam.dev/karmada-cluster";

/// Annotation of a cluster's Secret: `true` if the cluster was created through Karmada's API, which
/// may then change its address.
pub const CREATED_ANNOTATION: &str = "cluster.core.oam.dev/karmada-created";

/// The group of a resource that we serve.
pub fn group_of(resource: &str) -> &'static str {
    if resource == CLUSTERS { GROUP } else { crate::GROUP }
}
