//! The registrar's state: the claims on names, the Secrets that hold names, and the absent objects.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use api::secret::ClusterSecret;
use clap::ValueEnum as _;
use register::claims::{Claims, Holder, Object, Step, Verdict, Wish};
use register::expiry::Expiry;
use register::fingerprint::Sum;
use register::removals::{May, Moment, Removals};
use tokio::sync::watch;

use super::source::Source;
use crate::args::SourceName;
use crate::secrets::{HASH_ANNOTATION, Meta, OBJECT_ANNOTATION, SOURCE_LABEL, UID_ANNOTATION};

/// Wait before a recount: if one object comes back, others usually follow.
const RECOUNT_AFTER: Duration = Duration::from_secs(1);
/// What chooses the namespaces that sources read.
const NAMESPACE_FLAGS: &str = "--watch-namespaces, --kubefed-namespace";

/// A Secret in the clusters' namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldSecret {
    /// Uid of the Secret.
    pub(super) uid: String,
    pub(super) version: String,
    /// The object that registered it; none if this program did not create the Secret, or follows no
    /// such object any more.
    pub(super) origin: Option<Origin>,
    /// Why nothing follows a Secret that this program created.
    left: Option<Left>,
    /// Sum of the fields' managers: what they give up can be written.
    pub(super) managers: u64,
}

/// Why the object of a Secret is not followed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Left {
    /// Its source is turned off.
    TurnedOff(&'static str),
    /// Its source reads other namespaces.
    Unwatched(Object),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) object: Object,
    pub(super) uid: String,
    pub(super) hash: String,
}

/// The input that an object's cluster was derived from, by its sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Derived {
    pub(super) sum: Sum,
    pub(super) expiry: Expiry,
}

/// The cluster that was read from an object.
pub(super) struct Cluster<'r> {
    pub(super) secret: &'r ClusterSecret,
    pub(super) hash: String,
    pub(super) expiry: Expiry,
    /// Sum of the input.
    pub(super) sum: Option<Sum>,
}

pub(super) struct Registrations {
    pub(super) claims: Claims,
    /// Of objects that register a cluster.
    derived: HashMap<Object, Derived>,
    pub(super) removals: Removals,
    /// By name.
    pub(super) held: HashMap<String, HeldSecret>,
    /// Whether the clusters' Secrets have been listed.
    pub(super) is_held_known: watch::Sender<bool>,
    /// Names whose object claims another one now, and the object.
    pub(super) former: HashMap<String, Object>,
    pub(super) sources: HashMap<&'static str, Source>,
    /// Names whose Secret is being written or removed, and the objects that wait for that.
    pub(super) busy: HashMap<String, BTreeSet<Object>>,
    /// Times at which names must be judged.
    pub(super) due: BTreeSet<(Moment, String)>,
    /// Names whose removal waits because too many came at once.
    pub(super) delayed: BTreeSet<String>,
    /// Time at which all delayed names are judged anew, because objects have come back and the
    /// removals may no longer be too many. One recount serves many such objects.
    pub(super) recount: Option<Moment>,
}

// === impl Cluster ===

impl Cluster<'_> {
    pub(super) fn derived(&self) -> Option<Derived> {
        self.sum.map(|sum| Derived { sum, expiry: self.expiry })
    }
}

// === impl Registrations ===

impl Registrations {
    pub(super) fn new(limit: usize, sources: HashMap<&'static str, Source>) -> Self {
        Self {
            claims: Claims::default(),
            derived: HashMap::new(),
            removals: Removals::new(limit),
            held: HashMap::new(),
            is_held_known: watch::Sender::new(false),
            former: HashMap::new(),
            sources,
            busy: HashMap::new(),
            due: BTreeSet::new(),
            delayed: BTreeSet::new(),
            recount: None,
        }
    }

    /// Whether the claims are complete enough to give names to objects: every source that can be
    /// read has been listed once.
    pub(super) fn is_ready(&self) -> bool {
        *self.is_held_known.borrow() && self.sources.values().all(Source::is_settled)
    }

    /// Sets what an object wishes for, and the input that its cluster, if any, was derived from.
    pub(super) fn wish(&mut self, object: &Object, wish: Wish, derived: Option<Derived>) {
        let Some(mut claim) = self.claims.get(object).cloned() else { return };
        claim.wish = wish;
        self.claims.put(object.clone(), claim);
        match derived {
            Some(derived) => self.derived.insert(object.clone(), derived),
            None => self.derived.remove(object),
        };
    }

    /// Removes an object's claim. Returns the name that it had.
    pub(super) fn unclaim(&mut self, object: &Object) -> Vec<String> {
        self.derived.remove(object);
        self.claims.remove(object)
    }

    /// The cluster that an object registers, and the expiry of its credential, if the cluster's
    /// Secret was derived from an input of the same `sum`.
    pub(super) fn settled(&mut self, object: &Object, sum: Sum, now: Moment) -> Option<(String, Expiry)> {
        let derived = self.derived.get(object).filter(|derived| derived.sum == sum).copied()?;
        let claim = self.claims.get(object).filter(|claim| matches!(claim.wish, Wish::Register(_)))?;
        let name = claim.name.clone();
        let Verdict { step, owner, .. } = self.judge(&name, now);
        let is_written = step == Step::Keep && owner.as_ref() == Some(object) && !self.busy.contains_key(&name);
        is_written.then_some((name, derived.expiry))
    }

    /// Whether the Secret of this name says that it was derived from content with this hash.
    pub(super) fn has_hash(&self, name: &str, hash: &str) -> bool {
        let origin = self.held.get(name).and_then(|held| held.origin.as_ref());
        origin.is_some_and(|origin| origin.hash == hash)
    }

    pub(super) fn judge(&mut self, name: &str, now: Moment) -> Verdict {
        let holder = self.holder(name, now);
        self.claims.judge(name, &holder)
    }

    /// The holder of a name. If its object is absent, but not for long enough yet, the name comes
    /// due again.
    fn holder(&mut self, name: &str, now: Moment) -> Holder {
        let Some(held) = self.held.get(name) else { return Holder::Nobody };
        let Some(Origin { object, uid, hash }) = held.origin.clone() else { return Holder::Person };
        let may = self.may_remove(&object, now);
        if let May::At(moment) | May::Held { until: moment } = may {
            self.due.insert((moment, name.to_owned()));
        }
        if matches!(may, May::Held { .. }) {
            self.delayed.insert(name.to_owned());
        } else {
            self.delayed.remove(name);
        }
        Holder::Object { object, uid, hash, is_gone: may == May::Now }
    }

    fn may_remove(&self, object: &Object, now: Moment) -> May {
        if !self.sources.get(object.source).is_some_and(Source::is_available) || !self.removals.is_gone(object) {
            return May::No;
        }
        self.removals.may(object, now, self.registered(object.source))
    }

    /// Number of a source's clusters whose removal waits.
    pub(super) fn delayed_of(&self, source: &str) -> usize {
        let origin = |name: &String| self.held.get(name).and_then(|held| held.origin.as_ref());
        self.delayed.iter().filter_map(origin).filter(|origin| origin.object.source == source).count()
    }

    /// Number of a source's clusters.
    fn registered(&self, source: &str) -> usize {
        self.registered_by(|object| object.source == source).count()
    }

    /// Whether an object has a Secret, or is about to get one.
    pub(super) fn is_registrant(&self, object: &Object) -> bool {
        let is_busy = |name: &String| self.busy.contains_key(name);
        self.claims.get(object).is_some_and(|claim| is_busy(&claim.name))
            || self.registered_by(|registrant| registrant == object).next().is_some()
    }

    /// Forgets absent objects that have no Secret any more.
    pub(super) fn forget_absences(&mut self, now: Moment) {
        let registered: HashSet<Object> = self.registered_by(|_| true).map(|(_, object)| object.clone()).collect();
        self.removals.forget(now, |object| registered.contains(object));
    }

    /// Secrets that such objects registered: their names, and the objects.
    pub(super) fn registered_by(&self, is_such: impl Fn(&Object) -> bool) -> impl Iterator<Item = (&String, &Object)> {
        let registered = self.held.iter().filter_map(|(name, held)| Some((name, &held.origin.as_ref()?.object)));
        registered.filter(move |(_, object)| is_such(object))
    }

    /// Number of Secrets whose objects are in namespaces that their sources do not read.
    pub(super) fn unwatched(&self) -> usize {
        self.held.values().filter(|held| matches!(held.left, Some(Left::Unwatched(_)))).count()
    }

    /// Describes the holder of a name that none of its claimants has.
    pub(super) fn holder_in_words(&self, name: &str) -> String {
        match self.held.get(name).map(|held| (&held.origin, &held.left)) {
            Some((Some(origin), _)) if self.former.contains_key(name) => {
                format!("{}, which had this name before: delete Secret {name} to free it", origin.object.reference)
            }
            Some((Some(origin), _)) => origin.object.reference.clone(),
            Some((None, Some(Left::TurnedOff(source)))) => {
                format!(
                    "the source {source}, which is turned off: turn it on (--enable={source}), or delete Secret {name}"
                )
            }
            Some((None, Some(Left::Unwatched(object)))) => {
                format!(
                    "{}, whose namespace the source {} does not read: have the source read that namespace \
                     ({NAMESPACE_FLAGS}), or delete Secret {name}",
                    object.reference, object.source
                )
            }
            _ => "a Secret that was not created by this program".to_owned(),
        }
    }

    /// Notes that an object exists. One that came back no longer counts as one of too many
    /// removals.
    pub(super) fn present(&mut self, object: &Object, now: Moment) {
        if self.removals.present(object) && !self.delayed.is_empty() {
            self.recount.get_or_insert(now + RECOUNT_AFTER);
        }
    }

    /// Takes the names that are due by now.
    pub(super) fn take_due(&mut self, now: Moment) -> Vec<String> {
        if self.recount.is_some_and(|moment| moment <= now) {
            self.recount = None;
            self.due.extend(self.delayed.iter().map(|name| (now, name.clone())));
        }
        let later = self.due.split_off(&(now + Duration::from_nanos(1), String::new()));
        std::mem::replace(&mut self.due, later).into_iter().map(|(_, name)| name).collect()
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        self.due.first().map(|(moment, _)| *moment).into_iter().chain(self.recount).min()
    }
}

// === impl HeldSecret ===

impl HeldSecret {
    /// Reads the origin of a Secret. A source that this version does not know counts as another
    /// program.
    pub(super) fn read(meta: &Meta, sources: &HashMap<&'static str, Source>) -> Self {
        let (labels, annotations) = (meta.metadata.labels.as_ref(), meta.metadata.annotations.as_ref());
        let annotation = |key: &str| annotations.and_then(|annotations| annotations.get(key)).cloned();
        let label = labels.and_then(|labels| labels.get(SOURCE_LABEL));
        let source = label.and_then(|label| sources.get_key_value(label.as_str()));
        let mut known = SourceName::value_variants().iter().map(|source| source.as_str());
        let made_by = label.and_then(|label| known.find(|source| source == label));
        let is_ours = annotations.is_some_and(|annotations| annotations.contains_key(OBJECT_ANNOTATION));
        let is_followed = |object: &Object| source.is_some_and(|(_, source)| source.covers(object.key().0));
        let object =
            source.zip(annotation(OBJECT_ANNOTATION)).map(|((source, _), reference)| Object { source, reference });
        let left = match &object {
            Some(object) => (!is_followed(object)).then(|| Left::Unwatched(object.clone())),
            None => made_by.filter(|_| is_ours).map(Left::TurnedOff),
        };
        let origin = object.filter(is_followed).map(|object| Origin {
            object,
            uid: annotation(UID_ANNOTATION).unwrap_or_default(),
            hash: annotation(HASH_ANNOTATION).unwrap_or_default(),
        });
        Self {
            uid: meta.metadata.uid.clone().unwrap_or_default(),
            version: meta.metadata.resource_version.clone().unwrap_or_default(),
            origin,
            left,
            managers: managers(meta),
        }
    }
}

/// Sum of who has which fields, whenever they wrote them.
fn managers(meta: &Meta) -> u64 {
    let mut sum = DefaultHasher::new();
    for entry in meta.metadata.managed_fields.iter().flatten() {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        (&entry.manager, &entry.operation, fields).hash(&mut sum);
    }
    sum.finish()
}
