//! Failures that concern one cluster, with their texts for the caller.

use std::fmt;
use std::sync::Arc;

use api::cluster_name::ClusterName;
use http::StatusCode;

use super::Error;
use crate::clusters::{CredentialLease, LookupError, NotIssued};
use crate::headers::size::Unfit;
use crate::limits::{TooMany, Whose};
use crate::upstream::{ConnectError, Lost, SendError};

/// A request for `of` without a response of its own. The text is the client's message.
#[derive(Debug)]
pub struct Failure {
    pub of: Backend,
    pub cause: Cause,
}

/// The server for which a request was meant.
#[derive(Debug)]
pub enum Backend {
    Cluster(ClusterName),
    /// The Karmada upstream, with its URL.
    KarmadaUpstream(String),
}

#[derive(Debug)]
pub enum Cause {
    /// Certainly not registered. Clients forget the objects that they track there, so this needs
    /// the hub's answer, unless it cannot be asked for lack of permission or room.
    Absent,
    /// The hub has the Secret, but the watch of Secrets is behind.
    Late,
    /// Not in the snapshot, and the hub cannot be asked. Not a 404: that is only for what is
    /// certainly gone.
    Unanswered,
    /// The content of its Secret, or a rule, is unusable.
    Invalid(Arc<str>),
    /// The same for a read of the object itself.
    Unconvertible(Arc<str>),
    Send(SendError),
    UpgradeBroken(Lost),
    /// The member answered an upgrade with a success or a redirect instead of a 101.
    NoUpgrade(StatusCode),
    /// The member sent an unexpected 1xx, such as a 101.
    Unexpected(StatusCode),
    /// The member answered 401: the registered credential is invalid.
    CredentialRejected,
    /// The member answered 401 to a credential that a program issued.
    IssuedRejected,
    /// A program issued no credential. Nothing was sent to the member.
    NotIssued(NotIssued),
    /// The member redirects to another server.
    Redirected,
    /// The request passed through this gateway too often.
    Loop,
}

// === impl Cause ===

impl Cause {
    pub fn at(self, cluster: &ClusterName) -> Error {
        Error::Cluster(Failure { of: Backend::Cluster(cluster.clone()), cause: self })
    }

    /// The cause of a request that could not be sent, or got no response.
    pub fn sending(error: SendError) -> Self {
        match error {
            SendError::Connect(error) if matches!(*error, ConnectError::Unregistered { .. }) => Self::Absent,
            error => Self::Send(error),
        }
    }

    /// The cause of a member's 401.
    pub fn rejected(lease: &CredentialLease<'_>) -> Self {
        match lease {
            CredentialLease::Fixed(_) => Self::CredentialRejected,
            CredentialLease::Issued(_) => Self::IssuedRejected,
        }
    }

    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Send(error) => Some(error),
            Self::UpgradeBroken(lost) => Some(lost),
            Self::NotIssued(error) => Some(error),
            Self::Absent
            | Self::Late
            | Self::Unanswered
            | Self::Invalid(_)
            | Self::Unconvertible(_)
            | Self::NoUpgrade(_)
            | Self::Unexpected(_)
            | Self::CredentialRejected
            | Self::IssuedRejected
            | Self::Redirected
            | Self::Loop => None,
        }
    }
}

// === impl Failure ===

impl Failure {
    /// The error at the hop that failed; empty if the failure's text is all there is.
    pub(super) fn said(&self) -> String {
        match &self.cause {
            Cause::Invalid(reason) | Cause::Unconvertible(reason) => reason.to_string(),
            cause => cause.source().map(ToString::to_string).unwrap_or_default(),
        }
    }
}

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.source()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, cause } = self;
        match cause {
            // The words of the Go cluster-gateway, which clients search for.
            Cause::Absent => match of {
                Backend::Cluster(name) => write!(f, "no such cluster {name}"),
                Backend::KarmadaUpstream(_) => write!(f, "no such server: {of}"),
            },
            Cause::Late => write!(
                f,
                "{of} is registered, but the gateway has not read it from the hub yet; retry shortly; if it \
                 persists, see the gateway's log"
            ),
            Cause::Unanswered => write!(
                f,
                "the gateway does not know {of} and could not ask the hub whether it was just registered; retry \
                 shortly; if it persists, see the gateway's log"
            ),
            Cause::Invalid(reason) | Cause::Unconvertible(reason) => {
                write!(f, "{of} is registered but its Secret cannot be used: {reason}")
            }
            Cause::Send(error) => sending(f, of, error),
            Cause::UpgradeBroken(lost) => broken(f, of, lost),
            Cause::NoUpgrade(status) => write!(
                f,
                "{of} answered an upgrade request with {status} instead of switching protocols; the request may \
                 have been processed"
            ),
            Cause::Unexpected(status) => {
                write!(f, "{of} sent an unexpected response ({status}); the request may have been processed")
            }
            Cause::CredentialRejected => rejected(f, of),
            Cause::IssuedRejected => write!(
                f,
                "{of} rejected the credential that its external command issued (401): check on the member that \
                 it accepts the identity of that credential"
            ),
            // The words of the Go cluster-gateway.
            Cause::NotIssued(error) => {
                write!(f, "{of}: failed to issue credential from external command: {error}")
            }
            Cause::Redirected => {
                write!(f, "{of} attempted to redirect this request to another server, which is not permitted")
            }
            Cause::Loop => looping(f, of),
        }
    }
}

/// The server rejects the registered credential, or the gateway as a front proxy.
fn rejected(f: &mut fmt::Formatter<'_>, of: &Backend) -> fmt::Result {
    match of {
        Backend::Cluster(_) => {
            write!(f, "{of} rejected the registered credential (401): renew the credential in its Secret")
        }
        Backend::KarmadaUpstream(_) => write!(
            f,
            "{of} does not accept the gateway as a front proxy: its front proxy's CA (--requestheader-client-ca-file) \
             must have issued --karmada-upstream-cert-file, and its --requestheader-allowed-names must allow the \
             certificate's common name"
        ),
    }
}

fn looping(f: &mut fmt::Formatter<'_>, of: &Backend) -> fmt::Result {
    match of {
        Backend::Cluster(_) => {
            write!(f, "the request for {of} keeps coming back to this gateway: correct the endpoint in its Secret")
        }
        Backend::KarmadaUpstream(_) => write!(
            f,
            "the request for {of} keeps coming back to this gateway: name the server that the APIService had before, \
             not the one that reads APIServices"
        ),
    }
}

fn sending(f: &mut fmt::Formatter<'_>, of: &Backend, error: &SendError) -> fmt::Result {
    match error {
        // Nothing was sent. The error contains `dial tcp`, by which existing clients recognize a
        // disconnected cluster.
        SendError::Connect(error) => match of {
            Backend::Cluster(_) => write!(f, "{of} is unreachable: {error}"),
            Backend::KarmadaUpstream(_) => write!(
                f,
                "{of} is unreachable: {error}; check that it runs and that --karmada-upstream-ca-file has its CA. Members \
                 are served without it"
            ),
        },
        SendError::Exhausted(_) | SendError::Refused => {
            write!(f, "{of} accepts no more requests: {error}; retry shortly")
        }
        SendError::Broken(lost) => broken(f, of, lost),
        SendError::Shed => {
            write!(f, "the response of {of} was abandoned; the request may have been processed: {error}")
        }
        SendError::Unfit(unfit @ (Unfit::TooLarge | Unfit::TooMany | Unfit::LongName)) => write!(
            f,
            "the request for {of} has {unfit}, including the member's credential and the groups of an \
             impersonated user: {}",
            unfit.remedy()
        ),
        SendError::Unfit(unfit @ (Unfit::Name | Unfit::NoName | Unfit::LongPath)) => {
            write!(f, "the request for {of} has {unfit}: {}", unfit.remedy())
        }
        SendError::UnfitAnswer(_) => write!(
            f,
            "the response of {of} cannot be passed on: {error}; the request may have been processed; the server \
             that responded, often a workload behind /proxy/, must send fewer, shorter or valid headers"
        ),
        SendError::ClientGone(_) => write!(f, "request to {of}: {error}"),
    }
}

fn broken(f: &mut fmt::Formatter<'_>, of: &Backend, lost: &Lost) -> fmt::Result {
    write!(f, "{of} closed the connection before responding; the request may have been processed: {lost}")
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(name) => write!(f, "cluster {name}"),
            Self::KarmadaUpstream(url) => write!(f, "Karmada's API server {url} (--karmada-upstream)"),
        }
    }
}

// === impl Error ===

impl Error {
    /// Whether the server did not answer, could not be reached, or rejected our credential.
    pub fn is_unanswered(&self) -> bool {
        matches!(self, Self::Cluster(Failure { cause: Cause::Send(_) | Cause::CredentialRejected, .. }))
    }

    /// The same failure for the Karmada upstream at `url`, which is called like a member.
    pub fn of_karmada_upstream(self, url: &str) -> Self {
        match self {
            Self::Cluster(Failure { cause, .. }) => {
                Self::Cluster(Failure { of: Backend::KarmadaUpstream(url.to_owned()), cause })
            }
            Self::TooMany(error @ TooMany { whose: Whose::Cluster(_), .. }) => {
                Self::TooMany(TooMany { whose: Whose::KarmadaUpstream, ..error })
            }
            error => error,
        }
    }

    pub fn lookup(cluster: &ClusterName, error: LookupError) -> Self {
        match error {
            LookupError::Unknown => return Self::ClustersUnknown,
            LookupError::Absent => Cause::Absent,
            LookupError::Invalid(reason) => Cause::Invalid(reason),
            LookupError::Late => Cause::Late,
            LookupError::Unanswered => Cause::Unanswered,
        }
        .at(cluster)
    }
}
