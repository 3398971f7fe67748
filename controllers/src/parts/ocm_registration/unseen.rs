//! What this program wrote and the mirror may not have seen yet. A refusal takes that as well: what
//! is not taken would outlive the cluster's Secret.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use register::ocm::acceptance::Key;

/// The objects, with the versions that the last writes gave them; none for a write without an
/// answer. [`Unseen::may_lack`] forgets an object once the mirror has that version, and
/// [`Unseen::deleted`] at once; one whose write failed stays until it is written or deleted. There
/// is at most one entry for each right of a cluster.
#[derive(Debug, Default)]
pub struct Unseen(Mutex<BTreeMap<Key, Write>>);

/// The version that a write gave. Two writes are never the same one.
pub type Write = Arc<Option<String>>;

// === impl Unseen ===

impl Unseen {
    /// A write begins: until its answer, the object may have any version.
    pub fn begin_write(&self, key: &Key) {
        self.wrote(key, None);
    }

    /// A write ended, with this version if it was answered.
    pub fn wrote(&self, key: &Key, version: Option<String>) {
        self.0.lock().insert(key.clone(), Arc::new(version));
    }

    /// The last write, for [`Unseen::deleted`].
    pub fn last(&self, key: &Key) -> Option<Write> {
        self.0.lock().get(key).cloned()
    }

    /// The object is gone, by a call that began when `last` was its last write.
    pub fn deleted(&self, key: &Key, last: Option<&Write>) {
        let mut all = self.0.lock();
        if all.get(key).zip(last).is_some_and(|(now, last)| Arc::ptr_eq(now, last)) {
            all.remove(key);
        }
    }

    /// Whether the mirror may lack what was written. `mirrored` is the version that it has.
    pub fn may_lack(&self, key: &Key, mirrored: impl FnOnce() -> Option<String>) -> bool {
        let mut all = self.0.lock();
        let Some(written) = all.get(key) else { return false };
        let mirrored = mirrored();
        let versions = mirrored.as_deref().zip(written.as_deref());
        let is_seen = versions.is_some_and(|(mirrored, written)| is_since(mirrored, written));
        if is_seen {
            all.remove(key);
        }
        !is_seen
    }
}

/// Whether a version is a written one, or a later one. Where they are no numbers, only the same
/// version is known to be: a right that counts as seen too early would stay.
fn is_since(version: &str, written: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    let numbers = number(version).zip(number(written));
    numbers.map_or(version == written, |(version, written)| version >= written)
}

#[cfg(test)]
mod tests {
    use register::ocm::acceptance::Cluster;

    use super::*;

    #[test]
    fn what_was_written_is_unseen_until_the_mirror_has_it() {
        let (unseen, key) = (Unseen::default(), Cluster { name: "c1", uid: "u" }.work_key());
        let is_behind = |mirrored: Option<&str>| unseen.may_lack(&key, || mirrored.map(str::to_owned));
        assert!(!is_behind(None), "nothing was written");
        unseen.begin_write(&key);
        assert!(is_behind(None) && is_behind(Some("9")), "no answer came: it may be any version");
        unseen.wrote(&key, Some("10".to_owned()));
        assert!(is_behind(None) && is_behind(Some("9")), "an earlier one, as a number");
        assert!(!is_behind(Some("10")) && !is_behind(None), "it was seen, so the mirror is right from then on");
        unseen.wrote(&key, Some("11".to_owned()));
        unseen.deleted(&key, unseen.last(&key).as_ref());
        assert!(!is_behind(None));
        unseen.wrote(&key, Some("b".to_owned()));
        assert!(is_behind(Some("9")) && is_behind(Some("c")), "without numbers, any other may be an earlier one");
        assert!(!is_behind(Some("b")));
    }

    /// One task deletes what another one writes again meanwhile.
    #[test]
    fn what_was_written_since_a_call_began_outlives_its_deletion() {
        let (unseen, key) = (Unseen::default(), Cluster { name: "c1", uid: "u" }.work_key());
        for _ in 0..2 {
            let last = unseen.last(&key);
            unseen.begin_write(&key);
            unseen.deleted(&key, last.as_ref());
            assert!(unseen.may_lack(&key, || None), "after {last:?}");
        }
    }
}
