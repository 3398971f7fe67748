//! The kinds that a member has.
//!
//! Existing kinds are read once, and again after some minutes. Missing kinds are requested again
//! after some seconds, because their definition may come.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use delivery::identity::Identity;
use delivery::manifests::{Lookup, Resource};
use parking_lot::Mutex;
use serde_json::Value as Json;
use tokio::time::Instant;

use super::failure::Failure;
use super::member::{Member, MemberError};

/// How long known kinds count.
const KNOWN: Duration = Duration::from_mins(10);
/// How long missing kinds count.
const MISSING: Duration = Duration::from_secs(4);
/// Versions of groups whose kinds are cached. A member that has more is asked more often.
const MOST: usize = 256;
/// Limit of a member's versions of groups. Usual members have some dozens.
const VERSIONS: usize = 4096;
/// Kinds of one version of a group that are cached.
const KINDS: usize = 1024;
/// The version of the core group.
const CORE: &str = "v1";
/// Limit of a name in bytes (RFC 1123).
const NAME: usize = 253;

/// Group, version, kind.
pub type Gvk = (String, String, String);
type Version = (String, String);
/// Their resources, or why they are unknown.
type List = Result<HashMap<String, Resource>, String>;

#[derive(Default)]
pub struct Kinds(Mutex<Cache>);

#[derive(Default)]
struct Cache {
    versions: Option<(Instant, HashSet<Version>)>,
    lists: HashMap<Version, (Instant, List)>,
}

/// The member's answers for some kinds.
#[derive(Default)]
pub struct KindLookups(HashMap<Gvk, Lookup>);

// === impl KindLookups ===

impl KindLookups {
    pub fn lookup(&self, group: &str, version: &str, kind: &str) -> Lookup {
        let key = (group.to_owned(), version.to_owned(), kind.to_owned());
        self.0.get(&key).cloned().unwrap_or(Lookup::Missing)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

// === impl Kinds ===

impl Kinds {
    /// Looks up kinds that were not `found` yet, each within a `step` of the caller.
    ///
    /// # Errors
    ///
    /// Fails if the member did not answer, or the slot ended.
    pub async fn find<S>(
        &self,
        member: &Member,
        step: impl Fn() -> Result<S, Failure>,
        wanted: HashSet<Gvk>,
        found: &mut KindLookups,
    ) -> Result<(), Failure> {
        for key in wanted {
            if found.0.contains_key(&key) {
                continue;
            }
            let _step = step()?;
            let version = (key.0.clone(), key.1.clone());
            let lookup = self.one(member, &version, &key.2).await?;
            found.0.insert(key, lookup);
        }
        Ok(())
    }

    /// Whether the member has a version of a group. For paths of a missing version, the answer has
    /// no Status.
    pub async fn serves(&self, member: &Member, group: &str, version: &str) -> Result<bool, MemberError> {
        self.has(member, &(group.to_owned(), version.to_owned())).await
    }

    /// The versions of an object's group that the member has, sorted.
    pub async fn versions_of(&self, member: &Member, identity: &Identity) -> Result<Vec<String>, MemberError> {
        let group = &identity.group;
        if group.is_empty() {
            return Ok(vec![CORE.to_owned()]);
        }
        let versions = self.versions(member, None).await?;
        let mut versions: Vec<String> = versions.into_iter().filter(|one| one.0 == *group).map(|one| one.1).collect();
        versions.sort_unstable();
        Ok(versions)
    }

    /// Forgets everything: the next look-ups ask again.
    pub fn forget(&self) {
        *self.0.lock() = Cache::default();
    }

    async fn one(&self, member: &Member, version: &Version, kind: &str) -> Result<Lookup, MemberError> {
        if let Some(known) = self.known(version, kind) {
            return Ok(known);
        }
        if !self.has(member, version).await? {
            return Ok(Lookup::Missing);
        }
        let list = match member.read(&path(version)).await {
            Ok(Some(list)) => Ok(resources(&list)),
            Ok(None) => Ok(HashMap::new()),
            Err(MemberError::Refused(failure)) => Err(failure.to_string()),
            Err(error) => return Err(error),
        };
        let answer = in_list(&list, kind);
        let mut cache = self.0.lock();
        if cache.lists.len() >= MOST {
            cache.lists.clear();
        }
        cache.lists.insert(version.clone(), (Instant::now(), list));
        Ok(answer)
    }

    fn known(&self, version: &Version, kind: &str) -> Option<Lookup> {
        let cache = self.0.lock();
        let (read, list) = cache.lists.get(version)?;
        let found = in_list(list, kind);
        let good = if matches!(found, Lookup::Found(_)) { KNOWN } else { MISSING };
        (read.elapsed() < good).then_some(found)
    }

    async fn has(&self, member: &Member, version: &Version) -> Result<bool, MemberError> {
        if version.0.is_empty() {
            return Ok(true);
        }
        Ok(self.versions(member, Some(version)).await?.contains(version))
    }

    /// All versions of groups that the member has, at most a few seconds old; if they include
    /// `wanted`, some minutes.
    async fn versions(&self, member: &Member, wanted: Option<&Version>) -> Result<HashSet<Version>, MemberError> {
        if let Some((read, versions)) = &self.0.lock().versions {
            let has = wanted.is_some_and(|wanted| versions.contains(wanted));
            if read.elapsed() < if has { KNOWN } else { MISSING } {
                return Ok(versions.clone());
            }
        }
        let versions = versions(&member.read("/apis").await?.unwrap_or_default());
        if versions.is_empty() {
            let failure = fleet::Failure::own("/apis lists no group at all");
            return Err(MemberError::judged(&member.cluster, failure));
        }
        self.0.lock().versions = Some((Instant::now(), versions.clone()));
        Ok(versions)
    }
}

fn in_list(list: &List, kind: &str) -> Lookup {
    match list {
        Ok(resources) => resources.get(kind).cloned().map_or(Lookup::Missing, Lookup::Found),
        Err(why) => Lookup::Unknown(why.clone()),
    }
}

fn path((group, version): &Version) -> String {
    if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") }
}

/// The versions in an `APIGroupList`.
fn versions(list: &Json) -> HashSet<Version> {
    let items = |value: &Json, key: &str| value.get(key).and_then(Json::as_array).cloned().unwrap_or_default();
    let text = |value: &Json, key: &str| value.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    let of_group = |group: Json| {
        let name = text(&group, "name");
        items(&group, "versions").into_iter().map(move |version| (name.clone(), text(&version, "version")))
    };
    let is_name = |(group, version): &Version| group.len() <= NAME && version.len() <= NAME;
    let groups = items(list, "groups").into_iter().filter(|group| text(group, "name").len() <= NAME);
    groups.flat_map(of_group).filter(is_name).take(VERSIONS).collect()
}

/// The resources in an `APIResourceList`, without subresources.
fn resources(list: &Json) -> HashMap<String, Resource> {
    let items = list.get("resources").and_then(Json::as_array).into_iter().flatten();
    let read = |one: &Json| {
        let text = |key: &str| one.get(key).and_then(Json::as_str).map(str::to_owned);
        let is_namespaced = one.get("namespaced").and_then(Json::as_bool).unwrap_or(false);
        Some((text("kind")?, Resource { name: text("name")?, is_namespaced }))
    };
    let is_kind = |(kind, resource): &(String, Resource)| {
        !resource.name.contains('/') && kind.len() <= NAME && resource.name.len() <= NAME
    };
    items.filter_map(read).filter(is_kind).take(KINDS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_read_without_subresources() {
        let list = json!({"resources": [
            {"name": "pods", "kind": "Pod", "namespaced": true},
            {"name": "pods/status", "kind": "Pod", "namespaced": true},
            {"name": "nodes", "kind": "Node", "namespaced": false}, {"kind": 3}]});
        let found = resources(&list);
        assert_eq!(found.len(), 2);
        assert_eq!(found["Pod"], Resource { name: "pods".into(), is_namespaced: true });
        assert!(!found["Node"].is_namespaced);
        let groups = json!({"groups": [{"name": "apps", "versions": [{"version": "v1"}, {"version": "v1beta1"}]}]});
        assert_eq!(versions(&groups).len(), 2);
        assert!(versions(&groups).contains(&("apps".into(), "v1".into())));
        let long = json!({"groups": [{"name": "x".repeat(NAME + 1), "versions": [{"version": "v1"}]},
            {"name": "many", "versions": vec![json!({"version": "v1"}); 3]},
            {"name": "more", "versions": (0..2 * VERSIONS).map(|it| json!({"version": it.to_string()})).collect::<Vec<_>>()}]});
        let bounded = versions(&long);
        assert!(bounded.len() <= VERSIONS && bounded.iter().all(|(group, _)| group.len() <= NAME));
        assert!(bounded.contains(&("many".into(), "v1".into())));
        assert_eq!(in_list(&Err("down".into()), "X"), Lookup::Unknown("down".into()));
    }
}
