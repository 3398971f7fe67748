//! The observed objects of a member: which works each object belongs to, and the version at which
//! it was last processed. An object with another version is processed again.

mod awaited;
mod follow;
mod lists;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use delivery::identity::Identity;
use fleet::{Sender, Sight};
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use self::awaited::Awaited;
use self::follow::{Follow, follow};
pub use self::lists::{Lists, ListsOfOne};
use crate::parts::watched::is_older;
use crate::wakes::Wakes;

/// Limit of the watches of one member. Further scopes are listed periodically.
const MOST_WATCHES: usize = 64;
/// Limit of the listed scopes of one member, besides its watches. Objects in further scopes are
/// read one by one.
const MOST_LISTS: usize = 192;

/// The version of an object that was not processed yet. No server returns it.
const UNREAD: &str = "";

/// A `resourceVersion`; none if there is no such object.
pub type Version = Option<String>;

/// Objects of one kind in one namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scope {
    pub group: String,
    pub version: String,
    pub resource: String,
    /// Empty for cluster-scoped kinds.
    pub namespace: String,
}

/// Clones share it.
#[derive(Clone, Default)]
pub struct Sights(Arc<Mutex<ObservedObjects>>);

#[derive(Default)]
struct ObservedObjects {
    /// By object, sorted by work: usually one. There are a hundred thousand objects, and thousands
    /// of works may name one object; each of them looks for its own.
    objects: HashMap<Arc<Identity>, Vec<(Arc<str>, Version)>>,
    /// By work.
    by_work: HashMap<Arc<str>, HashSet<Arc<Identity>>>,
    /// By work; with the version of each changed object.
    changed: HashMap<String, HashMap<Identity, Version>>,
    awaited: Awaited,
    /// Works without state of their objects, because there is no room for it.
    unwatched: HashSet<String>,
    followed: HashMap<Scope, Followed>,
}

struct Followed {
    works: HashSet<String>,
    is_seeing: Arc<AtomicBool>,
    is_watch: bool,
    /// The follower ends when this is dropped.
    _task: AbortOnDropHandle<Infallible>,
}

/// How followers reach the member, and the queues that they wake.
#[derive(Clone)]
pub struct Route {
    pub cluster: String,
    pub sender: Sender,
    pub lists: ListsOfOne,
    pub wakes: Wakes,
    /// The queue for a member that answers again.
    pub answered: Wakes,
    pub resync: std::time::Duration,
}

// === impl Scope ===

impl Scope {
    /// The scope of an object of that version.
    pub fn of(identity: &Identity, version: &str) -> Self {
        Self {
            group: identity.group.clone(),
            version: version.to_owned(),
            resource: identity.resource.clone(),
            namespace: identity.namespace.clone(),
        }
    }

    fn has(&self, identity: &Identity) -> bool {
        self.group == identity.group && self.resource == identity.resource && self.namespace == identity.namespace
    }
}

// === impl Sights ===

impl Sights {
    /// Takes the objects of a work that changed since the last call.
    pub fn take_changed(&self, work: &str) -> HashSet<Identity> {
        let mut seen = self.0.lock();
        let defined = seen.awaited.take(work);
        seen.changed.remove(work).unwrap_or_default().into_keys().chain(defined).collect()
    }

    /// The same identity, shared with the kept state.
    pub fn shared(&self, identity: &Identity) -> Arc<Identity> {
        let known = self.0.lock().objects.get_key_value(identity).map(|(known, _)| Arc::clone(known));
        known.unwrap_or_else(|| Arc::new(identity.clone()))
    }

    /// An object was processed for a work, at that version.
    pub fn looked(&self, work: &str, identity: &Identity, mut version: Version) {
        // Cut as followers report it; cutting in place would keep the whole allocation.
        if let Some(long) = version.as_ref().filter(|version| Sight::cut(version).len() < version.len()) {
            version = Some(Sight::cut(long).to_owned());
        }
        let mut seen = self.0.lock();
        if let Some(changed) = seen.changed.get_mut(work)
            && changed.get(identity).is_some_and(|known| *known == version)
        {
            changed.remove(identity);
        }
        seen.put(work, identity, version);
    }

    /// An object is being deleted, at that version. This does not change whether it is followed,
    /// because the member may name any number of other objects.
    pub fn going(&self, work: &str, identity: &Identity, version: Version) {
        let is_known = self.0.lock().objects.get(identity).is_some_and(|works| position(works, work).is_ok());
        if is_known {
            self.looked(work, identity, version);
        }
    }

    /// An object is about to be processed for a work. If it is new, any observation of it meanwhile
    /// counts as a change.
    pub fn looking(&self, work: &str, identity: &Identity) {
        let mut seen = self.0.lock();
        if seen.objects.get(identity).is_none_or(|works| position(works, work).is_err()) {
            seen.put(work, identity, Some(UNREAD.to_owned()));
        }
    }

    /// Sets the objects of a work. Others of that work are forgotten.
    pub fn retain(&self, work: &str, is_there: impl Fn(&Identity) -> bool) {
        let mut seen = self.0.lock();
        let ObservedObjects { objects, by_work, .. } = &mut *seen;
        let Some(own) = by_work.get_mut(work) else { return };
        own.retain(|identity| {
            let is_there = is_there(identity);
            if !is_there && let Entry::Occupied(mut works) = objects.entry(Arc::clone(identity)) {
                if let Ok(position) = position(works.get(), work) {
                    works.get_mut().remove(position);
                }
                if works.get().is_empty() {
                    works.remove();
                }
            }
            is_there
        });
        if own.is_empty() {
            by_work.remove(work);
        }
    }

    /// Follows exactly these scopes for a work.
    pub fn follow(&self, work: &str, scopes: &HashSet<Scope>, route: &Route) {
        let mut seen = self.0.lock();
        seen.followed.retain(|scope, followed| {
            if !scopes.contains(scope) {
                followed.works.remove(work);
            }
            !followed.works.is_empty()
        });
        for scope in scopes {
            if let Some(followed) = seen.followed.get_mut(scope) {
                followed.works.insert(work.to_owned());
                continue;
            }
            let watches = seen.followed.values().filter(|followed| followed.is_watch).count();
            if seen.followed.len() >= MOST_WATCHES + MOST_LISTS {
                continue;
            }
            let (is_watch, is_seeing) = (watches < MOST_WATCHES, Arc::new(AtomicBool::new(false)));
            let task = Follow {
                route: route.clone(),
                scope: scope.clone(),
                is_watch,
                is_seeing: Arc::clone(&is_seeing),
                // A follower with a strong reference to its own owner would never end.
                sights: Arc::downgrade(&self.0),
            };
            let task = AbortOnDropHandle::new(tokio::spawn(follow(task)));
            let works = HashSet::from([work.to_owned()]);
            seen.followed.insert(scope.clone(), Followed { works, is_seeing, is_watch, _task: task });
        }
    }

    /// Sets whether the objects of a work are followed. If not, no state of them is kept.
    pub fn watch(&self, work: &str, is_watched: bool) {
        if is_watched {
            self.0.lock().unwatched.remove(work);
        } else {
            self.forget(work);
            self.0.lock().unwatched.insert(work.to_owned());
        }
    }

    /// Whether changes in all these scopes are seen.
    pub fn sees(&self, scopes: &HashSet<Scope>) -> bool {
        let seen = self.0.lock();
        scopes.iter().all(|scope| seen.followed.get(scope).is_some_and(|one| one.is_seeing.load(Ordering::Relaxed)))
    }

    /// Forgets a work that is gone.
    pub fn forget(&self, work: &str) {
        self.retain(work, |_| false);
        let mut seen = self.0.lock();
        seen.changed.remove(work);
        seen.awaited.set(work, HashSet::new());
        seen.unwatched.remove(work);
        seen.followed.retain(|_, followed| {
            followed.works.remove(work);
            !followed.works.is_empty()
        });
    }
}

// === impl ObservedObjects ===

impl ObservedObjects {
    fn put(&mut self, work: &str, identity: &Identity, version: Version) {
        if self.unwatched.contains(work) {
            return;
        }
        if let Some(works) = self.objects.get_mut(identity)
            && let Ok(position) = position(works, work)
        {
            works[position].1 = version;
            return;
        }
        let identity = self
            .objects
            .get_key_value(identity)
            .map_or_else(|| Arc::new(identity.clone()), |(known, _)| Arc::clone(known));
        let work = self.by_work.get_key_value(work).map_or_else(|| work.into(), |(known, _)| Arc::clone(known));
        let works = self.objects.entry(Arc::clone(&identity)).or_default();
        if works.is_empty() {
            works.reserve_exact(1);
        }
        let position = position(works, &work).unwrap_or_else(|position| position);
        works.insert(position, (Arc::clone(&work), version));
        self.by_work.entry(work).or_default().insert(identity);
    }

    /// An object now has that version; for a watch event, `at` is its own version. Returns the
    /// works for which that is new. A watch event from before the last processing is not new: a
    /// watch begins with the events after its list, which include our own writes. A list is always
    /// current, even after a restore.
    fn saw(&mut self, identity: &Identity, version: &Version, at: Option<&str>) -> Vec<String> {
        let Some(works) = self.objects.get(identity) else { return Vec::new() };
        let is_past = |known: &Version| known.as_deref().is_some_and(|known| is_older(at, known));
        let news = works.iter().filter(|(_, known)| *known != *version && !is_past(known));
        let news: Vec<String> = news.map(|(work, _)| work.as_ref().to_owned()).collect();
        for work in &news {
            self.changed.entry(work.clone()).or_default().insert(identity.clone(), version.clone());
        }
        news
    }

    /// Exactly these objects of a scope exist, by a list.
    fn listed(&mut self, scope: &Scope, listed: &HashMap<Identity, Version>) -> Vec<String> {
        let gone: Vec<Arc<Identity>> =
            self.objects.keys().filter(|one| scope.has(one) && !listed.contains_key(&***one)).cloned().collect();
        let gone = gone.iter().flat_map(|identity| self.saw(identity, &None, None)).collect::<Vec<_>>();
        listed.iter().flat_map(|(identity, version)| self.saw(identity, version, None)).chain(gone).collect()
    }

    /// The works for which a scope is followed.
    fn works(&self, scope: &Scope) -> Vec<String> {
        self.followed.get(scope).into_iter().flat_map(|followed| followed.works.iter().cloned()).collect()
    }

    /// Whether any work has the object. Other objects do not matter.
    fn has(&self, identity: &Identity) -> bool {
        self.objects.contains_key(identity)
    }
}

/// The position of a work among those that have an object, or where it would be inserted.
fn position(works: &[(Arc<str>, Version)], work: &str) -> Result<usize, usize> {
    works.binary_search_by(|(known, _)| (**known).cmp(work))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted;

    fn identity(name: &str) -> Identity {
        Identity { resource: "configmaps".into(), name: name.into(), namespace: "n".into(), ..Identity::default() }
    }

    #[test]
    fn only_what_is_another_one_than_was_looked_at_is_news() {
        let sights = Sights::default();
        sights.looked("w", &identity("a"), Some("1".into()));
        sights.looked("v", &identity("a"), Some("2".into()));
        sights.looked("w", &identity("b"), None);
        let saw =
            |name: &str, version: Option<&str>| sights.0.lock().saw(&identity(name), &version.map(str::to_owned), None);
        assert_eq!(saw("a", Some("2")), ["w"]);
        assert!(saw("b", None).is_empty() && saw("c", Some("1")).is_empty());
        assert_eq!(saw("b", Some("5")), ["w"]);
        assert_eq!(sights.take_changed("w"), HashSet::from([identity("a"), identity("b")]));
        assert!(sights.take_changed("w").is_empty() && sights.take_changed("v").is_empty());
        sights.retain("w", |one| one.name == "a");
        assert!(saw("b", Some("6")).is_empty(), "not of it any more");
        sights.forget("w");
        assert_eq!(saw("a", None), ["v"]);
    }

    #[test]
    fn nothing_is_remembered_of_a_work_that_there_is_no_room_for() {
        let sights = Sights::default();
        let count = || sights.0.lock().objects.len();
        sights.looked("w", &identity("a"), Some("1".into()));
        sights.watch("w", false);
        sights.looking("w", &identity("b"));
        sights.looked("w", &identity("b"), Some("1".into()));
        assert_eq!(count(), 0);
        sights.watch("w", true);
        sights.looked("w", &identity("a"), Some("1".into()));
        // Objects that only the member names are not followed.
        sights.going("w", &identity("b"), Some("1".into()));
        assert_eq!(count(), 1);
        sights.going("w", &identity("a"), Some("2".into()));
        let saw = sights.0.lock().saw(&identity("a"), &Some("2".into()), None);
        assert!(saw.is_empty(), "{saw:?}");
    }

    #[test]
    fn what_changes_while_it_is_looked_at_for_the_first_time_is_news() {
        let sights = Sights::default();
        let saw = |version: &str| sights.0.lock().saw(&identity("a"), &Some(version.to_owned()), None);
        sights.looking("w", &identity("a"));
        assert_eq!(saw("2"), ["w"]);
        sights.looked("w", &identity("a"), Some("1".into()));
        assert_eq!(sights.take_changed("w"), HashSet::from([identity("a")]));
        sights.forget("w");
        sights.looking("w", &identity("a"));
        assert_eq!(saw("2"), ["w"]);
        sights.looked("w", &identity("a"), Some("2".into()));
        assert!(sights.take_changed("w").is_empty(), "it was seen as it was looked at");
    }

    #[test]
    fn a_watch_that_tells_what_was_before_is_no_news() {
        let sights = Sights::default();
        let told = |version: Option<&str>, at: &str| {
            sights.0.lock().saw(&identity("a"), &version.map(str::to_owned), Some(at))
        };
        sights.looked("w", &identity("a"), Some("10".into()));
        assert!(told(Some("9"), "9").is_empty() && told(Some("10"), "10").is_empty());
        assert!(told(None, "8").is_empty(), "it was deleted, and made again");
        assert_eq!(told(Some("11"), "11"), ["w"]);
        assert_eq!(told(None, "12"), ["w"]);
        sights.looking("w", &identity("b"));
        assert_eq!(sights.0.lock().saw(&identity("b"), &Some("3".into()), Some("3")), ["w"]);
    }

    #[test]
    fn a_list_tells_what_is_gone_in_its_scope_alone() {
        let sights = Sights::default();
        let scope = Scope::of(&identity("a"), "v1");
        sights.looked("w", &identity("a"), Some("1".into()));
        sights.looked("w", &identity("b"), Some("1".into()));
        let other = Identity { namespace: "other".into(), ..identity("a") };
        sights.looked("w", &other, Some("1".into()));
        let listed = HashMap::from([(identity("a"), Some("1".to_owned()))]);
        assert_eq!(sights.0.lock().listed(&scope, &listed), ["w"]);
        assert_eq!(sights.take_changed("w"), HashSet::from([identity("b")]));
    }

    #[tokio::test]
    async fn so_many_kinds_are_watched_and_so_many_listed_and_the_rest_are_read_one_by_one() {
        let (sights, works) = (Sights::default(), ["w", "v"]);
        let route = Route {
            cluster: "c".to_owned(),
            sender: scripted::client(|_, _| None).into(),
            lists: Lists::default().of_one(),
            wakes: Wakes::default(),
            answered: Wakes::default(),
            resync: std::time::Duration::from_mins(4),
        };
        let scope = |at: usize| Scope { namespace: format!("n{at}"), ..Scope::of(&identity("a"), "v1") };
        let scopes: HashSet<Scope> = (0..MOST_WATCHES + MOST_LISTS + 44).map(scope).collect();
        for work in works {
            sights.follow(work, &scopes, &route);
        }
        let count = |is_watch: bool| {
            let seen = sights.0.lock();
            seen.followed.values().filter(|one| one.is_watch == is_watch && one.works.len() == works.len()).count()
        };
        assert_eq!((count(true), count(false)), (64, 192), "for both works together");
        sights.0.lock().followed.values().for_each(|one| one.is_seeing.store(true, Ordering::Relaxed));
        assert!(!sights.sees(&scopes), "a work that has more looks by itself");
        // A place that a work releases is free for another.
        sights.follow("w", &HashSet::new(), &route);
        assert_eq!(sights.0.lock().followed.len(), 256);
        sights.forget("v");
        assert_eq!(sights.0.lock().followed.len(), 0);
    }
}
