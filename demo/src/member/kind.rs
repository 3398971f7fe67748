//! The resources a sample member serves.
//!
//! One table: discovery, routes, field selectors and error texts all derive from it, so that nothing is
//! advertised that is not served.

/// An API group. Each is served in its version `v1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// The one without a name, under `/api`.
    Core,
    /// `coordination.k8s.io`.
    Coordination,
}

/// A resource type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// `events`: served, always empty; `kubectl describe` asks for them.
    Event,
    /// `leases`: one for each node; `kubectl describe node` asks for it.
    Lease,
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
    /// The group it belongs to.
    pub(crate) group: Group,
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

// === impl Group ===

impl Group {
    /// The groups that have a name.
    pub(crate) const NAMED: [Self; 1] = [Self::Coordination];

    /// Its name, empty for the core group.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Core => "",
            Self::Coordination => "coordination.k8s.io",
        }
    }

    /// The `apiVersion` of its objects.
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Core => "v1",
            Self::Coordination => "coordination.k8s.io/v1",
        }
    }

    /// The named group `name`.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|group| group.name() == name)
    }

    /// Its resource types.
    pub(crate) fn kinds(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| kind.traits().group == self)
    }
}

// === impl Kind ===

impl Kind {
    /// Every kind, in the order discovery lists them.
    pub(crate) const ALL: [Self; 5] = [Self::Event, Self::Lease, Self::Namespace, Self::Node, Self::Pod];

    /// The row of the table for this kind.
    pub(crate) fn traits(self) -> &'static Traits {
        match self {
            Self::Event => &EVENT,
            Self::Lease => &LEASE,
            Self::Namespace => &NAMESPACE,
            Self::Node => &NODE,
            Self::Pod => &POD,
        }
    }

    /// The kind of `group` whose path segment is `plural`.
    pub(crate) fn from_plural(group: Group, plural: &str) -> Option<Self> {
        group.kinds().find(|kind| kind.traits().plural == plural)
    }

    /// Whether the server knows `label` as a field selector label for this kind.
    pub(crate) fn selects(self, label: &str) -> bool {
        matches!(label, "metadata.name" | "metadata.namespace") || self.traits().fields.contains(&label)
    }
}

const EVENT: Traits = Traits {
    group: Group::Core,
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

const LEASE: Traits = Traits {
    group: Group::Coordination,
    kind: "Lease",
    plural: "leases",
    singular: "lease",
    short: &[],
    categories: &[],
    namespaced: true,
    fields: &[],
};

const NAMESPACE: Traits = Traits {
    group: Group::Core,
    kind: "Namespace",
    plural: "namespaces",
    singular: "namespace",
    short: &["ns"],
    categories: &[],
    namespaced: false,
    fields: &["status.phase"],
};

const NODE: Traits = Traits {
    group: Group::Core,
    kind: "Node",
    plural: "nodes",
    singular: "node",
    short: &["no"],
    categories: &[],
    namespaced: false,
    fields: &["spec.unschedulable"],
};

const POD: Traits = Traits {
    group: Group::Core,
    kind: "Pod",
    plural: "pods",
    singular: "pod",
    short: &["po"],
    categories: &["all"],
    namespaced: true,
    fields: &["spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase", "status.podIP"],
};
