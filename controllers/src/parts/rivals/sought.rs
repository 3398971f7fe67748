//! Whom a part looks for, and where.

use super::pods::Workload;

/// Controllers that a part stands in for.
pub struct Rival {
    /// Name of the Lease that they hold.
    pub lease: &'static str,
    /// Their Deployment, if it is looked for: its pods may run without that Lease.
    pub deployment: Option<Workload>,
    pub place: Place,
    /// In `/readyz` while they run.
    pub reason: &'static str,
}

/// The namespaces in which a Lease can be theirs.
pub enum Place {
    /// All; where an operator names some, only these.
    Any,
    /// Those that this holds for, and those that an operator names.
    Usual(fn(&str) -> bool),
}

/// Controllers that a part looks for, and the namespaces that an operator names for them.
#[derive(Clone, Copy)]
pub struct Sought<'a> {
    pub rival: &'a Rival,
    pub namespaces: &'a [String],
}

// === impl Sought ===

impl Sought<'_> {
    pub(super) fn may_be_in(&self, namespace: &str) -> bool {
        let is_named = self.namespaces.iter().any(|one| one == namespace);
        match self.rival.place {
            Place::Any => is_named || self.namespaces.is_empty(),
            Place::Usual(may_be_theirs) => is_named || may_be_theirs(namespace),
        }
    }
}
