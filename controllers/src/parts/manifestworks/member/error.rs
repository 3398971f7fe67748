//! Why a call to a member failed, and what the failure concerns.

use std::time::Duration;

use api::cluster_name::ClusterName;
use api::side::Side;
use fleet::{Failure, Kind};

use crate::term::NotLeading;

/// The hop of what failed in this program, and was not sent.
pub const OWN: &str = "controllers";

#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// No server that could judge the request has answered: it says nothing about the object.
    #[error("{0}")]
    Away(Failure),
    /// The hub refuses our access to that cluster.
    #[error("{0}")]
    Closed(Failure),
    /// No answer in time: because of the object or of the member, which is not known.
    #[error("{0}")]
    Late(Failure),
    /// The member itself refuses.
    #[error("{0}")]
    Refused(Failure),
    #[error(transparent)]
    NotLeading(#[from] NotLeading),
}

// === impl MemberError ===

impl MemberError {
    pub fn judged(cluster: &ClusterName, failure: Failure) -> Self {
        let failure = failure.at(cluster);
        match (failure.side, failure.kind) {
            (Some(Side::Caller), Kind::Answered(403)) => Self::Closed(failure),
            (_, Kind::Late) => Self::Late(failure),
            _ if failure.is_of_request() => Self::Refused(failure),
            // The request or the answer concerns one object.
            (None, Kind::Own) => Self::Refused(failure),
            _ => Self::Away(failure),
        }
    }

    /// The same, for a request that admission saw. A 429 with a Status is then about the object,
    /// because webhooks and quotas answer so. An overloaded API server answers in plain text,
    /// before it reads the request. Its `X-Kubernetes-PF-…` headers do not help, because webhooks'
    /// answers have them, too.
    pub fn after_admission(self) -> Self {
        match self {
            Self::Away(failure) if failure.side.is_none() && failure.kind == Kind::Answered(429) => {
                Self::Refused(failure)
            }
            other => other,
        }
    }

    /// How long the member asked not to get the same request again.
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Away(failure) | Self::Closed(failure) | Self::Late(failure) | Self::Refused(failure) => {
                failure.retry_after.unwrap_or_default()
            }
            Self::NotLeading(_) => Duration::ZERO,
        }
    }

    /// Where it failed, as the gateway's log names it.
    pub fn hop(&self) -> &'static str {
        let (Self::Away(failure) | Self::Closed(failure) | Self::Late(failure) | Self::Refused(failure)) = self else {
            return OWN;
        };
        match (failure.side, failure.kind) {
            (Some(side), _) => side.as_str(),
            // A member's own answers name no side.
            (None, Kind::Answered(_)) => Side::Member.as_str(),
            (None, Kind::Own) => OWN,
            (None, Kind::Plain(_) | Kind::Unanswered | Kind::Late) => "unknown",
        }
    }

    /// There is no such object, or no such kind.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Refused(failure) if matches!(failure.kind, Kind::Answered(404) | Kind::Plain(404)))
    }

    /// The kind does not exist, or no longer.
    pub fn is_kind_missing(&self) -> bool {
        let is_kind = |failure: &Failure| {
            failure.kind == Kind::Plain(404) || failure.message.contains("could not find the requested resource")
        };
        matches!(self, Self::Refused(failure) if self.is_missing() && is_kind(failure))
    }

    /// Another client wrote in between, or created it.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(failure) if failure.kind == Kind::Answered(409))
    }

    /// Others own fields that server-side apply would take. Quotas and webhooks answer 409, too.
    pub fn is_of_fields(&self) -> bool {
        matches!(self, Self::Refused(failure) if failure.is_of_fields && self.is_conflict())
    }

    /// A test of a JSON patch failed (`applyJSPatch` in `pkg/endpoints/handlers/patch.go` of
    /// k8s.io/apiserver answers 422).
    pub fn is_unprocessable(&self) -> bool {
        matches!(self, Self::Refused(failure) if failure.kind == Kind::Answered(422))
    }

    /// The registered credential lacks the right.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused(failure) if failure.kind == Kind::Answered(403))
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::{Value, json};

    use super::*;

    fn told(status: Value) -> MemberError {
        let status: Status = serde_json::from_value(status).unwrap();
        MemberError::judged(&ClusterName::parse("c1").unwrap(), Failure::from(kube::Error::Api(Box::new(status))))
    }

    #[test]
    fn who_says_no_decides_what_it_means() {
        let ours = json!({"group": "cluster.core.oam.dev", "kind": "clustergateways", "name": "c1"});
        let member = json!({"causes": [{"reason": "Member", "message": "connection refused"}],
            "group": "cluster.core.oam.dev", "kind": "clustergateways", "name": "c1"});
        let none = json!({"name": "a", "kind": "configmaps"});
        let status = |code: u16, reason: &str, details: &Value| {
            told(json!({"status": "Failure", "code": code, "reason": reason, "message": "m", "details": details}))
        };
        assert!(matches!(status(403, "Forbidden", &ours), MemberError::Closed(_)));
        assert!(status(403, "Forbidden", &none).is_forbidden() && status(404, "NotFound", &none).is_missing());
        let raced = status(409, "Conflict", &none);
        assert!(raced.is_conflict() && !raced.is_of_fields());
        let fields = json!({"causes": [{"reason": "FieldManagerConflict", "field": ".data.a"}]});
        assert!(status(409, "Conflict", &fields).is_of_fields());
        assert!(matches!(status(500, "InternalError", &none), MemberError::Refused(_)), "a webhook, say");
        for away in [
            status(404, "NotFound", &ours),
            status(401, "Unauthorized", &none),
            status(429, "TooManyRequests", &none),
            status(502, "BadGateway", &member),
            status(404, "Failed to parse error data", &none),
        ] {
            assert!(matches!(away, MemberError::Away(_)), "{away}");
        }
        assert_eq!(status(403, "Forbidden", &ours).hop(), "caller");
        assert_eq!(status(403, "Forbidden", &none).hop(), Side::Member.as_str());
        assert_eq!(status(502, "BadGateway", &member).hop(), Side::Member.as_str());
        let hop = |failure| MemberError::judged(&ClusterName::parse("c1").unwrap(), failure).hop();
        assert_eq!(hop(Failure::own("too large")), OWN);
        assert_eq!(hop(Failure::late(Duration::from_secs(1))), "unknown");
    }
}
