//! All failures of requests before a member's own response, and the one place that converts them to
//! HTTP.
//!
//! The client's message names the cluster, the cause and, if there is one, the next step. It never
//! contains credentials. `Retry-After` is set only if no part of the request can have reached a
//! member: client-go repeats *any* request, even a POST, that gets 5xx with it.

mod failure;
mod hub;
mod verdict;

use std::fmt;

use api::accept::StatusForm;
use api::cluster_name::ClusterName;
use api::list_options::InvalidListOptions;
use api::route::{BadPath, NoMember};
use api::side::Fault;
use api::status::{Status, StatusCause};
use auth::{AuthenticationError, AuthorizationError, TooManyReviews};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};

use crate::body::ResponseBody;
use crate::headers;
use crate::headers::size::Unfit;
use crate::hub::HubFailure;
use crate::limits::{TooMany, TooManyHeavy};

pub use self::failure::{Cause, Failure};
use self::verdict::{Denial, Verdict};
pub use self::verdict::{Forbidden, Refusal, Side};

/// The text is for the log. If the client may read less, [`Error::into_status`] decides what.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Authentication(#[from] AuthenticationError),
    #[error(transparent)]
    Authorization(#[from] AuthorizationError),
    #[error("{0}")]
    BadRequest(&'static str),
    #[error(transparent)]
    BadPath(BadPath),
    /// The path has the form of a dialect, but names no member.
    #[error(transparent)]
    NoMember(NoMember),
    /// The path by which Open Cluster Management reaches a member's Service.
    #[error(
        "the gateway reaches API servers, not what runs behind them: .../proxy-service/ is not served; the member's \
         own API server serves .../services/<name>:<port>/proxy/"
    )]
    WorkloadService,
    #[error("the request has more than {} header lines: send fewer", headers::MOST_LINES)]
    TooManyHeaders,
    #[error("the request has {}: {}", .0, .0.remedy())]
    UnfitHead(Unfit),
    #[error("nothing is served under this path")]
    NotFound,
    #[error("the method is not served under this path")]
    MethodNotAllowed,
    #[error("no media type of the response is acceptable to the request")]
    NotAcceptable,
    /// A list's parameters are invalid.
    #[error(transparent)]
    List(InvalidListOptions),
    /// A read of one object that does not exist.
    #[error("no such object {0}")]
    NoSuchObject(ClusterName),
    /// The first list of Secrets has not arrived yet.
    #[error("the gateway has not read the registered clusters from the hub yet; retry shortly")]
    ClustersUnknown,
    #[error(transparent)]
    TooMany(#[from] TooMany),
    #[error(transparent)]
    Heavy(#[from] TooManyHeavy),
    /// The bytes held reached their limit, and this was the largest request of the user that held
    /// the most.
    #[error(
        "the gateway holds too many bytes for slow readers and writers (--max-held-bytes), and this request's user \
         holds the most: read the open responses, or cancel unread ones, before you retry"
    )]
    HeldTooMuch,
    /// A failure of a request for one cluster.
    #[error(transparent)]
    Cluster(Failure),
    /// A request to the hub on the caller's behalf failed.
    #[error("{0}")]
    Hub(#[source] Box<HubFailure>, &'static str),
    /// A failure of a read of all clusters at once.
    #[error(transparent)]
    Every(#[from] EveryFailure),
    /// What the hub has, or lets the gateway read, is unusable for this request.
    #[error("{0}")]
    Unusable(String),
    /// A write that took too long after its body was read. The field is its timeout, in seconds.
    #[error("the write did not complete within {0} s: check whether it took effect")]
    LateWrite(u64),
    /// A refusal of the caller's input, in the words of its origin.
    #[error("{0}")]
    Caller(CallerStatus),
}

/// A failure of a read of all clusters at once.
#[derive(Debug, thiserror::Error)]
pub enum EveryFailure {
    /// The hub's reviews took longer than this, in seconds.
    #[error("the reviews of which clusters you may read took longer than {0} s")]
    LateReviews(u64),
    /// No member gave a usable response, and not all answered that they have no such object.
    #[error("{text}")]
    NoneServed {
        /// The side where the members failed.
        side: Side,
        /// Names them with their reasons.
        text: String,
    },
}

/// A Status that the caller can correct. Only [`Error::of_caller`] makes it.
#[derive(Debug)]
pub struct CallerStatus(Box<Status>);

// === impl Error ===

impl Error {
    /// The caller's name, from its authenticator, cannot be sent in a header.
    pub const IDENTITY: Self = Self::BadRequest("the caller's identity cannot be sent to the member in a header");

    /// A failure of a request for `resource`.
    pub fn hub(failure: HubFailure, resource: &'static str) -> Self {
        Self::Hub(Box::new(failure), resource)
    }

    /// A refusal of the caller's input: the verdict is always the caller's side, so failures of
    /// servers and limits have variants of their own.
    pub fn of_caller(status: Status) -> Self {
        debug_assert!(Fault::of(status.code()) != Fault::Server, "{status:?}");
        Self::Caller(CallerStatus(Box::new(status)))
    }

    pub fn into_response(self) -> Response<ResponseBody> {
        self.into_response_as(StatusForm::Json)
    }

    /// The response in the format that [`api::accept::status`] chose.
    pub fn into_response_as(self, form: StatusForm) -> Response<ResponseBody> {
        let retry_after = self.verdict().retry_after;
        // Only for our own resources: these never reach a member, and the hub decides about repeats
        // after its own failures.
        let of_ours = matches!(self, Self::Hub(..));
        let status = self.into_status();
        let seconds = status.details().map_or(0, |details| details.retry_after_seconds);
        let retry_after = retry_after.or((of_ours && seconds > 0).then_some(seconds));
        let (body, content_type) = status.to_body(form);
        let mut response = Response::new(ResponseBody::full(body));
        *response.status_mut() = status.code();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, content_type);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        if let Some(seconds) = retry_after {
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }

    /// Whether the hub does not know the caller: connections of such callers are not kept.
    pub fn is_unauthenticated(&self) -> bool {
        match self.denial() {
            Some(Denial::Unauthorized) => true,
            Some(Denial::Forbidden { user, .. }) => user.name == "system:anonymous",
            None => false,
        }
    }

    /// Whether the failure is frequent, and found before authentication. Connections on which no
    /// caller was ever authenticated are not kept after it, either.
    pub fn is_before_authentication(&self) -> bool {
        matches!(self, Self::NoMember(_))
    }

    /// The client's Status. `details.causes` names the hop that failed, so that programs need not
    /// parse the message.
    pub fn into_status(self) -> Status {
        let (verdict, is_of_ours) = (self.verdict(), matches!(self, Self::Hub(..)));
        let said = if let Self::Cluster(failure) = &self { failure.said() } else { String::new() };
        let status = self.status(verdict);
        debug_assert_eq!((status.code(), status.reason()), (verdict.code, verdict.reason), "{status:?}");
        // Other failures say so in the header only.
        let is_said = is_of_ours || status.code() == StatusCode::TOO_MANY_REQUESTS;
        let status = match verdict.retry_after.filter(|_| is_said) {
            Some(seconds) => status.with_retry_after(seconds),
            None => status,
        };
        match verdict.side.hop() {
            Some(hop) => status.with_cause(StatusCause { reason: hop.into(), message: said.into(), field: "".into() }),
            None => status,
        }
    }

    /// Failures with words of Kubernetes' own bring their code and reason along.
    fn status(self, verdict: Verdict) -> Status {
        let worded = |message: String| Status::new(verdict.code, verdict.reason, message);
        match self {
            Self::Authentication(error) => authentication(error, worded),
            Self::Authorization(AuthorizationError::Forbidden { user, attributes, reason }) => {
                Status::forbidden(&user.name, &attributes, &reason)
            }
            Self::Authorization(AuthorizationError::Busy(crowd)) => worded(reviews_full(&crowd)),
            Self::Authorization(AuthorizationError::Review(error)) => Status::internal_error(&error.to_string()),
            Self::BadRequest(message) => Status::bad_request(message),
            Self::BadPath(error) => Status::bad_request(error.to_string()),
            Self::NotFound | Self::NoMember(NoMember::Off) => Status::path_not_found(),
            Self::NoMember(error) => Status::bad_request(error.to_string()),
            Self::List(error) => error.into(),
            Self::MethodNotAllowed => Status::method_not_allowed(),
            Self::NotAcceptable => {
                Status::not_acceptable("application/json, application/json;as=Table;v=v1;g=meta.k8s.io")
            }
            Self::NoSuchObject(name) => Status::object_not_found("clustergateways", name.as_str()),
            Self::WorkloadService
            | Self::TooManyHeaders
            | Self::UnfitHead(_)
            | Self::ClustersUnknown
            | Self::Heavy(_)
            | Self::HeldTooMuch
            | Self::Every(_)
            | Self::LateWrite(_) => worded(self.to_string()),
            Self::TooMany(error) => worded(error.to_string()).with_details(error.details()),
            Self::Cluster(failure) => failure.status(verdict),
            Self::Hub(failure, resource) => hub::status(*failure, resource, verdict),
            Self::Unusable(text) => Status::internal_error(&text),
            Self::Caller(CallerStatus(status)) => *status,
        }
    }
}

impl fmt::Display for CallerStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.message())
    }
}

fn authentication(error: AuthenticationError, worded: impl FnOnce(String) -> Status) -> Status {
    match error {
        AuthenticationError::Unauthorized { .. } => Status::unauthorized(),
        AuthenticationError::Forbidden { user, attributes, reason } => {
            Status::forbidden(&user.name, &attributes, &reason)
        }
        AuthenticationError::BadRequest(message) => Status::bad_request(message),
        AuthenticationError::Review(error) => Status::internal_error(&error.to_string()),
        AuthenticationError::Busy(crowd) => worded(reviews_full(&crowd)),
    }
}

/// Nothing was asked of anybody, so it may be tried again.
fn reviews_full(crowd: &TooManyReviews) -> String {
    format!("{crowd}; retry shortly")
}

#[cfg(test)]
mod tests;
