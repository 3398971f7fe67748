//! The result of reading a source object, and the objects that readers get.
//!
//! A reader is a function of objects: the one that registers a cluster, and the Secrets that it
//! refers to. It never fails: an object that it cannot take over also has a reading.

mod object;
mod secret;

use api::secret::ClusterSecret;

pub(crate) use self::object::group_version;
pub use self::object::{Object, TOO_LARGE};
pub use self::secret::{Owner, SecretObject, SecretReference};
use crate::Refused;

/// The reading of a source object.
#[derive(Debug)]
pub enum Reading {
    /// Its private key may not fit its certificate: `kubeconfig::checked` refuses such a one.
    Register(Box<ClusterSecret>),
    /// It is not a cluster yet, or no longer one.
    Waiting(Waiting),
    /// A person paused it: nothing is changed or removed.
    Paused,
    /// It registers no cluster until its author corrects it. An earlier registration stays.
    Refused(Refused),
}

/// What a source object waits for. The texts follow "waiting: ".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Waiting {
    #[error("its kubeconfig Secret does not exist yet")]
    NoKubeconfig,
    #[error("the Secret that {0} names does not exist yet")]
    NoSecret(&'static str),
    #[error("an administrator has not accepted it (spec.hubAcceptsClient)")]
    NotAccepted,
    #[error("no ManagedServiceAccount has a token for it yet")]
    NoToken,
    #[error("it has no address yet (spec.managedClusterClientConfigs)")]
    NoAddress,
    #[error("its status names none of the providers of --clusterprofile-import-providers-file")]
    NoProvider,
    #[error("it is being deleted")]
    Leaving,
}

// === impl Reading ===

impl From<Result<ClusterSecret, Self>> for Reading {
    fn from(read: Result<ClusterSecret, Self>) -> Self {
        read.map_or_else(|other| other, |secret| Self::Register(Box::new(secret)))
    }
}

impl From<Refused> for Reading {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<Waiting> for Reading {
    fn from(waiting: Waiting) -> Self {
        Self::Waiting(waiting)
    }
}

// === impl Waiting ===

impl Waiting {
    /// Whether this ends an earlier registration of the object. An object that is merely missing
    /// may come back: a credential that is replaced is deleted and recreated.
    pub fn ends(self) -> bool {
        matches!(self, Self::NotAccepted | Self::Leaving)
    }
}

#[cfg(test)]
mod tests;
