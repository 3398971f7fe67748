//! Index from Secrets to the objects that were read with them, so that a Secret's change wakes its
//! objects.

use std::collections::{BTreeSet, HashMap};

use kube::ResourceExt as _;
use parking_lot::Mutex;
use register::reading::SecretReference;

use crate::secrets::Meta;
use crate::wakes::Key;

#[derive(Default)]
pub struct References(Mutex<Index>);

#[derive(Default)]
struct Index {
    of_object: HashMap<Key, Vec<SecretReference>>,
    of_secret: HashMap<SecretReference, BTreeSet<Key>>,
}

// === impl References ===

impl References {
    /// Replaces the references of an object.
    pub fn put(&self, object: &Key, secrets: &[SecretReference]) {
        let mut known = self.0.lock();
        known.remove(object);
        for secret in secrets {
            known.of_secret.entry(secret.clone()).or_default().insert(object.clone());
        }
        known.of_object.insert(object.clone(), secrets.to_vec());
    }

    pub fn remove(&self, object: &Key) {
        self.0.lock().remove(object);
    }

    /// Forgets the objects for which `is_there` is false.
    pub fn retain(&self, is_there: &dyn Fn(&Key) -> bool) {
        let mut known = self.0.lock();
        let gone: Vec<_> = known.of_object.keys().filter(|key| !is_there(key)).cloned().collect();
        for object in gone {
            known.remove(&object);
        }
    }

    /// Objects that refer to a Secret.
    pub fn of(&self, secret: &Meta) -> Vec<Key> {
        let reference = SecretReference { namespace: secret.namespace().unwrap_or_default(), name: secret.name_any() };
        self.0.lock().of_secret.get(&reference).into_iter().flatten().cloned().collect()
    }
}

// === impl Index ===

impl Index {
    fn remove(&mut self, object: &Key) {
        for secret in self.of_object.remove(object).unwrap_or_default() {
            if let Some(objects) = self.of_secret.get_mut(&secret) {
                objects.remove(object);
                if objects.is_empty() {
                    self.of_secret.remove(&secret);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_leads_to_those_that_refer_to_it_now() {
        let references = References::default();
        let secret = |name: &str| SecretReference { namespace: "n".into(), name: name.into() };
        let meta = |name: &str| {
            let mut meta = Meta::default();
            (meta.metadata.namespace, meta.metadata.name) = (Some("n".into()), Some(name.into()));
            meta
        };
        let [one, two] = ["c1", "c2"].map(|name| (String::new(), name.to_owned()));
        references.put(&one, &[secret("a"), secret("b")]);
        references.put(&two, &[secret("a")]);
        assert_eq!(references.of(&meta("a")), [one.clone(), two.clone()]);
        references.put(&one, &[secret("b")]);
        assert_eq!((references.of(&meta("a")), references.of(&meta("b"))), (vec![two.clone()], vec![one.clone()]));
        references.retain(&|key| *key == two);
        assert_eq!(references.of(&meta("b")), []);
        references.remove(&two);
        let known = references.0.lock();
        assert!(known.of_object.is_empty() && known.of_secret.is_empty());
    }
}
