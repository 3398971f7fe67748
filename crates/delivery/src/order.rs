//! The order in which objects are applied: objects that others need come first.

/// The rank of a kind. Objects of a lower rank come first, those of one rank together. The group
/// does not matter: upstream looks only at the kind.
pub fn rank(kind: &str) -> u16 {
    let found = RANKS.iter().position(|kinds| kinds.contains(&kind));
    found.and_then(|at| u16::try_from(at).ok()).unwrap_or(OTHERS)
}

/// The rank of every other kind.
pub const OTHERS: u16 = 1000;
/// The rank of manifests that cannot be parsed.
pub const UNREAD: u16 = 1001;

const RANKS: [&[&str]; 7] = [
    &[
        "PriorityClass",
        "Namespace",
        "CustomResourceDefinition",
        "StorageClass",
        "PersistentVolume",
        "PodSecurityPolicy",
    ],
    &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    &["NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount"],
    &["Secret", "ConfigMap", "PersistentVolumeClaim"],
    &["Service"],
    &[
        "DaemonSet",
        "Pod",
        "ReplicationController",
        "ReplicaSet",
        "Deployment",
        "HorizontalPodAutoscaler",
        "StatefulSet",
        "Job",
        "CronJob",
    ],
    &[
        "APIService",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_need_comes_first() {
        let kinds = ["Namespace", "Role", "ServiceAccount", "Secret", "Service", "Deployment", "APIService", "Widget"];
        let ranks: Vec<u16> = kinds.into_iter().map(rank).collect();
        assert_eq!(ranks, [0, 1, 2, 3, 4, 5, 6, OTHERS]);
        assert_eq!((rank("MutatingAdmissionPolicy"), rank("")), (OTHERS, OTHERS));
    }
}
