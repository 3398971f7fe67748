//! One name, one owner: which object registers which cluster.
//!
//! Objects of several sources and namespaces may claim the same name. The first keeps it for as
//! long as it lives; a Secret that a person created always keeps it. The contents of the Secret
//! take precedence over the state in this process, so that a restart changes no cluster.

mod verdict;

use std::collections::{BTreeMap, BTreeSet, HashMap};

pub use self::verdict::{Holder, Step, Verdict, Wish};

/// The label of a cluster's Secret that names the source of its object.
pub const SOURCE_LABEL: &str = "cluster.core.oam.dev/source";
/// Manager of the fields of a cluster's Secret that the controllers write (server-side apply). The
/// controllers treat an object with this manager as their own.
pub const FIELD_MANAGER: &str = "cluster-gateway-controllers";

/// An object of the hub, as one source reads it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Object {
    /// `capi`, `kubeconfig` and so on.
    pub source: &'static str,
    /// `group/Kind/namespace/name`.
    pub reference: String,
}

/// What an object wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Of the cluster.
    pub name: String,
    pub uid: String,
    /// RFC 3339, in UTC: such texts sort by time.
    pub created: String,
    pub wish: Wish,
}

/// All known claims.
#[derive(Debug, Default)]
pub struct Claims {
    objects: HashMap<Object, Claim>,
    names: BTreeMap<String, BTreeSet<Object>>,
}

// === impl Object ===

impl Object {
    /// `group` is empty for Kubernetes' own kinds, `namespace` for kinds without one.
    pub fn new(source: &'static str, [group, kind]: [&str; 2], namespace: &str, name: &str) -> Self {
        let group = if group.is_empty() { "core" } else { group };
        Self { source, reference: format!("{group}/{kind}/{namespace}/{name}") }
    }

    /// Its namespace, which may be empty, and its name.
    pub fn key(&self) -> (&str, &str) {
        let mut parts = self.reference.rsplitn(3, '/');
        let name = parts.next().unwrap_or_default();
        (parts.next().unwrap_or_default(), name)
    }
}

// === impl Claims ===

impl Claims {
    /// An object was seen, but not necessarily read: its earlier wish stays. Returns the names to
    /// judge again.
    pub fn see(&mut self, object: Object, name: &str, uid: &str, created: &str) -> Vec<String> {
        let known = self.objects.get(&object).filter(|claim| claim.name == name && claim.uid == uid);
        let wish = known.map_or(Wish::Waiting, |claim| claim.wish.clone());
        self.put(object, Claim { name: name.to_owned(), uid: uid.to_owned(), created: created.to_owned(), wish })
    }

    /// An object was seen. Returns the names to judge again.
    pub fn put(&mut self, object: Object, claim: Claim) -> Vec<String> {
        if self.objects.get(&object) == Some(&claim) {
            return Vec::new();
        }
        let mut names = self.remove(&object);
        names.retain(|name| *name != claim.name);
        names.push(claim.name.clone());
        self.names.entry(claim.name.clone()).or_default().insert(object.clone());
        self.objects.insert(object, claim);
        names
    }

    /// An object is no longer seen. Returns the name to judge again, if it claimed one.
    pub fn remove(&mut self, object: &Object) -> Vec<String> {
        let Some(Claim { name, .. }) = self.objects.remove(object) else { return Vec::new() };
        if let Some(objects) = self.names.get_mut(&name) {
            objects.remove(object);
            if objects.is_empty() {
                self.names.remove(&name);
            }
        }
        vec![name]
    }

    pub fn get(&self, object: &Object) -> Option<&Claim> {
        self.objects.get(object)
    }

    /// Every known object.
    pub fn objects(&self) -> impl Iterator<Item = (&Object, &Claim)> {
        self.objects.iter()
    }

    /// Decides the action for `name`, whose Secret `holder` owns.
    pub fn judge(&self, name: &str, holder: &Holder) -> Verdict {
        let mut candidates: Vec<_> = self.names.get(name).into_iter().flatten().collect();
        candidates.sort_by_key(|object| {
            let claim = &self.objects[*object];
            (&claim.created, &claim.uid, *object)
        });
        let owner = match holder {
            Holder::Person => return Verdict::new(Step::Keep, None, &candidates),
            Holder::Nobody => candidates.first().copied(),
            Holder::Object { object, uid, is_gone, .. } => {
                // An object that was recreated keeps the name, and so does one that another source
                // now reads. Another object that claims to have had this uid, perhaps on another
                // hub, does not.
                let is_it = |candidate: &&&Object| {
                    **candidate == object
                        || (candidate.reference == object.reference && self.objects[**candidate].uid == *uid)
                };
                let same = candidates.iter().find(is_it).copied();
                if same.is_none() && !is_gone {
                    return Verdict::new(Step::Wait, None, &candidates);
                }
                // The removal comes first: a successor that has nothing to write would keep the
                // Secret of an object that no longer exists.
                if same.is_none() && !candidates.first().is_some_and(|next| self.is_registering(next)) {
                    return Verdict::new(Step::Remove, None, &candidates);
                }
                same.or(candidates.first().copied())
            }
        };
        let step = match owner {
            None if *holder == Holder::Nobody => Step::Keep,
            None => Step::Remove,
            Some(owner) => self.step(owner, holder),
        };
        candidates.retain(|object| Some(*object) != owner);
        Verdict::new(step, owner, &candidates)
    }

    fn is_registering(&self, object: &Object) -> bool {
        matches!(self.objects[object].wish, Wish::Register(_))
    }

    fn step(&self, owner: &Object, holder: &Holder) -> Step {
        let claim = &self.objects[owner];
        match (&claim.wish, holder) {
            (Wish::Paused | Wish::Waiting, _) => Step::Keep,
            (Wish::Refused, _) => Step::Refuse(owner.clone()),
            (Wish::Register(hash), Holder::Object { object, uid, hash: written, .. })
                if hash == written && object == owner && *uid == claim.uid =>
            {
                Step::Keep
            }
            (Wish::Register(_), _) => Step::Write(owner.clone()),
        }
    }
}

#[cfg(test)]
mod tests;
