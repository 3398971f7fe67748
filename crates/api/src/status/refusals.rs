//! The responses to a write that cannot be done, with the messages of
//! `k8s.io/apimachinery/pkg/api/errors` and `k8s.io/apiserver/pkg/endpoints/handlers`.

use std::borrow::Cow;
use std::fmt::Write as _;

use http::StatusCode;

use super::{Details, Reason, Status, StatusCause, qualified};
use crate::{GROUP, go_text};

// === impl Status ===

impl Status {
    /// The 409 of `NewConflict`. `resource` is the plural. Clients read the object again and
    /// repeat.
    pub fn conflict(resource: &'static str, name: &str, why: &str) -> Self {
        let object = qualified(resource, GROUP);
        let message = format!("Operation cannot be fulfilled on {object} {}: {why}", go_text::quoted(name));
        Self::new(StatusCode::CONFLICT, Reason::Conflict, message).with_details(Details::of(GROUP, resource, name))
    }

    /// The 410 of `NewResourceExpired`, after which clients list again.
    pub fn expired(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::GONE, Reason::Expired, message)
    }

    /// The 413 of `NewRequestEntityTooLargeError`. `limit` is in bytes.
    pub fn too_large(limit: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, Reason::RequestEntityTooLarge, message)
    }

    /// The 422 of `NewInvalid`. `kind` is the object's kind. Each cause's message starts with the
    /// name of its error, such as `Required value`.
    pub fn invalid(kind: &'static str, name: &str, causes: Vec<StatusCause>) -> Self {
        let mut message = format!("{} {} is invalid", qualified(kind, GROUP), go_text::quoted(name));
        let texts: Vec<_> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let _ = match &texts[..] {
            [] => Ok(()),
            [one] => write!(message, ": {one}"),
            // `utilerrors.Aggregate` puts several in brackets.
            several => write!(message, ": [{}]", several.join(", ")),
        };
        let details = Details { causes, ..Details::of(GROUP, kind, name) };
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, Reason::Invalid, message).with_details(details)
    }
}
