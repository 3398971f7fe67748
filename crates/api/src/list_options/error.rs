//! Why a list or a watch is refused.

use http::StatusCode;

use crate::selector::field::InvalidFieldSelector;
use crate::selector::label::InvalidLabelSelector;
use crate::status::{Details, Reason, Status, StatusCause};

/// Why a list or a watch is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidListOptions {
    #[error(transparent)]
    LabelSelector(#[from] InvalidLabelSelector),
    #[error(transparent)]
    FieldSelector(#[from] InvalidFieldSelector),
    #[error("{0:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")]
    UnknownField(String),
    #[error("continue key is not valid: this server issues none")]
    Continue,
    #[error("invalid resource version: write a whole number")]
    ResourceVersion,
    #[error("{0} must be a whole number")]
    Number(&'static str),
    /// 410, after which clients list again without a version.
    #[error("The resourceVersion for the provided list is no longer available: exact versions are not kept.")]
    Exact,
    /// 410, after which clients list again.
    #[error("too old resource version: {0}: only the current one is kept, list again")]
    TooOld(String),
    #[error("ListOptions.meta.k8s.io \"\" is invalid: {0}: Forbidden: {1}")]
    Forbidden(&'static str, &'static str),
    #[error("ListOptions.meta.k8s.io \"\" is invalid: {0}: Unsupported value: {1}")]
    NotSupported(&'static str, &'static str),
}

// === impl InvalidListOptions ===

impl InvalidListOptions {
    pub fn kind(&self) -> (StatusCode, Reason) {
        match self {
            Self::Exact | Self::TooOld(_) => (StatusCode::GONE, Reason::Expired),
            Self::Forbidden(..) | Self::NotSupported(..) => (StatusCode::UNPROCESSABLE_ENTITY, Reason::Invalid),
            Self::LabelSelector(_)
            | Self::FieldSelector(_)
            | Self::UnknownField(_)
            | Self::Continue
            | Self::ResourceVersion
            | Self::Number(_) => (StatusCode::BAD_REQUEST, Reason::BadRequest),
        }
    }
}

impl From<InvalidListOptions> for Status {
    fn from(error: InvalidListOptions) -> Self {
        let (code, reason) = error.kind();
        let status = Self::new(code, reason, error.to_string());
        let cause = match error {
            InvalidListOptions::Forbidden(field, text) => cause("FieldValueForbidden", field, "Forbidden: ", text),
            InvalidListOptions::NotSupported(field, text) => {
                cause("FieldValueNotSupported", field, "Unsupported value: ", text)
            }
            _ => return status,
        };
        let details = Details { group: "meta.k8s.io".into(), kind: "ListOptions".into(), ..Details::default() };
        status.with_details(Details { causes: vec![cause], ..details })
    }
}

fn cause(reason: &'static str, field: &'static str, kind: &str, text: &str) -> StatusCause {
    StatusCause { reason: reason.into(), message: format!("{kind}{text}").into(), field: field.into() }
}
