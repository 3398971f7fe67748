//! Finds a resource in a member's discovery documents, as kubectl does.

use serde::Deserialize;

/// Media types of aggregated discovery, the form of `/api` and `/apis` that contains everything
/// (KEP-3352). Newest first.
pub const ACCEPT: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// Where the objects of a resource are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// Path of its group and version: `/api/v1` or `/apis/apps/v1`.
    pub root: String,
    /// Plural name.
    pub name: String,
    pub namespaced: bool,
}

/// A resource as a person names it: `pods`, `po`, `Deployment`, `deploy.apps`,
/// `deployments.v1.apps`, with `/NAME` for one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceArgument {
    name: String,
    /// The text after the first dot.
    group: Option<String>,
    pub object: Option<String>,
}

/// `APIGroupDiscoveryList`.
#[derive(Debug, Deserialize)]
pub struct Groups {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Debug, Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
}

#[derive(Debug, Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    resources: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    resource: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    scope: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

// === impl ResourceArgument ===

impl ResourceArgument {
    /// Parses it. `None` if a part is empty, or has characters that a path must not have.
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, object) = text.split_once('/').map_or((text, None), |(kind, object)| (kind, Some(object)));
        let (name, group) = kind.split_once('.').map_or((kind, None), |(name, group)| (name, Some(group)));
        let plain = |part: &str| !part.is_empty() && !part.contains(['/', '?', '#', '%', ' ']) && part != "..";
        let all = [Some(name), group, object];
        all.into_iter().flatten().all(plain).then(|| Self {
            name: name.to_lowercase(),
            group: group.map(str::to_owned),
            object: object.map(str::to_owned),
        })
    }

    /// The first resource with this name that can be listed, in the order of the documents: the
    /// core group comes before the others.
    pub fn find(&self, documents: &[Groups]) -> Option<Resource> {
        let groups = documents.iter().flat_map(|document| &document.items);
        let versions =
            groups.flat_map(|group| group.versions.iter().map(move |version| (&*group.metadata.name, version)));
        let mut all =
            versions.flat_map(|(group, version)| version.resources.iter().map(move |one| (group, version, one)));
        let (group, version, listed) = all.find(|(group, version, listed)| {
            let versioned = format!("{}.{group}", version.version);
            let right_group = self.group.as_ref().is_none_or(|wanted| wanted == group || *wanted == versioned);
            // These names become a path.
            let plain = is_plain(group) && is_name(&version.version) && is_name(&listed.resource);
            plain && right_group && listed.is_called(&self.name) && listed.verbs.iter().any(|verb| verb == "list")
        })?;
        let version = &version.version;
        let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        Some(Resource { root, name: listed.resource.clone(), namespaced: listed.scope == "Namespaced" })
    }
}

/// Whether the text has only characters of the names of groups, versions and resources.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-'))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && is_plain(text)
}

// === impl Groups ===

impl Groups {
    /// Whether the server knows aggregated discovery: servers before 1.27 answer in another form.
    pub fn is_complete(&self) -> bool {
        self.kind == "APIGroupDiscoveryList"
    }
}

// === impl Listed ===

impl Listed {
    fn is_called(&self, name: &str) -> bool {
        let kind = self.response_kind.as_ref().map(|kind| kind.kind.to_lowercase());
        self.resource == name
            || self.singular_resource == name
            || self.short_names.iter().any(|short| short == name)
            || kind.as_deref() == Some(name)
    }
}

// === impl Resource ===

impl Resource {
    /// Path of the objects in `namespace` (`None`: all), or of one of them.
    pub fn path(&self, namespace: Option<&str>, object: Option<&str>) -> String {
        let mut path = self.root.clone();
        if let Some(namespace) = namespace.filter(|_| self.namespaced) {
            path = format!("{path}/namespaces/{namespace}");
        }
        path = format!("{path}/{}", self.name);
        if let Some(object) = object {
            path = format!("{path}/{object}");
        }
        path
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn documents() -> [Groups; 2] {
        let listed = |resource: &str, singular: &str, short: &str, kind: &str, scope: &str| {
            json!({"resource": resource, "singularResource": singular, "shortNames": [short], "scope": scope,
                "responseKind": {"kind": kind}, "verbs": ["get", "list"]})
        };
        let group = |name: &str, version: &str, resources: serde_json::Value| {
            let versions = [json!({"version": version, "resources": resources})];
            json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": name}, "versions": versions}]})
        };
        let core = [
            listed("pods", "pod", "po", "Pod", "Namespaced"),
            listed("events", "event", "ev", "Event", "Namespaced"),
            json!({"resource": "bindings", "scope": "Namespaced", "verbs": ["create"]}),
        ];
        let events =
            [listed("events", "event", "ev", "Event", "Namespaced"), listed("nodes", "node", "no", "Node", "Cluster")];
        [group("", "v1", json!(core)), group("events.k8s.io", "v1", json!(events))]
            .map(|one| serde_json::from_value(one).unwrap())
    }

    fn found(text: &str) -> Option<String> {
        ResourceArgument::parse(text)?.find(&documents()).map(|resource| resource.path(Some("ns"), None))
    }

    #[test]
    fn a_resource_has_many_names() {
        for name in ["pods", "pod", "po", "Pod", "pods.v1."] {
            assert_eq!(found(name).as_deref(), Some("/api/v1/namespaces/ns/pods"), "{name}");
        }
        assert_eq!(found("ev").as_deref(), Some("/api/v1/namespaces/ns/events"));
        for name in ["events.events.k8s.io", "events.v1.events.k8s.io"] {
            assert_eq!(found(name).as_deref(), Some("/apis/events.k8s.io/v1/namespaces/ns/events"));
        }
        assert_eq!(found("no").as_deref(), Some("/apis/events.k8s.io/v1/nodes"));
        for absent in ["bindings", "widgets", "pods.apps"] {
            assert_eq!(found(absent), None, "{absent}");
        }
    }

    #[test]
    fn a_server_cannot_lead_elsewhere_by_a_name() {
        let listed =
            |resource: &str| json!({"resource": resource, "shortNames": ["w"], "scope": "Cluster", "verbs": ["list"]});
        let document = |group: &str, version: &str, resource: &str| -> Groups {
            let version = json!({"version": version, "resources": [listed(resource)]});
            serde_json::from_value(json!({"items": [{"metadata": {"name": group}, "versions": [version]}]})).unwrap()
        };
        let find = |document: Groups| ResourceArgument::parse("w").unwrap().find(&[document]);
        assert_eq!(find(document("x.io", "v1", "widgets")).unwrap().path(None, None), "/apis/x.io/v1/widgets");
        for (group, version, resource) in [
            ("x.io", "v1", "widgets?watch=true"),
            ("x.io", "v1/namespaces/kube-system", "secrets"),
            ("x/../..", "v1", "widgets"),
            ("x.io", "", "widgets"),
            ("x.io", "v1", ""),
            ("x.io", "v1", "widgets/%2e%2e"),
        ] {
            assert_eq!(find(document(group, version, resource)), None, "{group} {version} {resource}");
        }
    }

    #[test]
    fn one_object_may_be_named_and_nothing_else() {
        let wanted = ResourceArgument::parse("pods/web-0").unwrap();
        assert_eq!(wanted.object.as_deref(), Some("web-0"));
        for wrong in ["", "/", "pods/", "pods/..", "pods/a/b", "pods?x", "/a"] {
            assert_eq!(ResourceArgument::parse(wrong), None, "{wrong}");
        }
    }
}
