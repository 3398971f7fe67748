//! Versions, UIDs and creation times for clusters without an API server.
//!
//! Watchers and informers depend on these: an object's version changes when, and only when, the
//! object does; every change gets its own number; and numbers also grow across restarts, so that a
//! version of an earlier process is never taken for a current one.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{SystemTime, UNIX_EPOCH};

use api::secret::SecretView;

/// The stamps given so far.
pub struct Stamps {
    known: HashMap<String, Stamp>,
    version: u64,
}

struct Stamp {
    /// Digest of the object's content. None if that could not be read.
    digest: Option<u64>,
    version: String,
    uid: String,
    /// When the object was first seen, RFC 3339.
    created: String,
}

// === impl Stamps ===

impl Stamps {
    /// Starts at the milliseconds since 1970, because changes are rarer than one per millisecond.
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { known: HashMap::new(), version: u64::try_from(now.as_millis()).unwrap_or(1) }
    }

    /// The version of the current state.
    pub fn version(&self) -> String {
        self.version.to_string()
    }

    /// Adds the object's stamps.
    pub fn stamped<'a>(&'a mut self, view: &SecretView<'a>) -> SecretView<'a> {
        let digest = digest(view);
        if self.known.get(view.name).is_none_or(|known| known.digest != Some(digest)) {
            self.changed(view.name).digest = Some(digest);
        }
        let stamp = &self.known[view.name];
        SecretView {
            uid: &stamp.uid,
            resource_version: &stamp.version,
            creation_timestamp: Some(&stamp.created),
            ..*view
        }
    }

    /// The object's content cannot be read.
    pub fn unreadable(&mut self, name: &str) {
        if self.known.get(name).is_none_or(|known| known.digest.is_some()) {
            self.changed(name).digest = None;
        }
    }

    /// The object is gone.
    pub fn forget(&mut self, name: &str) {
        if self.known.remove(name).is_some() {
            self.version += 1;
        }
    }

    fn changed(&mut self, name: &str) -> &mut Stamp {
        self.version += 1;
        let stamp = self.known.entry(name.to_owned()).or_insert_with(|| Stamp {
            digest: None,
            version: String::new(),
            uid: uid(name),
            created: api::time::now(),
        });
        stamp.version = self.version.to_string();
        stamp
    }
}

fn digest(view: &SecretView<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    let maps: [&BTreeMap<String, String>; 2] = [view.labels, view.annotations];
    (maps, view.data).hash(&mut hasher);
    hasher.finish()
}

/// Derives a UID that is the same for a name in every process: FNV-1a in the form of a UUID of
/// version 8 (RFC 9562 §5.8).
fn uid(name: &str) -> String {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let hash = name.bytes().fold(OFFSET, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME));
    let version = hash & !(0xf << 76) | 0x8 << 76;
    let hex = format!("{:032x}", version & !(0b11 << 62) | 0b10 << 62);
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp(stamps: &mut Stamps, token: &str) -> (String, String, String) {
        let none = BTreeMap::new();
        let data = BTreeMap::from([("token".to_owned(), token.as_bytes().to_vec())]);
        let view = SecretView {
            name: "c1",
            uid: "",
            resource_version: "",
            creation_timestamp: None,
            labels: &none,
            annotations: &none,
            data: &data,
        };
        let stamped = stamps.stamped(&view);
        let created = stamped.creation_timestamp.unwrap_or_default().to_owned();
        (stamped.resource_version.to_owned(), stamped.uid.to_owned(), created)
    }

    #[test]
    fn a_version_changes_with_its_object_only() {
        let mut stamps = Stamps::new();
        let first = stamp(&mut stamps, "a");
        assert_eq!(first, stamp(&mut stamps, "a"));
        assert_eq!(first.0, stamps.version());
        let second = stamp(&mut stamps, "b");
        assert_eq!(second.0, stamps.version());
        assert!(second.0 > first.0 && (&second.1, &second.2) == (&first.1, &first.2));
        stamps.unreadable("c1");
        let broken = stamps.version();
        stamps.unreadable("c1");
        assert!(broken > second.0 && stamps.version() == broken);
        assert!(stamp(&mut stamps, "b").0 > broken);
    }

    #[test]
    fn deletions_take_a_version_and_a_new_object_is_newer() {
        let mut stamps = Stamps::new();
        let (first, uid, _) = stamp(&mut stamps, "a");
        stamps.forget("c1");
        let deleted = stamps.version();
        assert!(deleted > first);
        stamps.forget("c1");
        assert_eq!(stamps.version(), deleted);
        let again = stamp(&mut stamps, "a");
        assert!(again.0 > deleted && again.1 == uid);
    }

    #[test]
    fn uids_are_those_of_the_name() {
        assert_eq!(uid("c1"), uid("c1"));
        assert_ne!(uid("c1"), uid("c2"));
        let uid = uid("c1");
        let lengths: Vec<_> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert!(uid.as_bytes()[14] == b'8' && b"89ab".contains(&uid.as_bytes()[19]), "{uid}");
    }
}
