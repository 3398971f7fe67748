//! Why a request for a cluster failed, and where.
//!
//! Read from `Status.details`, as the gateway writes it (`details.causes[].reason`,
//! `retryAfterSeconds`), never from message text.

mod cause;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use api::GROUP;
use api::cluster_name::ClusterName;
use api::side::{Fault, Side};
use http::StatusCode;
use kube::core::Status;
use kube::core::response::StatusDetails;
use net::words::tame;

use self::cause::chain;

/// Longest text kept of an error that is not a Status, and of a reason, in bytes.
const LONGEST: usize = 1024;
/// The reason of a cause (`CauseTypeFieldManagerConflict` of k8s.io/apimachinery).
const FIELDS: &str = "FieldManagerConflict";
/// The reason of [`Failure::unselectable`].
const UNSELECTABLE: &str = "Unselectable";
/// Longest message, and longest cause, in bytes: a member chooses them, and clients keep one per
/// cluster.
const LONGEST_MESSAGE: usize = 4 << 10;
/// Longest error that is read, in bytes: a Status that names everything it may of one object fits.
pub(crate) const LONGEST_ERROR: usize = 64 << 10;
/// Wait before the next request to a hub that could not be connected to.
const CONNECT_AGAIN: Duration = Duration::from_secs(1);

/// A failed request. Its text names the cluster, the side, the cause and the next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// `None` if the request was not for one cluster.
    pub cluster: Option<ClusterName>,
    /// Where it failed. `None` if unknown, as for a member's own responses.
    pub side: Option<Side>,
    pub kind: Kind,
    /// `metav1.StatusReason`; empty if there is none.
    pub reason: String,
    /// What happened, in a sentence. The gateway's own begin with the cluster's name.
    pub message: String,
    /// The message of the hop where it failed; empty if `message` is all there is.
    pub cause: String,
    /// When the same request may be sent again: nothing of it has reached a member. `None`: clients
    /// must not repeat it on their own, unless it only reads.
    pub retry_after: Option<Duration>,
    /// Others own fields that server-side apply would take.
    pub is_of_fields: bool,
}

/// How a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A Status with this HTTP code.
    Answered(u16),
    /// An error with this HTTP code that is not a Status. A hub answers like this if it has no
    /// gateway to ask.
    Plain(u16),
    /// There was no connection, or it broke.
    Unanswered,
    /// The time limit passed.
    Late,
    /// Not sent, or answered with something that this program cannot use.
    Own,
}

// === impl Failure ===

impl Failure {
    /// A failure of the program itself.
    pub fn own(message: impl Into<String>) -> Self {
        Self::new(Kind::Own, message.into())
    }

    /// A selector that the Go cluster-gateway would misread; `key` is the requirement, from its key
    /// on.
    pub(crate) fn unselectable(key: &str) -> Self {
        let what = "the Go cluster-gateway does not select by labels of";
        Self { reason: UNSELECTABLE.to_owned(), ..Self::own(format!("{what} {GROUP}, as in {key:?}")) }
    }

    /// No response `within` that time.
    pub fn late(within: Duration) -> Self {
        Self::new(Kind::Late, format!("no answer within {within:?}"))
    }

    /// A body that was cut off.
    pub(crate) fn broken(error: &(dyn StdError + 'static)) -> Self {
        Self::new(Kind::Unanswered, format!("the answer was cut off: {}", chain(error)))
    }

    /// An error without a Status.
    pub(crate) fn plain(code: u16, text: &str) -> Self {
        Self::new(Kind::Plain(code), format!("{code}: {}", cut(text, LONGEST)))
    }

    /// An error that is too long to be read, or was cut off.
    pub(crate) fn unread(code: u16) -> Self {
        Self::new(Kind::Plain(code), format!("{code}, with an unreadable body"))
    }

    /// An error with a Status.
    pub(crate) fn answered(status: Status) -> Self {
        let details = status.details.as_ref();
        let hop = details.and_then(hop);
        let ours = details.filter(|details| details.group == GROUP && details.kind == "clustergateways");
        let refused = status.code == 401 || ours.is_some();
        Self {
            cluster: ours.and_then(|details| ClusterName::parse(&details.name).ok()),
            // A member's 401 arrives as the gateway's 502: this one is the hub's or the gateway's.
            side: hop.as_ref().map(|(side, _)| *side).or(refused.then_some(Side::Caller)),
            cause: hop.map(|(_, said)| tame(cut(&said, LONGEST_MESSAGE))).unwrap_or_default(),
            retry_after: details.map(|details| details.retry_after_seconds).filter(|seconds| *seconds > 0).map(seconds),
            is_of_fields: details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == FIELDS)),
            reason: tame(cut(&status.reason, LONGEST)),
            ..Self::new(Kind::Answered(status.code), status.message)
        }
    }

    fn new(kind: Kind, message: impl AsRef<str>) -> Self {
        let (reason, cause) = (String::new(), String::new());
        // Our own messages too: errors of parsers quote their input.
        let message = tame(cut(message.as_ref(), LONGEST_MESSAGE));
        Self { cluster: None, side: None, kind, reason, message, cause, retry_after: None, is_of_fields: false }
    }

    /// The same failure, for `cluster`.
    #[must_use]
    pub fn at(self, cluster: &ClusterName) -> Self {
        Self { cluster: Some(cluster.clone()), ..self }
    }

    /// Whether the request, even a write, may be sent again after [`Failure::retry_after`].
    pub fn is_retryable(&self) -> bool {
        self.retry_after.is_some()
    }

    /// Whether the member itself refused this very request, even if only because one of its
    /// webhooks is broken. A rejected credential (401) concerns all requests, and so do too many
    /// (429) and what something before the member answers in its place.
    pub fn is_of_request(&self) -> bool {
        let Kind::Answered(code) = self.kind else { return false };
        let is_of_all = |code: StatusCode| {
            code == StatusCode::UNAUTHORIZED || (code.is_client_error() && Fault::of(code) == Fault::Server)
        };
        self.side.is_none() && !StatusCode::from_u16(code).is_ok_and(is_of_all)
    }

    /// A resourceVersion or continue token that is too old.
    pub fn is_expired(&self) -> bool {
        matches!(self.kind, Kind::Answered(410) | Kind::Plain(410))
    }

    /// Whether the caller must select in another way: this gateway cannot apply the selector.
    pub fn is_unselectable(&self) -> bool {
        self.kind == Kind::Own && self.reason == UNSELECTABLE
    }

    /// What the reader can do; empty if the message says everything.
    pub fn next_step(&self) -> &'static str {
        match (self.side, self.kind) {
            (Some(Side::Caller), Kind::Answered(401)) => "renew the credential for the hub",
            (Some(Side::Caller), Kind::Unanswered) => {
                "check that kubectl gets the credential of the kubeconfig: `kubectl version`"
            }
            (Some(Side::Caller), Kind::Answered(403)) if self.cluster.is_none() => {
                "ask the hub's administrator for that verb on that resource"
            }
            (Some(Side::Caller), Kind::Answered(403)) => {
                "ask the hub's administrator for the verb on clustergateways/proxy, for this cluster"
            }
            (Some(Side::Caller), Kind::Answered(404)) => "see `kubectl get clustergateways` for the registered names",
            (Some(Side::Hub), _) => "check whether the hub answers, then see the gateway's log",
            (Some(Side::Gateway), _) => "see the gateway's log",
            (Some(Side::Tunnel), _) => "check whether the cluster's tunnel-agent runs and is linked",
            (Some(Side::Member), _) => {
                "check whether the member answers at its Secret's endpoint, with that credential"
            }
            (None, Kind::Plain(502..=504)) => {
                "see `kubectl get apiservice v1alpha1.cluster.core.oam.dev` on the hub, then the gateway's log"
            }
            (None, Kind::Own) if self.is_unselectable() => "select by another label, or name the clusters",
            (None, Kind::Late) => "give it more time, or see the gateway's log for what it waits for",
            (Some(Side::Caller) | None, _) => "",
        }
    }
}

/// The beginning of `text`, at most `most` bytes.
fn cut(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The side that the Status names, and the message from there.
fn hop(details: &StatusDetails) -> Option<(Side, String)> {
    details.causes.iter().find_map(|cause| Some((Side::of_hop(&cause.reason)?, cause.message.clone())))
}

fn seconds(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into())
}

impl StdError for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(cluster) = &self.cluster {
            write!(f, "cluster {cluster}: ")?;
        }
        if let Some(side) = self.side {
            write!(f, "failed at the {}: ", side.as_str())?;
        }
        f.write_str(&self.message)?;
        if !self.message.contains(&self.cause) {
            write!(f, " ({})", self.cause)?;
        }
        if let Some(after) = self.retry_after {
            write!(f, "; retry after {after:?}")?;
        }
        match self.next_step() {
            "" => Ok(()),
            next => write!(f, "; {next}"),
        }
    }
}

#[cfg(test)]
mod tests;
