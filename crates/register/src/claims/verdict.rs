//! What is to be done about a claim.

use super::Object;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    /// A Secret with this hash.
    Register(String),
    /// Its contents make no valid cluster. An earlier registration of it stays.
    Refused,
    /// It is not followed at present.
    Paused,
    /// It has not been read yet, or an object that it needs does not exist yet.
    Waiting,
}

/// The owner of a name's Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    Nobody,
    /// The controllers did not create it, and never touch it.
    Person,
    Object {
        object: Object,
        uid: String,
        hash: String,
        /// Whether the object certainly no longer exists.
        is_gone: bool,
    },
}

/// The action for a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Nothing to do: everything is up to date, the Secret is a person's, or the owner is paused or
    /// waiting.
    Keep,
    /// Write the Secret from this object.
    Write(Object),
    /// This object owns the name, but is refused.
    Refuse(Object),
    /// Its object is not visible, which does not yet mean that it is gone.
    Wait,
    /// Its object is gone, and the next claimant, if any, has nothing to write.
    Remove,
}

/// The action for a name, and the objects that claim it in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub step: Step,
    /// The claimant that owns the name, or gets it.
    pub owner: Option<Object>,
    pub losers: Vec<Object>,
}

// === impl Verdict ===

impl Verdict {
    pub(super) fn new(step: Step, owner: Option<&Object>, losers: &[&Object]) -> Self {
        Self { step, owner: owner.cloned(), losers: losers.iter().copied().cloned().collect() }
    }
}
