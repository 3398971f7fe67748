//! Every way a request can fail before a member's own answer, and the one place that turns it into HTTP.
//!
//! The client's message names the cluster, the cause and, where there is one, the next step; it never holds credentials.
//! `Retry-After` is set only where nothing of the request can have reached a member: client-go repeats *any* request,
//! POST too, that is answered 5xx with it.

mod credential;
mod unseen;
mod verdict;

use std::sync::Arc;

use api::GROUP;
use api::accept::StatusForm;
use api::cluster_name::ClusterName;
use api::list_options::InvalidListOptions;
use api::route::BadPath;
use api::status::{Details, Reason, Status};
use auth::{AuthenticationError, AuthorizationError};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};

use crate::body::ResponseBody;
use crate::clusters::{Held, LookupError, NotIssued};
use crate::headers;
use crate::headers::size::Unfit;
use crate::hub::HubFailure;
use crate::limits::TooMany;
use crate::upstream::{ConnectError, SendError};

#[derive(Debug)]
pub enum Error {
    Authentication(AuthenticationError),
    Authorization(AuthorizationError),
    BadRequest(&'static str),
    BadPath(BadPath),
    TooManyHeaders,
    UnfitHead(Unfit),
    NotFound,
    MethodNotAllowed,
    NotAcceptable,
    /// The parameters of a list cannot be met.
    List(InvalidListOptions),
    /// A read of one object that does not exist.
    NoSuchObject(ClusterName),
    /// A proxied request to a name that is known to be unregistered.
    NoSuchCluster(ClusterName),
    /// The first list of Secrets is not in yet.
    ClustersUnknown,
    /// The hub has the Secret, and the watch of Secrets is behind.
    ClusterLate(ClusterName),
    /// A name that is not known here, and the hub cannot be asked. Not 404: to be gone is said only of what is gone.
    ClusterUnanswered(ClusterName),
    InvalidCluster {
        cluster: ClusterName,
        reason: Arc<str>,
    },
    Upstream {
        cluster: ClusterName,
        error: SendError,
    },
    UpgradeBroken {
        cluster: ClusterName,
        reason: String,
    },
    /// The member answered an upgrade with a success or redirect that is no upgrade.
    NoUpgrade {
        cluster: ClusterName,
        status: StatusCode,
    },
    /// The member switched protocols although nobody asked it to.
    Unasked {
        cluster: ClusterName,
        status: StatusCode,
    },
    /// The member answered 401: the registered credential is bad.
    CredentialRejected(ClusterName),
    /// The member answered 401, and the credential is one that a program issued.
    IssuedRejected(ClusterName),
    /// A program was to issue the credential, and did not.
    NotIssued {
        cluster: ClusterName,
        reason: String,
    },
    /// The member redirects to somewhere outside itself.
    Redirected(ClusterName),
    /// The request came through this gateway too often.
    Loop(ClusterName),
    TooMany(TooMany),
    /// A read of one object whose Secret cannot be used.
    Unconvertible {
        cluster: ClusterName,
        reason: Arc<str>,
    },
    /// A request to the hub on the caller's behalf failed.
    Hub(Box<HubFailure>, &'static str),
    /// A refusal in the words of where it arose.
    Status(Box<Status>),
}

// === impl Error ===

impl Error {
    /// For a caller whose name, as its authenticator has it, cannot be passed on.
    pub const IDENTITY: Self = Self::BadRequest("the caller's identity cannot be sent to the member in a header");

    pub fn not_issued(cluster: &ClusterName, error: &NotIssued) -> Self {
        Self::NotIssued { cluster: cluster.clone(), reason: error.to_string() }
    }

    /// For a 401 of the member.
    pub fn rejected(cluster: &ClusterName, held: &Held<'_>) -> Self {
        match held {
            Held::Fixed(_) => Self::CredentialRejected(cluster.clone()),
            Held::Issued(_) => Self::IssuedRejected(cluster.clone()),
        }
    }

    pub fn invalid(cluster: &ClusterName, reason: Arc<str>) -> Self {
        Self::InvalidCluster { cluster: cluster.clone(), reason }
    }

    pub fn lookup(cluster: &ClusterName, error: LookupError) -> Self {
        match error {
            LookupError::Unknown => Self::ClustersUnknown,
            LookupError::Absent => Self::NoSuchCluster(cluster.clone()),
            LookupError::Invalid(reason) => Self::invalid(cluster, reason),
            LookupError::Late => Self::ClusterLate(cluster.clone()),
            LookupError::Unanswered => Self::ClusterUnanswered(cluster.clone()),
        }
    }

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
        // Of our own resources no member knows; what the hub says of its own failures is the hub's business.
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

    /// Whether it is of a caller that the hub does not know: connections of such are not worth keeping.
    pub fn is_unauthenticated(&self) -> bool {
        match self {
            Self::Authentication(AuthenticationError::Unauthorized { .. }) => true,
            Self::Authentication(AuthenticationError::Forbidden { user, .. })
            | Self::Authorization(AuthorizationError::Forbidden { user, .. }) => user.name == "system:anonymous",
            _ => false,
        }
    }

    pub fn into_status(self) -> Status {
        match self {
            Self::Authentication(error) => authentication(error),
            Self::Authorization(AuthorizationError::Forbidden { user, attributes, reason }) => {
                Status::forbidden(&user.name, &attributes, &reason)
            }
            Self::Authorization(AuthorizationError::Busy) => reviews_full(),
            Self::Authorization(AuthorizationError::Review(reason)) => Status::internal_error(&reason),
            Self::BadRequest(message) => Status::bad_request(message),
            Self::List(error) => error.into(),
            Self::TooManyHeaders => Status::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                Reason::BadRequest,
                format!("the request has more than {} header lines, send fewer header lines", headers::MOST_LINES),
            ),
            Self::UnfitHead(unfit) => Status::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                Reason::BadRequest,
                format!("the request has {unfit}: send fewer or shorter headers"),
            ),
            Self::BadPath(error) => Status::bad_request(error.to_string()),
            Self::NotFound => Status::path_not_found(),
            Self::MethodNotAllowed => Status::method_not_allowed(),
            Self::NotAcceptable => {
                Status::not_acceptable("application/json, application/json;as=Table;v=v1;g=meta.k8s.io")
            }
            Self::TooMany(error) => error.into(),
            Self::Hub(failure, resource) => failure.into_status(resource),
            Self::Status(status) => *status,
            Self::NoSuchObject(name) => Status::object_not_found("clustergateways", name.as_str()),
            Self::ClustersUnknown => Status::new(
                StatusCode::SERVICE_UNAVAILABLE,
                Reason::ServiceUnavailable,
                "the gateway has not read the registered clusters from the hub yet, try again shortly",
            ),
            other => other.member_status(),
        }
    }

    /// Failures that concern one cluster.
    fn member_status(self) -> Status {
        use StatusCode as Code;
        match self {
            Self::NoSuchCluster(cluster) => unseen::absent(&cluster),
            Self::ClusterLate(cluster) => unseen::late(&cluster),
            Self::ClusterUnanswered(cluster) => unseen::unanswered(&cluster),
            Self::InvalidCluster { cluster, reason } => of_cluster(
                &cluster,
                Code::SERVICE_UNAVAILABLE,
                Reason::ServiceUnavailable,
                format!("cluster {cluster} is registered but its Secret cannot be used: {reason}"),
            ),
            Self::Unconvertible { cluster, reason } => of_cluster(
                &cluster,
                Code::INTERNAL_SERVER_ERROR,
                Reason::InternalError,
                format!("cluster {cluster} is registered but its Secret cannot be used: {reason}"),
            ),
            Self::Upstream { cluster, error } => upstream(&cluster, &error),
            Self::UpgradeBroken { cluster, reason } => broken(&cluster, &reason),
            Self::NoUpgrade { cluster, status } => of_cluster(
                &cluster,
                Code::BAD_GATEWAY,
                Reason::InternalError,
                format!(
                    "cluster {cluster} answered an upgrade request with {status} instead of switching protocols, it may have acted on the request"
                ),
            ),
            Self::Unasked { cluster, status } => of_cluster(
                &cluster,
                Code::BAD_GATEWAY,
                Reason::InternalError,
                format!("cluster {cluster} answered with {status}, which is no answer to this request"),
            ),
            Self::CredentialRejected(cluster) => credential::rejected(&cluster),
            Self::IssuedRejected(cluster) => credential::issued_rejected(&cluster),
            Self::NotIssued { cluster, reason } => credential::not_issued(&cluster, &reason),
            Self::Redirected(cluster) => of_cluster(
                &cluster,
                Code::BAD_GATEWAY,
                Reason::InternalError,
                format!(
                    "cluster {cluster} attempted to redirect this request to another server, which is not permitted"
                ),
            ),
            Self::Loop(cluster) => of_cluster(
                &cluster,
                Code::LOOP_DETECTED,
                Reason::InternalError,
                format!(
                    "request for cluster {cluster} keeps coming back to this gateway: does its endpoint point here?"
                ),
            ),
            _ => Status::new(Code::INTERNAL_SERVER_ERROR, Reason::InternalError, "Internal error occurred"),
        }
    }
}

impl From<TooMany> for Error {
    fn from(error: TooMany) -> Self {
        Self::TooMany(error)
    }
}

impl From<AuthenticationError> for Error {
    fn from(error: AuthenticationError) -> Self {
        Self::Authentication(error)
    }
}

impl From<AuthorizationError> for Error {
    fn from(error: AuthorizationError) -> Self {
        Self::Authorization(error)
    }
}

fn authentication(error: AuthenticationError) -> Status {
    match error {
        AuthenticationError::Unauthorized { .. } => Status::unauthorized(),
        AuthenticationError::Forbidden { user, attributes, reason } => {
            Status::forbidden(&user.name, &attributes, &reason)
        }
        AuthenticationError::BadRequest(message) => Status::bad_request(message),
        AuthenticationError::Review(reason) => Status::internal_error(&reason),
        AuthenticationError::Busy => reviews_full(),
    }
}

/// Nothing was asked of anybody, so it may be tried again.
fn reviews_full() -> Status {
    let message = format!("{}, try again shortly", auth::ReviewError::Busy);
    let details = Details { retry_after_seconds: 1, ..Details::default() };
    Status::new(StatusCode::TOO_MANY_REQUESTS, Reason::TooManyRequests, message).with_details(details)
}

fn upstream(cluster: &ClusterName, error: &SendError) -> Status {
    match error {
        SendError::Connect(error) => unreachable(cluster, error),
        SendError::Exhausted(_) | SendError::Refused => of_cluster(
            cluster,
            StatusCode::SERVICE_UNAVAILABLE,
            Reason::ServiceUnavailable,
            format!("cluster {cluster} takes no more requests: {error}"),
        ),
        SendError::Broken(reason) => broken(cluster, reason),
        SendError::Unfit(unfit) => unfit_request(cluster, *unfit),
        SendError::UnfitAnswer(_) => of_cluster(
            cluster,
            StatusCode::BAD_GATEWAY,
            Reason::InternalError,
            format!(
                "the answer of cluster {cluster} cannot be passed on, it may have acted on the request: {error}; whoever runs what answered, \
                 often a workload behind /proxy/, has to send fewer, shorter or valid headers"
            ),
        ),
        SendError::ClientGone(_) => of_cluster(
            cluster,
            StatusCode::BAD_REQUEST,
            Reason::BadRequest,
            format!("request to cluster {cluster}: {error}"),
        ),
    }
}

fn unfit_request(cluster: &ClusterName, unfit: Unfit) -> Status {
    let (code, next) = match unfit {
        Unfit::TooLarge | Unfit::LongName => (
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            ", with the member's credential and the groups of an impersonated user: send fewer or shorter headers",
        ),
        Unfit::Name => (StatusCode::BAD_REQUEST, ": send it under another name"),
    };
    of_cluster(cluster, code, Reason::BadRequest, format!("the request for cluster {cluster} has {unfit}{next}"))
}

/// Nothing was sent. The text holds `dial tcp`, by which existing clients know a disconnected cluster.
fn unreachable(cluster: &ClusterName, error: &ConnectError) -> Status {
    let (code, reason) = if error.is_timeout() {
        (StatusCode::GATEWAY_TIMEOUT, Reason::Timeout)
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Reason::ServiceUnavailable)
    };
    of_cluster(cluster, code, reason, format!("cluster {cluster} is unreachable: {error}"))
}

fn broken(cluster: &ClusterName, reason: &str) -> Status {
    of_cluster(
        cluster,
        StatusCode::BAD_GATEWAY,
        Reason::InternalError,
        format!(
            "cluster {cluster} broke off the connection before it answered, it may have acted on the request: {reason}"
        ),
    )
}

fn of_cluster(cluster: &ClusterName, code: StatusCode, reason: Reason, message: String) -> Status {
    Status::new(code, reason, message).with_details(Details {
        name: cluster.to_string().into(),
        group: GROUP.into(),
        kind: "clustergateways".into(),
        ..Details::default()
    })
}

#[cfg(test)]
mod tests;
