//! Certificate requests that are decided for good. Every join changes its request twice after that,
//! and its cluster twice: each time the request would be read from the hub again. They are
//! forgotten when the watch of requests begins anew: a hub that was restored from a backup may have
//! one of them undecided.

use std::collections::HashSet;

use parking_lot::Mutex;
use serde_json::Value;

/// Most that are remembered. Beyond it all are forgotten, and read once more when they change.
const MOST: usize = 8_192;
/// Types of conditions that the hub lets no client remove
/// (`ValidateCertificateSigningRequestUpdate`).
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

/// Uids of requests.
#[derive(Debug, Default)]
pub struct Settled(Mutex<HashSet<String>>);

// === impl Settled ===

impl Settled {
    pub fn insert(&self, uid: Option<String>) {
        let Some(uid) = uid else { return };
        let mut all = self.0.lock();
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(uid);
    }

    pub fn clear(&self) {
        self.0.lock().clear();
    }

    pub fn contains(&self, uid: Option<&str>) -> bool {
        uid.is_some_and(|uid| self.0.lock().contains(uid))
    }
}

/// Whether a request with this `data` stays decided, whatever is written to it.
pub fn is_final(data: &Value) -> bool {
    let status = &data["status"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let is_final = |condition: &Value| condition["type"].as_str().is_some_and(|of| FINAL.contains(&of));
    !status["certificate"].is_null() || conditions.any(is_final)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_remembered_is_bounded() {
        let settled = Settled::default();
        settled.insert(Some("first".to_owned()));
        settled.insert(None);
        assert!(settled.contains(Some("first")) && !settled.contains(Some("another")) && !settled.contains(None));
        for number in 0..MOST {
            settled.insert(Some(number.to_string()));
        }
        let last = (MOST - 1).to_string();
        assert!(settled.0.lock().len() <= MOST && settled.contains(Some(&last)) && !settled.contains(Some("first")));
        settled.clear();
        assert!(!settled.contains(Some(&last)), "the watch began anew");
    }

    #[test]
    fn only_what_nobody_can_take_back_is_final() {
        for (status, expected) in [
            (json!({"conditions": [{"type": "Approved", "status": "True"}]}), true),
            (json!({"conditions": [{"type": "Other"}, {"type": "Denied", "status": "True"}]}), true),
            (json!({"certificate": "YQ=="}), true),
            (json!({"conditions": [{"type": "Other", "status": "True"}]}), false),
            (json!({"conditions": "what cannot be read"}), false),
            (json!({}), false),
        ] {
            assert_eq!(is_final(&json!({"status": status})), expected, "{status}");
        }
    }
}
