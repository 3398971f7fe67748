//! What a request asks for, read once from its method, URI and headers, before any review.

pub mod framing;
pub mod upgrade;

use api::accept::{self, LateForm};
use api::access::{Attributes, ResourceAttributes, Verb};
use api::cluster_name::ClusterName;
use api::route::{self, Dialect, Parsed, RawRequest, Route, Served};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri};

use self::upgrade::Upgrade;
use crate::error::Error;
use crate::limits::Kind;
use crate::request_body::RequestBody;

/// Method and URI of a request. Copied, because `Head` borrows from them until the end, and the
/// request is taken apart before.
pub struct RequestLine {
    method: Method,
    uri: Uri,
}

/// The parsed request. See the [module](self).
pub struct Head<'a> {
    /// The route, and the attributes for the access review.
    pub parsed: Parsed<'a>,
    /// The request asks to upgrade its connection.
    pub asks_upgrade: bool,
    /// Its kind under the limits; none for probes, which do not count.
    pub kind: Option<Kind>,
    /// The format of a failure's Status.
    pub form: LateForm,
    /// A HEAD request: its response has no body.
    pub is_bodyless: bool,
}

// === impl RequestLine ===

impl RequestLine {
    pub fn of<B>(request: &Request<B>) -> Self {
        Self { method: request.method().clone(), uri: request.uri().clone() }
    }

    pub fn method(&self) -> &Method {
        &self.method
    }

    /// Path and query.
    pub fn target(&self) -> &str {
        self.uri.path_and_query().map_or("/", PathAndQuery::as_str)
    }
}

// === impl Head ===

impl<'a> Head<'a> {
    /// `line` is the request's own, and `served` is what its port serves. `gained` is the verb that
    /// a read of a member gains by an upgrade.
    pub fn read(line: &'a RequestLine, request: &Request<RequestBody>, served: Served, gained: Verb) -> Self {
        let RequestLine { method, uri } = line;
        let asks_upgrade = upgrade::is_asked_by(request);
        let gains = asks_upgrade.then_some(gained);
        let parsed = route::parse(RawRequest { method, path: uri.path(), query: uri.query(), upgrade: gains, served });
        let kind = kind(&parsed, asks_upgrade);
        let form = accept::status(request.headers());
        Self { parsed, asks_upgrade, kind, form, is_bodyless: *method == Method::HEAD }
    }

    /// The cluster that a proxied request names. It may not exist.
    pub fn cluster(&self) -> Option<&ClusterName> {
        match &self.parsed.route {
            Route::Proxy(route) => Some(&route.cluster),
            _ => None,
        }
    }

    /// The dialect in which the request names a member.
    pub fn dialect(&self) -> Dialect {
        match &self.parsed.route {
            Route::Proxy(route) => route.dialect,
            Route::Every(_) => Dialect::Karmada,
            _ => Dialect::Native,
        }
    }

    /// Refuses requests that the gateway cannot serve for any caller. Returns the upgrade that
    /// `request` asks for.
    pub fn check(&self, request: &Request<RequestBody>) -> Result<Option<Upgrade>, Error> {
        framing::check(request)?;
        if let Route::NoMember(why) = self.parsed.route {
            return Err(Error::NoMember(why));
        }
        if self.asks_upgrade { Upgrade::of(request).map(Some) } else { Ok(None) }
    }
}

fn kind(parsed: &Parsed<'_>, asks_upgrade: bool) -> Option<Kind> {
    let lasts = match &parsed.route {
        Route::Probe(_) => return None,
        Route::Proxy(route) => route.asks.is_endless(),
        _ => matches!(parsed.attributes, Attributes::Resource(ResourceAttributes { verb: Verb::Watch, .. })),
    };
    Some(if lasts || asks_upgrade { Kind::Long } else { Kind::Short })
}
