//! Why a request to the hub brought nothing, and what the caller is told of it.
//!
//! A failure of the hub keeps its code and reason; one between the hub and us says what the
//! operator has to do. What the hub says about *our* rights is never told as if it were about the
//! caller's.

use api::hub_status::HubStatus;
use api::status::{Details, Reason, Status};
use http::StatusCode;

use super::collection::Collection;
use super::watches::{Full, MOST_OF_ONE};

/// What was asked of the hub, as RBAC calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    Get,
    List,
    Watch,
    Update,
}

/// Why a request to the hub failed, for the log.
#[derive(Debug, thiserror::Error)]
#[error("cannot {} {}: {cause}", verb.as_str(), collection.plural())]
pub struct HubFailure {
    pub verb: Verb,
    pub collection: Collection,
    pub cause: Cause,
}

#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// Its own answer.
    #[error("the hub answered {}: {}", .0.code, .0.message)]
    Status(HubStatus),
    /// No connection, or it broke.
    #[error("no answer: {0}")]
    Unreachable(String),
    #[error("no complete answer in time")]
    Timeout,
    /// An answer longer than any that is taken.
    #[error("the answer is too large")]
    TooLarge,
    /// An answer that is not what was asked for.
    #[error("the answer cannot be read")]
    Unreadable,
    /// As many requests as allowed are under way.
    #[error("too many requests in flight")]
    Busy,
    /// One reader has as many watches open as one may have.
    #[error("too many watches of one user are open")]
    TooManyWatches,
}

// === impl HubFailure ===

impl HubFailure {
    /// The answer is not what was asked for.
    pub fn unreadable(collection: Collection) -> Self {
        Self { verb: Verb::List, collection, cause: Cause::Unreadable }
    }

    /// The hub's status code, if it answered.
    pub fn code(&self) -> Option<u16> {
        match &self.cause {
            Cause::Status(status) => Some(status.code),
            _ => None,
        }
    }

    /// Whether an operator should hear of it, and not only the caller, whose parameters may be to
    /// blame.
    pub fn is_operational(&self) -> bool {
        self.code().is_none_or(|code| matches!(code, 401 | 403 | 500..))
    }

    /// Told to whoever asked for `resource`.
    pub fn into_status(self, resource: &'static str) -> Status {
        let (verb, plural) = (self.verb.as_str(), self.collection.plural());
        let unavailable = |message: String| {
            Status::new(StatusCode::SERVICE_UNAVAILABLE, Reason::ServiceUnavailable, message)
                .with_details(Details { retry_after_seconds: self.verb.retry_after(), ..Details::default() })
        };
        match self.cause {
            Cause::Status(status) => match status.code {
                401 => Status::internal_error(
                    "the hub does not accept the gateway's own credential: renew its token or kubeconfig",
                ),
                403 => Status::internal_error(&format!(
                    "the hub does not let the gateway {verb} {plural}: grant its ServiceAccount {verb} on {plural} in the \
                     namespace of the cluster Secrets, or see the gateway's log for another cause"
                )),
                _ => status.into_status(plural, resource),
            },
            Cause::Unreachable(_) => {
                unavailable(format!("the gateway cannot reach the hub to {verb} {resource}; see the gateway's log"))
            }
            Cause::Busy => too_many(format!("too many requests to the hub for {resource} in flight; retry shortly")),
            Cause::TooManyWatches => too_many(format!(
                "you have too many watches open: this gateway serves {MOST_OF_ONE} of one user at once, and one of \
                 virtualclusters counts twice; close some before you open another"
            )),
            Cause::Timeout => Status::new(
                StatusCode::GATEWAY_TIMEOUT,
                Reason::Timeout,
                format!("the hub did not answer a request to {verb} {resource} in time"),
            ),
            Cause::TooLarge => Status::internal_error(&format!(
                "the hub's answer about {resource} is too large: request less with limit or a selector"
            )),
            Cause::Unreadable => Status::internal_error(&format!("the hub's answer about {resource} cannot be read")),
        }
    }
}

// === impl Cause ===

impl From<Full> for Cause {
    fn from(full: Full) -> Self {
        match full {
            Full::ForAll => Self::Busy,
            Full::ForReader => Self::TooManyWatches,
        }
    }
}

fn too_many(message: String) -> Status {
    Status::new(StatusCode::TOO_MANY_REQUESTS, Reason::TooManyRequests, message)
        .with_details(Details { retry_after_seconds: 1, ..Details::default() })
}

// === impl Verb ===

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Update => "update",
        }
    }

    /// Seconds; 0 for what must not be repeated unasked.
    fn retry_after(self) -> u32 {
        u32::from(self != Self::Update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_status(verb: Verb, cause: Cause) -> Status {
        HubFailure { verb, collection: Collection::Secrets, cause }.into_status("clustergateways")
    }

    #[test]
    fn missing_rights_of_ours_are_not_the_callers() {
        let message = "secrets is forbidden: User \"system:serviceaccount:vela-system:gateway\" cannot list".to_owned();
        let status = to_status(Verb::List, Cause::Status(HubStatus { code: 403, message, ..HubStatus::default() }));
        assert_eq!(status.code(), StatusCode::INTERNAL_SERVER_ERROR);
        assert!(status.message().contains("list on secrets") && !status.message().contains("serviceaccount:"));
        let status = to_status(Verb::Get, Cause::Status(HubStatus { code: 401, ..HubStatus::default() }));
        assert_eq!(status.code(), StatusCode::INTERNAL_SERVER_ERROR);
    }

    #[test]
    fn only_reads_are_to_be_repeated_when_the_hub_is_away() {
        let seconds = |verb| {
            let status = to_status(verb, Cause::Unreachable("10.0.0.1 refused".into()));
            assert_eq!(status.code(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(!status.message().contains("10.0.0.1"), "the hub's address is for the log");
            status.details().map(|details| details.retry_after_seconds)
        };
        assert_eq!((seconds(Verb::List), seconds(Verb::Update)), (Some(1), Some(0)));
    }
}
