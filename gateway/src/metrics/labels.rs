//! Labels of requests: the HTTP method, and the dialect.

use std::fmt;

use api::route::Dialect;
use http::Method;
use prometheus_client::encoding::{EncodeLabel, EncodeLabelSet, LabelSetEncoder};

/// A method, reduced to a fixed set: callers may send any word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
    Other,
}

// === impl HttpMethod ===

impl HttpMethod {
    /// The method's own name.
    pub fn method(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Options => "OPTIONS",
            Self::Other => "other",
        }
    }

    /// The verb with which the request was authorized on the hub, before its resource was known; so
    /// a list is a `get`.
    pub fn authorized(self) -> &'static str {
        match self {
            Self::Get | Self::Head => "get",
            Self::Post => "create",
            Self::Put => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::Options | Self::Other => "",
        }
    }
}

impl From<&Method> for HttpMethod {
    fn from(method: &Method) -> Self {
        match *method {
            Method::GET => Self::Get,
            Method::HEAD => Self::Head,
            Method::POST => Self::Post,
            Method::PUT => Self::Put,
            Method::PATCH => Self::Patch,
            Method::DELETE => Self::Delete,
            Method::OPTIONS => Self::Options,
            _ => Self::Other,
        }
    }
}

/// The label `dialect`, which native requests do not have: their series stay the same as before
/// there were dialects.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct DialectLabel(pub Dialect);

impl EncodeLabelSet for DialectLabel {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.word().map_or(Ok(()), |word| ("dialect", word).encode(encoder.encode_label()))
    }
}
