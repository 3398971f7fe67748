//! `metav1.Status`: the body of all our error responses.
//!
//! Wording and field order are those of `k8s.io/apimachinery/pkg/api/errors/errors.go` and
//! `k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go`: clients match on reasons,
//! and people paste messages into search engines. A status here is always a failure, because
//! successes have other bodies.

mod encoding;
mod protobuf;
mod reason;
mod refusals;

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use serde::{Serialize, Serializer};

pub use self::encoding::Encoding;
pub use self::reason::Reason;
use crate::accept::{self, NotAcceptable, StatusForm};
use crate::access::Attributes;
use crate::go_text;
use crate::karmada::group_of;

/// An error response. Serialises as `metav1.Status` in the field order of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[expect(clippy::struct_field_names, reason = "the fields are the document's")]
pub struct Status {
    kind: &'static str,
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    metadata: Empty,
    status: &'static str,
    message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Reason::is_unknown")]
    reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Box<Details>>,
    #[serde(serialize_with = "code_number")]
    code: StatusCode,
}

/// `metav1.StatusDetails`. Empty strings and zero mean "absent".
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Details {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub group: Cow<'static, str>,
    /// Kubernetes puts the plural resource name here, despite the field's name.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub kind: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: Cow<'static, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Seconds. After a 5xx with the header of the same meaning, client-go repeats any request
    /// (also a POST). Set neither once a byte may have reached a member.
    #[serde(rename = "retryAfterSeconds", skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// `metav1.StatusCause`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct StatusCause {
    /// `metav1.CauseType`, for example `FieldValueInvalid`.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub reason: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub message: Cow<'static, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub field: Cow<'static, str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Empty {}

// === impl Status ===

impl Status {
    /// `Content-Type` of [`Status::to_json`].
    pub const CONTENT_TYPE: &'static str = "application/json";

    pub fn new(code: StatusCode, reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: "Status",
            api_version: "v1",
            metadata: Empty {},
            status: "Failure",
            message: message.into(),
            reason,
            details: None,
            code,
        }
    }

    #[must_use]
    pub fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// Sets the seconds after which the request may be repeated.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// Adds a cause to `details.causes`.
    #[must_use]
    pub fn with_cause(mut self, cause: StatusCause) -> Self {
        self.details.get_or_insert_default().causes.push(cause);
        self
    }

    pub fn code(&self) -> StatusCode {
        self.code
    }

    pub fn reason(&self) -> Reason {
        self.reason
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn details(&self) -> Option<&Details> {
        self.details.as_deref()
    }

    /// The 401 of `DefaultBuildHandlerChain`. It deliberately does not reveal which authenticator
    /// failed.
    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, Reason::Unauthorized, "Unauthorized")
    }

    /// The 403 of `responsewriters.Forbidden`. `reason` is the review's `status.reason`, and empty
    /// if it had none.
    ///
    /// The response also needs the header `X-Content-Type-Options: nosniff`, which the caller of
    /// this function must set.
    pub fn forbidden(user: &str, attributes: &Attributes, reason: &str) -> Self {
        let mut what = go_text::html_escaped(&forbidden_sentence(user, attributes));
        if !reason.is_empty() {
            what.push_str(": ");
            what.push_str(reason);
        }
        let (message, details) = match attributes {
            Attributes::NonResource { .. } => (format!("forbidden: {what}"), Details::default()),
            Attributes::Resource(resource) => {
                let name = resource.name.as_deref().unwrap_or_default();
                let object = qualified(&resource.resource, &resource.group);
                let message = if name.is_empty() {
                    format!("{object} is forbidden: {what}")
                } else {
                    format!("{object} {} is forbidden: {what}", go_text::quoted(name))
                };
                (message, Details::of(&resource.group, &resource.resource, name))
            }
        };
        Self::new(StatusCode::FORBIDDEN, Reason::Forbidden, message).with_details(details)
    }

    /// The 400 of `NewBadRequest`.
    pub fn bad_request(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Reason::BadRequest, message)
    }

    /// The 404 of `NewGenericServerResponse`, for a path that is not served.
    pub fn path_not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, Reason::NotFound, "the server could not find the requested resource")
    }

    /// The 404 of `NewNotFound`, for a missing object of ours. `resource` is the plural.
    pub fn object_not_found(resource: &'static str, name: &str) -> Self {
        let group = group_of(resource);
        let message = format!("{} {} not found", qualified(resource, group), go_text::quoted(name));
        Self::new(StatusCode::NOT_FOUND, Reason::NotFound, message).with_details(Details::of(group, resource, name))
    }

    /// The 405 of `NewGenericServerResponse`.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, Reason::MethodNotAllowed, message)
    }

    /// The 406 of `NewNotAcceptableError`. `accepted` is a list of media types, separated by `",
    /// "`.
    pub fn not_acceptable(accepted: &str) -> Self {
        let message = format!("only the following media types are accepted: {accepted}");
        Self::new(StatusCode::NOT_ACCEPTABLE, Reason::NotAcceptable, message)
    }

    /// The 500 of `NewInternalError`. `error` must be safe to show to a client.
    pub fn internal_error(error: &str) -> Self {
        let message = format!("Internal error occurred: {error}");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Reason::InternalError, message)
    }

    /// The body in the form that [`crate::accept::status`] chose, and its `Content-Type`.
    pub fn to_body(&self, form: StatusForm) -> (Bytes, HeaderValue) {
        match form {
            StatusForm::Json => (self.to_json(), HeaderValue::from_static(Self::CONTENT_TYPE)),
            StatusForm::Protobuf => (protobuf::encoded(self), HeaderValue::from_static(protobuf::CONTENT_TYPE)),
        }
    }

    /// The JSON document, with the final newline of Go's encoder.
    pub fn to_json(&self) -> Bytes {
        go_text::json(self)
    }
}

impl From<NotAcceptable> for Status {
    fn from(_: NotAcceptable) -> Self {
        Self::not_acceptable(accept::JSON)
    }
}

fn forbidden_sentence(user: &str, attributes: &Attributes) -> String {
    let user = go_text::quoted(user);
    match attributes {
        Attributes::NonResource { path, verb } => format!("User {user} cannot {verb} path {}", go_text::quoted(path)),
        Attributes::Resource(attributes) => {
            let resource = if attributes.subresource.is_empty() {
                go_text::quoted(&attributes.resource)
            } else {
                go_text::quoted(&format!("{}/{}", attributes.resource, attributes.subresource))
            };
            let scope = match attributes.namespace.as_deref() {
                None | Some("") => String::from("at the cluster scope"),
                Some(namespace) => format!("in the namespace {}", go_text::quoted(namespace)),
            };
            let (verb, group) = (attributes.verb.as_str(), go_text::quoted(&attributes.group));
            format!("User {user} cannot {verb} resource {resource} in API group {group} {scope}")
        }
    }
}

/// `schema.GroupResource.String`.
fn qualified(resource: &str, group: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's serialize_with passes a reference")]
fn code_number<S: Serializer>(code: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(code.as_u16())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

// === impl Details ===

impl Details {
    fn of(group: &str, resource: &str, name: &str) -> Self {
        Self {
            name: Cow::Owned(name.to_owned()),
            group: Cow::Owned(group.to_owned()),
            kind: Cow::Owned(resource.to_owned()),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests;
