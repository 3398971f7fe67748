//! An object that somebody changes back: it is repaired less and less often.

use std::fmt;
use std::time::Duration;

use delivery::ownership::Owner;
use net::backoff::Backoff;
use serde_json::Value as Json;
use tokio::time::Instant;

use crate::calls::MANAGER;

/// Waits before the repairs after the first: about 1 s, 5 s, 30 s, 3 and 5 minutes.
const WAITS: Backoff =
    Backoff { factor: 5.5, chance: 0.0, ..Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5)) };
/// Repairs that make a contest.
const CONTEST: u32 = 4;
/// Limit of a reported name, in characters.
const NAME: usize = 253;
/// Characters of the hash in the name of an `AppliedManifestWork`.
const HASH: usize = 64;
/// Most `AppliedManifestWorks` of the same name that are reported of a work.
pub const TWINS: usize = 4;
/// If nothing changes for this long, the contest is over.
const PEACE: Duration = Duration::from_mins(10);

/// Repairs of one object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Contest {
    repairs: u32,
    last: Option<Instant>,
}

// === impl Contest ===

impl Contest {
    /// How long a repair must wait; none if it need not.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        let last = self.last.filter(|last| now < *last + PEACE)?;
        let wait = WAITS.window(self.repairs.checked_sub(1)?);
        (last + wait).checked_duration_since(now).filter(|rest| !rest.is_zero())
    }

    /// Records a repair.
    pub fn repaired(&mut self, now: Instant) {
        if self.last.is_some_and(|last| now >= last + PEACE) {
            self.repairs = 0;
        }
        self.repairs = self.repairs.saturating_add(1);
        self.last = Some(now);
    }

    /// When the contest ends unless another write continues it.
    pub fn ends(&self, now: Instant) -> Option<Instant> {
        self.last.filter(|_| self.is_contested(now)).map(|last| last + PEACE)
    }

    /// Whether it is a contest, which is worth an Event.
    pub fn is_contested(&self, now: Instant) -> bool {
        self.repairs >= CONTEST && self.last.is_some_and(|last| now < last + PEACE)
    }
}

/// The other writer in a contest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// The name of the other client, as the member knows it.
    Manager(String),
    /// Another work wants other content for it: the name of that work's `AppliedManifestWork`.
    Work(String),
    /// A client that deletes it each time leaves no name.
    Somebody,
}

// === impl By ===

impl By {
    /// Determines the other writer from the existing object. The works of all clusters are written
    /// under the same names.
    pub fn of(found: Option<&Json>, owner: &Owner) -> Self {
        let Some(object) = found else { return Self::Somebody };
        let entries = object.pointer("/metadata/managedFields").and_then(Json::as_array).into_iter().flatten();
        let of_object = entries.filter(|entry| text(entry, "subresource") != "status");
        let last = of_object.clone().max_by(|a, b| time(a).cmp(&time(b)));
        let rival = owner.rival(object).filter(|_| last.is_none_or(|last| is_of_work(text(last, "manager"))));
        if let Some(rival) = rival {
            return Self::Work(cut(rival));
        }
        let others = of_object.filter(|entry| !is_of_work(text(entry, "manager")));
        let last = others.max_by(|a, b| time(a).cmp(&time(b)));
        last.map_or(Self::Somebody, |last| Self::Manager(cut(text(last, "manager"))))
    }
}

impl fmt::Display for By {
    /// The beginning of a sentence about one object.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manager(name) => write!(f, "{name} changes or deletes"),
            Self::Work(name) => write!(f, "another work, with AppliedManifestWork {name}, changes"),
            Self::Somebody => write!(f, "another client changes or deletes"),
        }
    }
}

/// The note about an object for which another work wants other content.
pub fn note(rival: &str) -> String {
    let rival = cut(rival);
    format!(
        "another work, with AppliedManifestWork {rival}, wants something else of the object, and each changes it back: \
         take it out of one of them"
    )
}

/// Other `AppliedManifestWorks` that own `object`, for a work of the same name: an agent applied it
/// for another hub, or by another URL of this hub.
pub fn twins(owner: &Owner, object: &Json) -> Vec<String> {
    let Some((_, own)) = owner.name.split_once('-') else { return Vec::new() };
    let is_like = |name: &str| name.split_once('-').is_some_and(|(hash, work)| is_hash(hash) && work == own);
    // One of the same hash is an earlier one of ours.
    let is_twin = |name: &&str| *name != owner.name && is_like(name);
    owner.rivals(object).filter(is_twin).take(TWINS).map(cut).collect()
}

fn is_hash(text: &str) -> bool {
    text.len() == HASH && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_of_work(manager: &str) -> bool {
    manager == MANAGER || manager.starts_with("work-agent")
}

/// The time of an entry. Of entries in the same second, others' count as later.
fn time(entry: &Json) -> (&str, bool) {
    (text(entry, "time"), !is_of_work(text(entry, "manager")))
}

fn text<'e>(entry: &'e Json, key: &str) -> &'e str {
    entry.get(key).and_then(Json::as_str).unwrap_or_default()
}

fn cut(name: &str) -> String {
    name.chars().take(NAME).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn repairs_wait_longer_each_time_and_begin_anew_after_peace() {
        let mut contest = Contest::default();
        let mut waited = Vec::new();
        for _ in 0..7 {
            let wait = contest.wait(Instant::now());
            waited.push(wait.map_or(0, |wait| wait.as_secs()));
            tokio::time::advance(wait.unwrap_or_default()).await;
            contest.repaired(Instant::now());
        }
        assert_eq!(waited, [0, 1, 5, 30, 166, 300, 300]);
        assert!(contest.is_contested(Instant::now()));
        assert_eq!(contest.ends(Instant::now()), Some(Instant::now() + PEACE));
        tokio::time::advance(PEACE).await;
        assert!(!contest.is_contested(Instant::now()) && contest.wait(Instant::now()).is_none());
        contest.repaired(Instant::now());
        assert_eq!(contest.wait(Instant::now()), Some(WAITS.first));
    }

    fn owner(uid: &str) -> Owner {
        Owner { api_version: "w/v1".into(), kind: "k".into(), name: format!("hash-{uid}"), uid: uid.into() }
    }

    fn entry(manager: &str, time: &str) -> Json {
        json!({"manager": manager, "time": time})
    }

    #[test]
    fn the_last_other_writer_is_named() {
        let fields = [entry("kubectl", "2"), entry("helm", "1"), entry(MANAGER, "4"), entry("work-agent-x", "5")];
        let object = json!({"metadata": {"managedFields": fields}});
        assert_eq!(By::of(Some(&object), &owner("1")), By::Manager("kubectl".to_owned()));
        for none in [None, Some(&json!({}))] {
            assert_eq!(By::of(none, &owner("1")), By::Somebody);
        }
    }

    #[test]
    fn a_work_of_the_same_name_with_another_hash_is_a_twin_and_no_other_is() {
        let named = |name: String| Owner { name, ..owner("2") };
        let own = Owner { name: format!("{}-web", "a".repeat(HASH)), ..owner("1") };
        let of = |others: &[&String]| {
            let others = others.iter().map(|other| named((*other).clone()).reference());
            let owners: Vec<Json> = [own.reference()].into_iter().chain(others).collect();
            twins(&own, &json!({"metadata": {"ownerReferences": owners}}))
        };
        let (agents, ours) = (format!("{}-web", "b".repeat(HASH)), format!("{}-api", "a".repeat(HASH)));
        assert_eq!(of(&[&agents]), std::slice::from_ref(&agents));
        assert!(of(&[&ours]).is_empty(), "another work of ours shares the object");
        assert!(of(&[&own.name]).is_empty(), "it is ours, with another uid");
        assert_eq!(of(&[&ours, &agents]), std::slice::from_ref(&agents), "not the first owner");
        for hash in ["hash".to_owned(), "B".repeat(HASH), "x".repeat(HASH), "é".repeat(HASH / 2)] {
            assert!(of(&[&format!("{hash}-web")]).is_empty(), "{hash}");
        }
        assert_eq!(of(&[&agents; 9]).len(), TWINS);
        assert!(twins(&own, &json!({})).is_empty());
    }

    #[test]
    fn another_work_is_named_where_one_wrote_last() {
        let of = |fields: &[Json], owners: &[&str]| {
            let owners: Vec<Json> = owners.iter().map(|uid| owner(uid).reference()).collect();
            let object = json!({"metadata": {"managedFields": fields, "ownerReferences": owners}});
            By::of(Some(&object), &owner("1"))
        };
        let old = [entry("kubectl", "2"), entry(MANAGER, "4")];
        assert_eq!(of(&old, &["1", "2"]), By::Work("hash-2".to_owned()));
        assert_eq!(of(&old, &["1"]), By::Manager("kubectl".to_owned()), "there is no other");
        // In the same second, the other writer may have been the last.
        let new = [entry("kubectl", "4"), entry(MANAGER, "4")];
        assert_eq!(of(&new, &["1", "2"]), By::Manager("kubectl".to_owned()));
        let controller = "kube-controller-manager";
        let written = |subresource: &str| json!({"manager": controller, "time": "9", "subresource": subresource});
        assert_eq!(of(&[entry(MANAGER, "4"), written("status")], &["1", "2"]), By::Work("hash-2".to_owned()));
        assert_eq!(of(&[entry(MANAGER, "4"), written("scale")], &["1", "2"]), By::Manager(controller.to_owned()));
    }
}
