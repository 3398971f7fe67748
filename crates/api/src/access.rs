//! What a request wants to do, in terms of a `SubjectAccessReview`.
//!
//! The attributes follow the request-info rules of
//! `k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`. They come from the same parse that
//! dispatches the request, so that the gateway cannot authorize one action and carry out another.

use std::borrow::Cow;
use std::sync::Arc;

/// An RBAC verb. `None` is the empty verb of OPTIONS and unknown methods: only `verbs: ["*"]`
/// matches it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    /// DELETE without a name. We do not serve it, and must not review a request for it as `delete`.
    DeleteCollection,
    Impersonate,
    /// The `proxy/` prefix of API servers before 1.10. We do not serve it, and must not review a
    /// request for it as another verb.
    Proxy,
    None,
}

/// The subject of one access review.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Attributes {
    Resource(ResourceAttributes),
    /// `verb` is the lower-case HTTP method.
    NonResource {
        path: Arc<str>,
        verb: Cow<'static, str>,
    },
}

/// `spec.resourceAttributes` of a `SubjectAccessReview`. Empty strings mean "absent".
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResourceAttributes {
    pub verb: Verb,
    pub group: Cow<'static, str>,
    pub version: Cow<'static, str>,
    pub resource: Cow<'static, str>,
    pub subresource: Cow<'static, str>,
    pub namespace: Option<Arc<str>>,
    pub name: Option<Arc<str>>,
    /// Raw `fieldSelector` and `labelSelector` query values of list and watch requests, for
    /// `fieldSelector.rawSelector` and `labelSelector.rawSelector`.
    pub field_selector: Option<Arc<str>>,
    pub label_selector: Option<Arc<str>>,
}

// === impl Verb ===

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Impersonate => "impersonate",
            Self::Proxy => "proxy",
            Self::None => "",
        }
    }
}
