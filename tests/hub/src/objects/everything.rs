//! All objects of a server.

use anyhow::{Context as _, Result, ensure};
use http::StatusCode;
use serde_json::Value;

use super::{DISCOVERY, Objects};
use crate::control_plane::ApiServer;

// === impl ApiServer ===

impl ApiServer {
    /// The objects of all kinds that can be listed, each in the version that the server prefers:
    /// what `kubectl get -A` finds for the names that `kubectl api-resources --verbs=list -o name`
    /// prints, except for those in `left_out`.
    ///
    /// # Errors
    ///
    /// A group is not served, or a list is refused.
    pub fn everything(&self, left_out: &[&str]) -> Result<Vec<Value>> {
        let objects = Objects::of(self);
        let mut all = Vec::new();
        for root in ["api", "apis"] {
            let groups = objects.client.get(&format!("/{root}"), &[("accept", DISCOVERY)])?;
            for path in lists(&groups.expect(StatusCode::OK)?.json()?, root, left_out)? {
                let mut list = objects.list(&path)?;
                all.extend(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default());
            }
        }
        Ok(all)
    }
}

/// The paths of the lists in a discovery document.
fn lists(groups: &Value, root: &str, left_out: &[&str]) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for group in each(&groups["items"]) {
        let name = group["metadata"]["name"].as_str().unwrap_or_default();
        let mut found = Vec::new();
        for version in each(&group["versions"]) {
            let number = version["version"].as_str().context("no version")?;
            ensure!(version["freshness"] != "Stale", "{name}/{number} is not served");
            for resource in each(&version["resources"]) {
                let plural = resource["resource"].as_str().context("no resource")?;
                let called = joined(&[plural, name], ".");
                let is_wanted = each(&resource["verbs"]).any(|verb| verb == "list")
                    && !left_out.contains(&called.as_str())
                    && !found.contains(&plural);
                if is_wanted {
                    found.push(plural);
                    paths.push(format!("/{}", joined(&[root, name, number, plural], "/")));
                }
            }
        }
    }
    Ok(paths)
}

/// The core group has no name.
fn joined(parts: &[&str], between: &str) -> String {
    parts.iter().copied().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(between)
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn groups(name: &str, versions: &Value) -> Value {
        json!({"items": [{"metadata": {"name": name}, "versions": versions}]})
    }

    #[test]
    fn each_kind_that_can_be_listed_is_found_once_in_the_first_version() {
        let of = |resource: &str, verbs: &[&str]| json!({"resource": resource, "verbs": verbs});
        let versions = json!([
            {"version": "v2", "freshness": "Current", "resources": [of("a", &["get", "list"]), of("b", &["create"])]},
            {"version": "v1", "freshness": "Current", "resources": [of("a", &["list"]), of("c", &["list"])]}]);
        let found =
            |name: &str, root: &str, left_out: &[&str]| lists(&groups(name, &versions), root, left_out).unwrap();
        assert_eq!(found("g.io", "apis", &[]), ["/apis/g.io/v2/a", "/apis/g.io/v1/c"]);
        assert_eq!(found("g.io", "apis", &["a.g.io", "c"]), ["/apis/g.io/v1/c"]);
        assert_eq!(found("", "api", &["c"]), ["/api/v2/a"]);
    }

    #[test]
    fn what_is_not_served_leaves_nothing_out_in_silence() {
        let stale = json!([{"version": "v1", "freshness": "Stale"}]);
        assert_eq!(lists(&groups("g", &stale), "apis", &[]).unwrap_err().to_string(), "g/v1 is not served");
    }
}
