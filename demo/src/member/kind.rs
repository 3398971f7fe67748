//! The resources a sample member serves.
//!
//! One table: discovery, routes, field selectors and error texts all derive from it, so that nothing is
//! advertised that is not served.

/// A resource type of the core group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// `events`: served, always empty; `kubectl describe` asks for them.
    Event,
    /// `namespaces`.
    Namespace,
    /// `nodes`.
    Node,
    /// `pods`.
    Pod,
}

/// What the Kubernetes API conventions want to know about a resource type.
#[derive(Debug)]
pub(crate) struct Traits {
    /// The object's `kind`.
    pub(crate) kind: &'static str,
    /// The path segment.
    pub(crate) plural: &'static str,
    /// `singularName` of discovery.
    pub(crate) singular: &'static str,
    /// `shortNames` of discovery.
    pub(crate) short: &'static [&'static str],
    /// Groups of resources such as `all`.
    pub(crate) categories: &'static [&'static str],
    /// Whether objects live in a namespace.
    pub(crate) namespaced: bool,
    /// Field selector labels besides `metadata.name` and `metadata.namespace`.
    pub(crate) fields: &'static [&'static str],
}

// === impl Kind ===

impl Kind {
    /// Every kind, in the order discovery lists them.
    pub(crate) const ALL: [Self; 4] = [Self::Event, Self::Namespace, Self::Node, Self::Pod];

    /// The row of the table for this kind.
    pub(crate) fn traits(self) -> &'static Traits {
        match self {
            Self::Event => &EVENT,
            Self::Namespace => &NAMESPACE,
            Self::Node => &NODE,
            Self::Pod => &POD,
        }
    }

    /// The kind whose path segment is `plural`.
    pub(crate) fn from_plural(plural: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.traits().plural == plural)
    }

    /// Whether the server knows `label` as a field selector label for this kind.
    pub(crate) fn selects(self, label: &str) -> bool {
        matches!(label, "metadata.name" | "metadata.namespace") || self.traits().fields.contains(&label)
    }
}

const EVENT: Traits = Traits {
    kind: "Event",
    plural: "events",
    singular: "event",
    short: &["ev"],
    categories: &[],
    namespaced: true,
    fields: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ],
};

const NAMESPACE: Traits = Traits {
    kind: "Namespace",
    plural: "namespaces",
    singular: "namespace",
    short: &["ns"],
    categories: &[],
    namespaced: false,
    fields: &["status.phase"],
};

const NODE: Traits = Traits {
    kind: "Node",
    plural: "nodes",
    singular: "node",
    short: &["no"],
    categories: &[],
    namespaced: false,
    fields: &["spec.unschedulable"],
};

const POD: Traits = Traits {
    kind: "Pod",
    plural: "pods",
    singular: "pod",
    short: &["po"],
    categories: &["all"],
    namespaced: true,
    fields: &["spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase", "status.podIP"],
};
