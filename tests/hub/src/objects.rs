//! Objects read without kubectl, for tests that look again and again: a kubectl that starts costs
//! thirty times what its request does, which was more than half of what these tests took of a
//! machine. What users type is tried with kubectl.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, bail, ensure};
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::Value;

use crate::control_plane::ApiServer;
use crate::http::Client;

/// Of aggregated discovery, what all servers of these tests have.
const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Paths of resources and whether they are in namespaces, by server and what they are called.
static RESOURCES: LazyLock<Mutex<HashMap<(SocketAddr, String), Resource>>> = LazyLock::new(Mutex::default);

#[derive(Clone)]
struct Resource {
    /// Group and version.
    prefix: String,
    plural: String,
    is_namespaced: bool,
}

/// `KIND [NAME] [-n NAMESPACE | -A] [-l SELECTOR] [--field-selector SELECTOR]`, as kubectl takes
/// them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wanted<'a> {
    kind: &'a str,
    name: Option<&'a str>,
    namespace: Option<&'a str>,
    /// Of all namespaces.
    is_of_all: bool,
    selector: Option<&'a str>,
    fields: Option<&'a str>,
}

// === impl ApiServer ===

impl ApiServer {
    /// The object, or the list, that `kubectl get LINE -o json` would print, as a member of
    /// `system:masters`; null if there is no such object.
    ///
    /// # Errors
    /// The server does not have the kind, or answers otherwise than 200 and 404.
    pub fn read(&self, line: &str) -> Result<Value> {
        let wanted = Wanted::parse(line)?;
        let client = self.client(Some(self.admin()));
        let path = wanted.path(&resource(self.address(), &client, wanted.kind)?);
        let response = client.get(&path, &[("accept", "application/json")])?;
        if response.status == StatusCode::NOT_FOUND && wanted.name.is_some() {
            return Ok(Value::Null);
        }
        response.expect(StatusCode::OK).with_context(|| line.to_owned())?.json()
    }
}

fn resource(address: SocketAddr, client: &Client, kind: &str) -> Result<Resource> {
    let key = (address, kind.to_owned());
    if let Some(known) = RESOURCES.lock().get(&key) {
        return Ok(known.clone());
    }
    for root in ["/api", "/apis"] {
        let groups = client.get(root, &[("accept", DISCOVERY)])?.expect(StatusCode::OK)?.json()?;
        if let Some(found) = find(&groups, root, kind) {
            RESOURCES.lock().insert(key, found.clone());
            return Ok(found);
        }
    }
    bail!("the server has no resource {kind:?}")
}

/// The first that is called so: kubectl prefers in the same order.
fn find(groups: &Value, root: &str, kind: &str) -> Option<Resource> {
    let (kind, of_group) = kind.split_once('.').map_or((kind, None), |(kind, group)| (kind, Some(group)));
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for group in list(&groups["items"]) {
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        for version in list(&group["versions"]).iter().filter(|_| of_group.is_none_or(|wanted| wanted == name)) {
            let prefix = [root, name, version["version"].as_str()?];
            let prefix = prefix.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
            let is_called = |resource: &Value| {
                let short = list(&resource["shortNames"]);
                resource["resource"] == kind
                    || resource["singularResource"] == kind
                    || short.iter().any(|it| it == kind)
            };
            if let Some(resource) = list(&version["resources"]).iter().find(|resource| is_called(resource)) {
                let plural = resource["resource"].as_str()?.to_owned();
                return Some(Resource { prefix, plural, is_namespaced: resource["scope"] == "Namespaced" });
            }
        }
    }
    None
}

// === impl Wanted ===

impl<'a> Wanted<'a> {
    fn parse(line: &'a str) -> Result<Self> {
        let mut words = line.split_whitespace();
        let mut wanted = Self { kind: words.next().context("a kind")?, ..Self::default() };
        while let Some(word) = words.next() {
            match word {
                "-n" => wanted.namespace = words.next(),
                "-A" => wanted.is_of_all = true,
                "-l" => wanted.selector = words.next(),
                "--field-selector" => wanted.fields = words.next(),
                name => {
                    ensure!(!name.starts_with('-') && wanted.name.is_none(), "not understood: {line}");
                    wanted.name = Some(name);
                }
            }
        }
        Ok(wanted)
    }

    fn path(&self, resource: &Resource) -> String {
        // Without one, kubectl's is the kubeconfig's, which names none here.
        let is_in_one = resource.is_namespaced && !self.is_of_all;
        let namespace = is_in_one.then(|| format!("/namespaces/{}", self.namespace.unwrap_or("default")));
        let name = self.name.map(|name| format!("/{name}")).unwrap_or_default();
        let selectors = [("labelSelector", self.selector), ("fieldSelector", self.fields)];
        let given = selectors.iter().filter_map(|(name, selector)| Some(format!("{name}={}", escaped((*selector)?))));
        let query = given.collect::<Vec<_>>().join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{}/{}{name}{mark}{query}", resource.prefix, namespace.unwrap_or_default(), resource.plural)
    }
}

fn escaped(text: &str) -> String {
    let escape = |character: char| match character {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' | '/' => character.to_string(),
        other => format!("%{:02X}", u32::from(other)),
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_read_as_kubectl_reads_them() {
        let wanted = Wanted::parse("things.g a -n b").unwrap();
        assert_eq!(wanted, Wanted { kind: "things.g", name: Some("a"), namespace: Some("b"), ..Wanted::default() });
        for line in ["", "things a b", "things --watch"] {
            assert!(Wanted::parse(line).is_err(), "{line}");
        }
        let groups = json!({"items": [{"metadata": {"name": "g"}, "versions": [{"version": "v1", "resources": [
            {"resource": "things", "singularResource": "thing", "shortNames": ["th"], "scope": "Namespaced"}]}]}]});
        for kind in ["things", "thing", "th", "things.g"] {
            let found = find(&groups, "/apis", kind).unwrap();
            assert_eq!(wanted.path(&found), "/apis/g/v1/namespaces/b/things/a");
        }
        let all = Wanted::parse("things -A").unwrap();
        assert_eq!(all.path(&find(&groups, "/apis", "things").unwrap()), "/apis/g/v1/things");
        assert!(find(&groups, "/apis", "things.h").is_none() && find(&groups, "/apis", "others").is_none());
        let core = json!({"items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [
            {"resource": "nodes", "singularResource": "node", "scope": "Cluster"}]}]}]});
        let all = Wanted::parse("node -l a=b,c!=d").unwrap();
        assert_eq!(all.path(&find(&core, "/api", "node").unwrap()), "/api/v1/nodes?labelSelector=a%3Db%2Cc%21%3Dd");
    }
}
