//! Decides for every failure its HTTP status, its side, its log level and when to retry.
//!
//! The tables have no catch-all: a new failure does not compile until it is listed.

use std::sync::Arc;

use api::GROUP;
use api::access::Verb;
use api::hub_status::HubStatus;
use api::route::NoMember;
pub use api::side::Side;
use api::status::{Details, Reason, Status};
use auth::{AuthenticationError, AuthorizationError, User};
use http::StatusCode;
use tracing::Level;

use super::failure::Backend;
use super::{CallerStatus, Cause, Error, EveryFailure, Failure};
use crate::hub::{self, HubFailure};
use crate::upstream::{ConnectError, SendError};

/// See [`Error::verdict`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    pub code: StatusCode,
    pub reason: Reason,
    pub side: Side,
    /// [`Level::WARN`] unless the caller caused it. What the gateway's limits refuse is for the
    /// operator, too.
    pub level: Level,
    /// In seconds. Only for failures before anything was sent to a member, because client-go
    /// repeats any request; and for reads that did not reach the hub.
    pub retry_after: Option<u32>,
}

/// The APIService that registers the server of Karmada's group.
const KARMADA_API_SERVICE: &str = "v1alpha1.cluster.karmada.io";

/// The part of a failure that is recorded after the response.
#[derive(Debug)]
pub struct Refusal {
    pub side: Side,
    pub forbidden: Option<Forbidden>,
}

/// The refused user and the reason.
#[derive(Debug)]
pub struct Forbidden {
    pub user: Arc<User>,
    pub reason: String,
}

/// What the hub denied to the caller.
pub(super) enum Denial<'e> {
    /// The hub does not know the caller.
    Unauthorized,
    Forbidden {
        user: &'e Arc<User>,
        reason: &'e str,
    },
}

// === impl Verdict ===

impl Verdict {
    const SHORTLY: u32 = 1;

    const fn quietly(code: StatusCode, reason: Reason) -> Self {
        Self { code, reason, side: Side::Caller, level: Level::DEBUG, retry_after: None }
    }

    const fn bad_request() -> Self {
        Self::quietly(StatusCode::BAD_REQUEST, Reason::BadRequest)
    }

    const fn not_found() -> Self {
        Self::quietly(StatusCode::NOT_FOUND, Reason::NotFound)
    }

    const fn operational(side: Side, code: StatusCode, reason: Reason) -> Self {
        Self { code, reason, side, level: Level::WARN, retry_after: None }
    }

    const fn internal(side: Side) -> Self {
        Self::operational(side, StatusCode::INTERNAL_SERVER_ERROR, Reason::InternalError)
    }

    const fn unavailable(side: Side) -> Self {
        Self::operational(side, StatusCode::SERVICE_UNAVAILABLE, Reason::ServiceUnavailable)
    }

    const fn late(side: Side) -> Self {
        Self::operational(side, StatusCode::GATEWAY_TIMEOUT, Reason::Timeout)
    }

    /// A limit of the gateway.
    const fn too_many() -> Self {
        Self::operational(Side::Gateway, StatusCode::TOO_MANY_REQUESTS, Reason::TooManyRequests)
    }

    /// The member caused it, and may have acted on the request.
    const fn bad_gateway() -> Self {
        Self::operational(Side::Member, StatusCode::BAD_GATEWAY, Reason::InternalError)
    }

    const fn again(mut self) -> Self {
        self.retry_after = Some(Self::SHORTLY);
        self
    }
}

// === impl Failure ===

impl Failure {
    pub(super) fn status(self, verdict: Verdict) -> Status {
        let text = self.to_string();
        let (name, group, kind) = match self.of {
            Backend::Cluster(name) => (name.to_string(), GROUP, "clustergateways"),
            Backend::KarmadaUpstream(_) => (KARMADA_API_SERVICE.to_owned(), "apiregistration.k8s.io", "apiservices"),
        };
        let details = Details { name: name.into(), group: group.into(), kind: kind.into(), ..Details::default() };
        Status::new(verdict.code, verdict.reason, text).with_details(details)
    }
}

// === impl Error ===

impl Error {
    pub fn refusal(&self) -> Refusal {
        let forbidden = match self.denial() {
            Some(Denial::Forbidden { user, reason }) => {
                Some(Forbidden { user: Arc::clone(user), reason: reason.to_owned() })
            }
            Some(Denial::Unauthorized) | None => None,
        };
        Refusal { side: self.verdict().side, forbidden }
    }

    /// What the hub denied to the caller, if that is the failure.
    pub(super) fn denial(&self) -> Option<Denial<'_>> {
        match self {
            Self::Authentication(error) => match error {
                AuthenticationError::Unauthorized { .. } => Some(Denial::Unauthorized),
                AuthenticationError::Forbidden { user, reason, .. } => Some(Denial::Forbidden { user, reason }),
                AuthenticationError::BadRequest(_) | AuthenticationError::Review(_) | AuthenticationError::Busy(_) => {
                    None
                }
            },
            Self::Authorization(error) => match error {
                AuthorizationError::Forbidden { user, reason, .. } => Some(Denial::Forbidden { user, reason }),
                AuthorizationError::Review(_) | AuthorizationError::Busy(_) => None,
            },
            Self::BadRequest(_)
            | Self::BadPath(_)
            | Self::NoMember(_)
            | Self::WorkloadService
            | Self::TooManyHeaders
            | Self::UnfitHead(_)
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::NotAcceptable
            | Self::List(_)
            | Self::NoSuchObject(_)
            | Self::ClustersUnknown
            | Self::TooMany(_)
            | Self::Heavy(_)
            | Self::HeldTooMuch
            | Self::Cluster(_)
            | Self::Hub(..)
            | Self::Every(_)
            | Self::Unusable(_)
            | Self::LateWrite(_)
            | Self::Caller(_) => None,
        }
    }

    /// The side's word for spans.
    pub fn side_word(&self) -> &'static str {
        self.verdict().side.as_str()
    }

    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Authentication(error) => match error {
                AuthenticationError::Unauthorized { .. } => {
                    Verdict::quietly(StatusCode::UNAUTHORIZED, Reason::Unauthorized)
                }
                AuthenticationError::Forbidden { .. } => Verdict::quietly(StatusCode::FORBIDDEN, Reason::Forbidden),
                AuthenticationError::BadRequest(_) => Verdict::bad_request(),
                AuthenticationError::Review(_) => Verdict::internal(Side::Hub),
                AuthenticationError::Busy(_) => Verdict::too_many().again(),
            },
            Self::Authorization(error) => match error {
                AuthorizationError::Forbidden { .. } => Verdict::quietly(StatusCode::FORBIDDEN, Reason::Forbidden),
                AuthorizationError::Review(_) => Verdict::internal(Side::Hub),
                AuthorizationError::Busy(_) => Verdict::too_many().again(),
            },
            Self::NotFound | Self::NoMember(NoMember::Off) | Self::NoSuchObject(_) => Verdict::not_found(),
            Self::BadRequest(_)
            | Self::BadPath(_)
            | Self::NoMember(NoMember::Workspace | NoMember::Karmada | NoMember::UserServer | NoMember::Every) => {
                Verdict::bad_request()
            }
            Self::WorkloadService => Verdict::quietly(StatusCode::FORBIDDEN, Reason::Forbidden),
            Self::TooManyHeaders => Verdict::quietly(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Reason::BadRequest),
            Self::UnfitHead(unfit) => Verdict::quietly(unfit.status(), Reason::BadRequest),
            Self::MethodNotAllowed => Verdict::quietly(StatusCode::METHOD_NOT_ALLOWED, Reason::MethodNotAllowed),
            Self::NotAcceptable => Verdict::quietly(StatusCode::NOT_ACCEPTABLE, Reason::NotAcceptable),
            Self::List(error) => {
                let (code, reason) = error.kind();
                Verdict::quietly(code, reason)
            }
            Self::Caller(CallerStatus(status)) => Verdict::quietly(status.code(), status.reason()),
            Self::Hub(failure, _) => of_hub(failure),
            Self::ClustersUnknown => Verdict::unavailable(Side::Hub).again(),
            Self::TooMany(_) | Self::Heavy(_) => Verdict::too_many().again(),
            // The request's body may have been read.
            Self::HeldTooMuch => Verdict::too_many(),
            Self::Every(EveryFailure::NoneServed { side, .. }) => Verdict::unavailable(*side),
            Self::Every(EveryFailure::LateReviews(_)) | Self::LateWrite(_) => Verdict::late(Side::Hub),
            Self::Unusable(_) => Verdict::internal(Side::Hub),
            Self::Cluster(failure) => of_cluster(&failure.cause),
        }
    }
}

fn of_cluster(cause: &Cause) -> Verdict {
    use Side::{Gateway, Hub};
    match cause {
        Cause::Absent => Verdict::not_found(),
        Cause::Late | Cause::Unanswered => Verdict::unavailable(Hub).again(),
        Cause::Invalid(_) => Verdict::unavailable(Hub),
        Cause::Unconvertible(_) => Verdict::internal(Hub),
        Cause::NotIssued(_) => Verdict::unavailable(Gateway),
        Cause::Loop => Verdict::operational(Gateway, StatusCode::LOOP_DETECTED, Reason::InternalError),
        Cause::Send(error) => of_sending(error),
        Cause::UpgradeBroken(_)
        | Cause::NoUpgrade(_)
        | Cause::Unexpected(_)
        | Cause::CredentialRejected
        | Cause::IssuedRejected
        | Cause::Redirected => Verdict::bad_gateway(),
    }
}

fn of_sending(error: &SendError) -> Verdict {
    match error {
        SendError::Connect(error) => of_connecting(error),
        SendError::Exhausted(_) | SendError::Refused => Verdict::unavailable(Side::Member).again(),
        SendError::Broken(_) | SendError::Shed | SendError::UnfitAnswer(_) => Verdict::bad_gateway(),
        SendError::Unfit(unfit) => Verdict::quietly(unfit.status(), Reason::BadRequest),
        SendError::ClientGone(_) => Verdict::bad_request(),
    }
}

fn of_connecting(error: &ConnectError) -> Verdict {
    let side = if error.is_of_the_tunnel() { Side::Tunnel } else { Side::Member };
    let verdict = if error.is_timeout() { Verdict::late(side) } else { Verdict::unavailable(side) };
    if error.is_momentary() { verdict.again() } else { verdict }
}

fn of_hub(failure: &HubFailure) -> Verdict {
    match &failure.cause {
        // The first two are about the gateway's own credential.
        hub::Cause::Status(HubStatus { code: 401 | 403, .. })
        | hub::Cause::TooLarge { .. }
        | hub::Cause::Unreadable => Verdict::internal(Side::Hub),
        hub::Cause::Status(status) => {
            let (code, reason) = status.kind();
            if failure.is_of_the_hub() {
                Verdict::operational(Side::Hub, code, reason)
            } else {
                // The caller's parameters caused it.
                Verdict::quietly(code, reason)
            }
        }
        hub::Cause::Unreachable(_) => {
            // A write may have reached the hub.
            let is_read = matches!(failure.verb, Verb::Get | Verb::List | Verb::Watch);
            let verdict = Verdict::unavailable(Side::Hub);
            if is_read { verdict.again() } else { verdict }
        }
        hub::Cause::Busy | hub::Cause::TooManyWatches { .. } => Verdict::too_many().again(),
        hub::Cause::Timeout(_) => Verdict::late(Side::Hub),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use api::side::Fault;

    use super::*;
    use crate::error::tests::{every_kind, through_the_tunnel};
    use crate::hub::Collection;

    #[test]
    fn no_failure_of_the_caller_invites_a_repetition() {
        for error in every_kind() {
            let verdict = error.verdict();
            assert!(verdict.side != Side::Caller || verdict.retry_after.is_none(), "{error:?}");
        }
    }

    #[test]
    fn every_failure_but_the_callers_own_is_a_warning() {
        for error in every_kind() {
            let verdict = error.verdict();
            assert_eq!(verdict.level == Level::WARN, verdict.side != Side::Caller, "{error:?}");
        }
    }

    #[test]
    fn only_the_callers_failures_have_codes_of_its_own_mistakes() {
        for error in every_kind() {
            let (text, side) = (format!("{error:?}"), error.verdict().side);
            let code = error.into_status().code();
            assert!(side != Side::Caller || Fault::of(code) != Fault::Server, "{code}: {text}");
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "ServiceUnavailable")]
    fn a_servers_failure_is_no_refusal_of_the_callers_input() {
        let away = Status::new(StatusCode::SERVICE_UNAVAILABLE, Reason::ServiceUnavailable, "away");
        drop(Error::of_caller(away));
    }

    #[test]
    fn a_limit_of_the_gateway_is_no_failure_of_the_hub() {
        let of = |cause| {
            let verdict = of_hub(&HubFailure { verb: Verb::Watch, collection: Collection::Secrets, cause });
            (verdict.side, verdict.level, verdict.retry_after)
        };
        for cause in [hub::Cause::Busy, hub::Cause::TooManyWatches { most: 128 }] {
            assert_eq!(of(cause), (Side::Gateway, Level::WARN, Some(1)));
        }
        assert_eq!(of(hub::Cause::Timeout(Duration::from_mins(1))), (Side::Hub, Level::WARN, None));
    }

    #[test]
    fn a_busy_hub_is_no_mistake_of_the_caller() {
        let side = |code| {
            let cause = hub::Cause::Status(HubStatus { code, ..HubStatus::default() });
            of_hub(&HubFailure { verb: Verb::List, collection: Collection::Secrets, cause }).side
        };
        for code in [401, 403, 408, 421, 425, 429, 500, 504, 0] {
            assert_eq!(side(code), Side::Hub, "{code}");
        }
        for code in [400, 404, 409, 410, 422] {
            assert_eq!(side(code), Side::Caller, "{code}");
        }
    }

    #[test]
    fn the_tunnels_failures_are_told_from_the_members() {
        let sides: Vec<_> = through_the_tunnel().map(|error| of_connecting(&error).side).collect();
        assert!(sides.contains(&Side::Tunnel) && sides.contains(&Side::Member), "{sides:?}");
        assert!(sides.iter().all(|side| matches!(side, Side::Tunnel | Side::Member)));
    }
}
