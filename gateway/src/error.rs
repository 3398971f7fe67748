//! Every way a request can fail before a member's own answer, and the one place that turns it into
//! HTTP.
//!
//! The client's message names the cluster, the cause and, where there is one, the next step; it
//! never holds credentials. `Retry-After` is set only where nothing of the request can have reached
//! a member: client-go repeats *any* request, POST too, that is answered 5xx with it.

mod failure;
mod hub;
mod verdict;

use api::accept::StatusForm;
use api::cluster_name::ClusterName;
use api::list_options::InvalidListOptions;
use api::route::{BadPath, NoMember};
use api::status::{Details, Reason, Status, StatusCause};
use auth::{AuthenticationError, AuthorizationError, TooManyReviews};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};

use crate::body::ResponseBody;
use crate::headers;
use crate::headers::size::Unfit;
use crate::hub::HubFailure;
use crate::limits::TooMany;

pub use self::failure::{Cause, Failure};
pub use self::verdict::{Forbidden, Refusal, Side};

/// Its text is for the log: where the client may read less, [`Error::into_status`] says what.
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
    /// A path in the form of a dialect asks for no member.
    #[error(transparent)]
    NoMember(NoMember),
    /// Open Cluster Management's way to a Service of the member.
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
    /// The parameters of a list cannot be met.
    #[error(transparent)]
    List(InvalidListOptions),
    /// A read of one object that does not exist.
    #[error("no such object {0}")]
    NoSuchObject(ClusterName),
    /// The first list of Secrets is not in yet.
    #[error("the gateway has not read the registered clusters from the hub yet; retry shortly")]
    ClustersUnknown,
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// The request was the largest of whoever held the most when there was no room left.
    #[error(
        "the gateway holds too many bytes for slow readers and writers (--max-held-bytes), and this request's user \
         holds the most: read the open responses, or cancel unread ones, before you retry"
    )]
    HeldTooMuch,
    /// Of a request for one cluster.
    #[error(transparent)]
    Cluster(Failure),
    /// A request to the hub on the caller's behalf failed.
    #[error("{0}")]
    Hub(#[source] Box<HubFailure>, &'static str),
    /// A refusal in the words of where it arose.
    #[error("{}", .0.message())]
    Status(Box<Status>),
}

// === impl Error ===

impl Error {
    /// For a caller whose name, as its authenticator has it, cannot be passed on.
    pub const IDENTITY: Self = Self::BadRequest("the caller's identity cannot be sent to the member in a header");

    /// For whoever asked for `resource`.
    pub fn hub(failure: HubFailure, resource: &'static str) -> Self {
        Self::Hub(Box::new(failure), resource)
    }

    pub fn into_response(self) -> Response<ResponseBody> {
        self.into_response_as(StatusForm::Json)
    }

    /// The answer in the form that [`api::accept::status`] chose for its reader.
    pub fn into_response_as(self, form: StatusForm) -> Response<ResponseBody> {
        let retry_after = self.verdict().retry_after;
        // Of our own resources no member knows; what the hub says of its own failures is the hub's
        // business.
        let of_ours = matches!(self, Self::Hub(..) | Self::Status(_));
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

    /// Whether it is of a caller that the hub does not know: connections of such are not worth
    /// keeping.
    pub fn is_unauthenticated(&self) -> bool {
        match self {
            Self::Authentication(AuthenticationError::Unauthorized { .. }) => true,
            Self::Authentication(AuthenticationError::Forbidden { user, .. })
            | Self::Authorization(AuthorizationError::Forbidden { user, .. }) => user.name == "system:anonymous",
            _ => false,
        }
    }

    /// Whether it was found before the caller was authenticated, and often: connections on which no
    /// caller was ever authenticated are not worth keeping for it either.
    pub fn is_before_authentication(&self) -> bool {
        matches!(self, Self::NoMember(_))
    }

    /// What the client reads. `details.causes` names the hop where it failed, so that programs need
    /// not read the message.
    pub fn into_status(self) -> Status {
        let hop = self.verdict().side.hop();
        let said = if let Self::Cluster(failure) = &self { failure.said() } else { String::new() };
        let status = self.status();
        match hop {
            Some(hop) => status.with_cause(StatusCause { reason: hop.into(), message: said.into(), field: "".into() }),
            None => status,
        }
    }

    fn status(self) -> Status {
        match self {
            Self::Authentication(error) => authentication(error),
            Self::Authorization(AuthorizationError::Forbidden { user, attributes, reason }) => {
                Status::forbidden(&user.name, &attributes, &reason)
            }
            Self::Authorization(AuthorizationError::Busy(crowd)) => reviews_full(&crowd),
            Self::Authorization(AuthorizationError::Review(error)) => Status::internal_error(&error.to_string()),
            Self::BadRequest(message) => Status::bad_request(message),
            Self::BadPath(error) => Status::bad_request(error.to_string()),
            Self::WorkloadService => Status::new(StatusCode::FORBIDDEN, Reason::Forbidden, self.to_string()),
            Self::NotFound | Self::NoMember(NoMember::Off) => Status::path_not_found(),
            Self::NoMember(error) => Status::bad_request(error.to_string()),
            Self::List(error) => error.into(),
            Self::TooManyHeaders => {
                Status::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, Reason::BadRequest, self.to_string())
            }
            Self::UnfitHead(unfit) => Status::new(unfit.status(), Reason::BadRequest, self.to_string()),
            Self::MethodNotAllowed => Status::method_not_allowed(),
            Self::NotAcceptable => {
                Status::not_acceptable("application/json, application/json;as=Table;v=v1;g=meta.k8s.io")
            }
            Self::NoSuchObject(name) => Status::object_not_found("clustergateways", name.as_str()),
            Self::ClustersUnknown => {
                Status::new(StatusCode::SERVICE_UNAVAILABLE, Reason::ServiceUnavailable, self.to_string())
            }
            Self::TooMany(error) => error.into(),
            Self::HeldTooMuch => Status::new(StatusCode::TOO_MANY_REQUESTS, Reason::TooManyRequests, self.to_string()),
            Self::Cluster(failure) => failure.into(),
            Self::Hub(failure, resource) => hub::status(*failure, resource),
            Self::Status(status) => *status,
        }
    }
}

fn authentication(error: AuthenticationError) -> Status {
    match error {
        AuthenticationError::Unauthorized { .. } => Status::unauthorized(),
        AuthenticationError::Forbidden { user, attributes, reason } => {
            Status::forbidden(&user.name, &attributes, &reason)
        }
        AuthenticationError::BadRequest(message) => Status::bad_request(message),
        AuthenticationError::Review(error) => Status::internal_error(&error.to_string()),
        AuthenticationError::Busy(crowd) => reviews_full(&crowd),
    }
}

/// Nothing was asked of anybody, so it may be tried again.
fn reviews_full(crowd: &TooManyReviews) -> Status {
    let message = format!("{crowd}; retry shortly");
    let details = Details { retry_after_seconds: 1, ..Details::default() };
    Status::new(StatusCode::TOO_MANY_REQUESTS, Reason::TooManyRequests, message).with_details(details)
}

#[cfg(test)]
mod tests;
