//! Why a request to an API server failed, most often the hub: facts for the log and for the
//! response to a caller.

use std::time::Duration;

use api::access::Verb;
use api::hub_status::HubStatus;
use api::side::Fault;
use http::StatusCode;
use net::words::{Causes, causes};

use super::watches::{Full, MOST_OF_ONE};

/// Begins the text of a request that was not answered.
const NO_ANSWER: &str = "no answer: ";

/// The hub's collections that we read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collection {
    /// The Secrets in the clusters' namespace.
    Secrets,
    /// OCM's `ManagedCluster`s.
    ManagedClusters,
    /// The API groups of discovery. Not a resource: it has a list only.
    ApiGroups,
}

/// Why a request to the hub failed, for the log.
#[derive(Debug, thiserror::Error)]
#[error("cannot {} {} on the hub: {cause}", verb.as_str(), collection.plural())]
pub struct HubFailure {
    pub verb: Verb,
    pub collection: Collection,
    #[source]
    pub cause: Cause,
}

/// Why a call of an API server failed: of the hub, or of a member that is called directly.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// The API server's own error response.
    #[error("the API server answered {}: {}", .0.code, .0.message)]
    Status(HubStatus),
    /// The connection failed or broke.
    #[error("{NO_ANSWER}{0}")]
    Unreachable(#[source] Causes),
    #[error("no complete answer within {0:?}")]
    Timeout(Duration),
    /// The response exceeds the limit, of bytes or of pages.
    #[error("the answer is too large: more than {most} {unit}")]
    TooLarge { most: usize, unit: &'static str },
    /// The response is not what the request asked for.
    #[error("the answer cannot be read")]
    Unreadable,
    /// The most requests allowed are in flight.
    #[error("too many requests in flight")]
    Busy,
    /// This reader has `most` watches open, the most that one reader may have.
    #[error("too many watches of one user, or of one namespace's ServiceAccounts, are open")]
    TooManyWatches { most: usize },
}

// === impl Collection ===

impl Collection {
    pub fn plural(self) -> &'static str {
        match self {
            Self::Secrets => "secrets",
            Self::ManagedClusters => "managedclusters",
            Self::ApiGroups => "API groups",
        }
    }
}

// === impl HubFailure ===

impl HubFailure {
    /// The response is not what the request asked for.
    pub fn unreadable(collection: Collection) -> Self {
        Self { verb: Verb::List, collection, cause: Cause::Unreadable }
    }

    /// The hub's status code, if the hub responded.
    pub fn code(&self) -> Option<u16> {
        self.cause.code()
    }

    /// Whether a limit of this program refused the request, so that it was not sent to the hub.
    pub fn is_own_limit(&self) -> bool {
        matches!(self.cause, Cause::Busy | Cause::TooManyWatches { .. })
    }

    /// Whether the hub is at fault, and not the caller's parameters. For the operator's log. A 401
    /// or 403 is about this program's own credential.
    pub fn is_of_the_hub(&self) -> bool {
        let is_of_caller = |code| StatusCode::from_u16(code).is_ok_and(|code| Fault::of(code) != Fault::Server);
        !self.is_own_limit() && self.code().is_none_or(|code| matches!(code, 401 | 403) || !is_of_caller(code))
    }
}

// === impl Cause ===

impl From<Full> for Cause {
    fn from(full: Full) -> Self {
        match full {
            Full::ForAll => Self::Busy,
            Full::ForReader => Self::TooManyWatches { most: MOST_OF_ONE },
        }
    }
}

impl From<kube::Error> for Cause {
    fn from(error: kube::Error) -> Self {
        Self::of_answer(&error).unwrap_or_else(|| Self::Unreachable(Causes::of(error)))
    }
}

impl Cause {
    /// The status code, if the API server responded.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Status(status) => Some(status.code),
            _ => None,
        }
    }

    /// Whether the API server itself responded with this code.
    pub fn is(&self, code: StatusCode) -> bool {
        self.code() == Some(code.as_u16())
    }

    /// The cause if the API server answered. Takes the Status itself: kube's own text repeats it in
    /// its debug form.
    fn of_answer(error: &kube::Error) -> Option<Self> {
        match error {
            kube::Error::Api(status) => {
                let (code, message) = (status.code, status.message.clone());
                Some(Self::Status(HubStatus { code, message, ..HubStatus::default() }))
            }
            kube::Error::SerdeError(_) => Some(Self::Unreadable),
            _ => None,
        }
    }
}

/// What `Cause::from(error)` would say, without taking `error`: for errors that keep the
/// [`kube::Error`] as their source.
pub fn cause_text(error: &kube::Error) -> String {
    Cause::of_answer(error).map_or_else(|| format!("{NO_ANSWER}{}", causes(error)), |cause| cause.to_string())
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::io;

    use kube::core::Status;
    use net::words::chain;

    use super::*;

    #[test]
    fn an_answer_is_its_code_and_its_message() {
        let status = Status { code: 403, message: "secrets is forbidden".to_owned(), ..Status::default() };
        let error = kube::Error::Api(Box::new(status));
        let text = "the API server answered 403: secrets is forbidden";
        assert_eq!((cause_text(&error), Cause::from(error).to_string()), (text.to_owned(), text.to_owned()));
    }

    #[test]
    fn no_answer_is_its_cause() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        let error = kube::Error::Service(Box::new(refused));
        let text = cause_text(&error);
        assert!(text.starts_with("no answer: ") && text.ends_with("connection refused"), "{text}");
        let failure = HubFailure { verb: Verb::List, collection: Collection::Secrets, cause: error.into() };
        assert_eq!(causes(&failure), format!("cannot list secrets on the hub: {text}"), "each cause once");
        assert!(chain(&failure).any(<dyn Error>::is::<io::Error>), "programs find the system's error");
    }
}
