//! Failures of requests to the hub: the text for the caller.
//!
//! A failure of the hub keeps its code and reason. A failure between the hub and the gateway names
//! the operator's next step. The hub's answer about the *gateway's* permissions is never shown as
//! if it were about the caller's.

use api::access::Verb;
use api::status::Status;

use super::verdict::Verdict;
use crate::hub::{Cause, HubFailure};

/// The Status for the caller that asked for `resource`.
pub(super) fn status(failure: HubFailure, resource: &'static str, verdict: Verdict) -> Status {
    let (verb, plural) = (failure.verb.as_str(), failure.collection.plural());
    let worded = |message: String| Status::new(verdict.code, verdict.reason, message);
    match failure.cause {
        Cause::Status(status) => match status.code {
            401 => {
                Status::internal_error("the hub rejects the gateway's own credential: renew its token or kubeconfig")
            }
            403 => Status::internal_error(&format!(
                "the hub does not let the gateway {verb} {plural}: grant its ServiceAccount {verb} on {plural} in the \
                 namespace of the cluster Secrets, or see the gateway's log for another cause"
            )),
            _ => status.into_status(plural, resource),
        },
        Cause::Unreachable(_) => {
            worded(format!("the gateway cannot reach the hub to {verb} {resource}; see the gateway's log"))
        }
        Cause::Busy if failure.verb == Verb::Watch => {
            worded(format!("too many watches open of {resource}; retry shortly"))
        }
        Cause::Busy => worded(format!("too many requests to the hub for {resource} in flight; retry shortly")),
        Cause::TooManyWatches { most } => worded(format!(
            "too many watches open: this gateway serves {most} per user, and all ServiceAccounts of a namespace count \
             as one; at a hub, a watch of virtualclusters counts twice; close some before you open another"
        )),
        Cause::Timeout(_) => worded(format!("the hub did not answer a request to {verb} {resource} in time")),
        Cause::TooLarge { .. } => Status::internal_error(&format!(
            "the hub's answer about {resource} is too large: request less with limit or a selector"
        )),
        Cause::Unreadable => Status::internal_error(&format!("the hub's answer about {resource} cannot be read")),
    }
}

#[cfg(test)]
mod tests {
    use api::hub_status::HubStatus;
    use http::StatusCode;
    use net::words::Causes;

    use super::*;
    use crate::error::Error;
    use crate::hub::Collection;

    fn to_status(verb: Verb, cause: Cause) -> Status {
        Error::hub(HubFailure { verb, collection: Collection::Secrets, cause }, "clustergateways").into_status()
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
            let status = to_status(verb, Cause::Unreachable(Causes::of("10.0.0.1 refused")));
            assert_eq!(status.code(), StatusCode::SERVICE_UNAVAILABLE);
            assert!(!status.message().contains("10.0.0.1"), "the hub's address is for the log");
            status.details().map(|details| details.retry_after_seconds)
        };
        assert_eq!((seconds(Verb::List), seconds(Verb::Update)), (Some(1), Some(0)));
    }

    #[test]
    fn watches_beyond_the_limit_are_told_to_come_again() {
        for (cause, words) in
            [(Cause::Busy, "too many watches open of"), (Cause::TooManyWatches { most: 128 }, "serves 128 per user")]
        {
            let status = to_status(Verb::Watch, cause);
            assert_eq!(status.code(), StatusCode::TOO_MANY_REQUESTS);
            assert_eq!(status.details().map(|details| details.retry_after_seconds), Some(1));
            assert!(status.message().contains(words), "{status:?}");
        }
    }
}
