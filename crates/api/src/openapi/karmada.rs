//! The schemas of Karmada's types, with the field names of `pkg/apis/cluster/v1alpha1/types.go`.

use super::schema::Form::{Boolean, List, Object, Open, Text, TextMap, Texts, Time};
use super::schema::{Field, Schema};

pub(super) const SCHEMAS: &[Schema] = &[
    Schema {
        name: "Cluster",
        description: "A member cluster. It is a view of the Secret of the same name.",
        is_kind: true,
        fields: &[
            Field::new("metadata", Object("ObjectMeta"), "Metadata of the cluster."),
            Field::new("spec", Object("ClusterSpec"), "How the cluster is reached, and where it is.").required(),
            Field::new("status", Object("ClusterStatus"), "What was reported of the cluster."),
        ],
    },
    Schema {
        name: "ClusterList",
        description: "A list of Clusters.",
        is_kind: true,
        fields: &[
            Field::new("metadata", Object("ListMeta"), "Metadata of the list."),
            Field::new("items", List("Cluster"), "The clusters.").required(),
        ],
    },
    Schema {
        name: "ClusterSpec",
        description: "How a cluster is reached, and where it is.",
        is_kind: false,
        fields: &[
            Field::new("id", Text, "uid of the cluster's Namespace kube-system."),
            Field::new("syncMode", Text, "Push or Pull.").required(),
            Field::new("apiEndpoint", Text, "URL of the API server."),
            Field::new(
                "secretRef",
                Object("LocalSecretReference"),
                "The Secret with the credential (token) and the CA bundle (caBundle).",
            ),
            Field::new(
                "impersonatorSecretRef",
                Object("LocalSecretReference"),
                "The Secret with the credential (token) if secretRef has none.",
            ),
            Field::new("insecureSkipTLSVerification", Boolean, "The API server's certificate is not verified."),
            Field::new("proxyURL", Text, "URL of the proxy that connections to the API server go through."),
            Field::new("proxyHeader", TextMap, "Proxy-Authorization for the proxy. Never shown."),
            Field::new("provider", Text, "Cloud provider of the cluster."),
            Field::new("region", Text, "Region of the cluster."),
            Field::new("zone", Text, "Deprecated: use zones."),
            Field::new("zones", Texts, "Failure zones of the cluster."),
            Field::new("taints", List("Taint"), "Taints of the cluster."),
            Field::new("resourceModels", Open, "As written: nothing here schedules by them."),
        ],
    },
    Schema {
        name: "ClusterProxyOptions",
        description: "Parameters of a proxied request.",
        is_kind: true,
        fields: &[Field::new("path", Text, "The path on the member cluster.")],
    },
    Schema {
        name: "LocalSecretReference",
        description: "Where a Secret is.",
        is_kind: false,
        fields: &[
            Field::new("namespace", Text, "Namespace of the Secret: karmada-cluster.").required(),
            Field::new("name", Text, "Name of the Secret.").required(),
        ],
    },
    Schema {
        name: "Taint",
        description: "A taint of a cluster.",
        is_kind: false,
        fields: &[
            Field::new("key", Text, "Key of the taint.").required(),
            Field::new("value", Text, "Value of the taint."),
            Field::new("effect", Text, "NoSchedule or NoExecute.").required(),
            Field::new("timeAdded", Time, "When the taint was added, if its effect is NoExecute."),
        ],
    },
    Schema {
        name: "ClusterStatus",
        description: "What was reported of a cluster.",
        is_kind: false,
        fields: &[
            Field::new("kubernetesVersion", Text, "Version of the cluster."),
            Field::new("apiEnablements", Open, "APIs of the cluster."),
            Field::new("conditions", List("Condition"), "Conditions of the cluster, such as Ready."),
            Field::new("nodeSummary", Open, "Number of nodes."),
            Field::new("resourceSummary", Open, "Resources of the cluster."),
            Field::new("remedyActions", Texts, "Remedies that are due."),
        ],
    },
    Schema {
        name: "Condition",
        description: "A condition of a cluster.",
        is_kind: false,
        fields: &[
            Field::new("type", Text, "What it is about.").required(),
            Field::new("status", Text, "True, False or Unknown.").required(),
            Field::new("lastTransitionTime", Time, "When it changed last."),
            Field::new("reason", Text, "Why, in a word."),
            Field::new("message", Text, "Why, in a sentence."),
        ],
    },
];
