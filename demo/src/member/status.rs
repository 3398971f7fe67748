//! Everything a sample member refuses, and the `metav1.Status` that says so.
//!
//! Written here and not borrowed from the gateway's own types: the demo shows that the gateway relays what a
//! member says, and both speaking from one piece of code would hide a difference.
//! Reasons and codes: `k8s.io/apimachinery/pkg/api/errors`.

use serde_json::{Value, json};

use super::{kind::Kind, selector::SelectorError};

/// Why a request was refused. The text is the Status's `message`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// No token, or not ours.
    #[error("Unauthorized")]
    Unauthorized,
    /// A path that means nothing here.
    #[error("the server could not find the requested resource")]
    NoSuchPath,
    /// An object that does not exist.
    #[error("{} {name:?} not found", qualified(*kind))]
    NoSuchObject {
        /// Its type.
        kind: Kind,
        /// Its name.
        name: String,
    },
    /// A method other than GET where only GET is served.
    #[error("the server does not allow this method on the requested resource")]
    MethodNotAllowed,
    /// Nothing that the Accept header names can be produced.
    #[error("only the following media types are accepted: application/json")]
    NotAcceptable,
    /// A query parameter that cannot be understood; the text says which.
    #[error("{0}")]
    BadRequest(String),
    /// A label or field selector that cannot be understood.
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// A combination of options that is not supported; clients fall back on list and watch.
    #[error("ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: not supported by this member")]
    NoInitialEvents,
    /// A resource version that is no longer (or not yet) known.
    #[error("too old resource version: {0}")]
    Expired(u64),
    /// exec, attach, port-forward and proxies: a sample member runs nothing.
    #[error("a sample member runs no containers: {0} is not served")]
    RunsNothing(String),
}

// === impl Refusal ===

impl Refusal {
    /// The HTTP status code.
    pub(crate) fn code(&self) -> u16 {
        match self {
            Self::BadRequest(_) | Self::Selector(_) => 400,
            Self::Unauthorized => 401,
            Self::NoSuchPath | Self::NoSuchObject { .. } => 404,
            Self::MethodNotAllowed => 405,
            Self::NotAcceptable => 406,
            Self::Expired(_) => 410,
            Self::NoInitialEvents => 422,
            Self::RunsNothing(_) => 501,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Self::BadRequest(_) | Self::Selector(_) => "BadRequest",
            Self::Unauthorized => "Unauthorized",
            Self::NoSuchPath | Self::NoSuchObject { .. } => "NotFound",
            Self::MethodNotAllowed => "MethodNotAllowed",
            Self::NotAcceptable => "NotAcceptable",
            Self::Expired(_) => "Expired",
            Self::NoInitialEvents => "Invalid",
            Self::RunsNothing(_) => "NotImplemented",
        }
    }

    /// The body.
    pub(crate) fn to_status(&self) -> Value {
        let details = match self {
            Self::NoSuchObject { kind, name } => match kind.traits().group.name() {
                "" => json!({"name": name, "kind": kind.traits().plural}),
                group => json!({"name": name, "group": group, "kind": kind.traits().plural}),
            },
            _ => json!({}),
        };
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.to_string(),
            "reason": self.reason(),
            "details": details,
            "code": self.code(),
        })
    }
}

/// The resource with its group, as `schema.GroupResource` prints it.
fn qualified(kind: Kind) -> String {
    let traits = kind.traits();
    match traits.group.name() {
        "" => traits.plural.to_owned(),
        group => format!("{}.{group}", traits.plural),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_object_is_named_in_text_and_details() {
        let status = Refusal::NoSuchObject { kind: Kind::Pod, name: "web".into() }.to_status();
        assert_eq!(status["message"], "pods \"web\" not found");
        assert_eq!(status["details"], json!({"name": "web", "kind": "pods"}));
        assert_eq!((&status["code"], &status["reason"]), (&json!(404), &json!("NotFound")));
        let status = Refusal::NoSuchObject { kind: Kind::Lease, name: "n1".into() }.to_status();
        assert_eq!(status["message"], "leases.coordination.k8s.io \"n1\" not found");
        assert_eq!(status["details"], json!({"name": "n1", "group": "coordination.k8s.io", "kind": "leases"}));
    }
}
