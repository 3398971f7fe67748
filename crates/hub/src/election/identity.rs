//! Names the holder of a Lease.

use std::fmt;
use std::sync::Arc;

use net::random::identifier;

/// The name of one contender. Never empty, because an empty holder means none. Cheap to clone.
///
/// No two contenders may have the same name, not even one after the other: each would take the
/// other's leadership for its own. A call of the first that is still in flight, such as its
/// release, would count as the second's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity(Arc<str>);

// === impl Identity ===

impl Identity {
    /// `HOST_RANDOM`, the form that core components use, different for each process. The host lets
    /// people recognize the pod.
    pub fn of_this_process() -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let (host, random) = (host.trim(), identifier());
        Self(if host.is_empty() { random.into() } else { format!("{host}_{random}").into() })
    }

    /// `None` if the name is empty.
    pub fn named(name: &str) -> Option<Self> {
        (!name.is_empty()).then(|| Self(name.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_another_of_the_same_host() {
        let [one, other] = [Identity::of_this_process(), Identity::of_this_process()];
        assert_ne!(one, other);
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a host name");
        assert!(one.as_str().starts_with(host.trim()), "{one}");
        assert_eq!(Identity::named(""), None);
    }
}
