//! Every request proxied in a dialect is the same request as in the gateway's own spelling.

use api::access::{Attributes, ResourceAttributes, Verb};
use api::route::{Dialect, NoMember, Parsed, ProxyRoute, RawRequest, Route, Served, parse};
use http::Method;

/// One for each value of the lowest three bits of a byte.
pub const METHODS: [Method; 8] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::TRACE,
];

/// A request as targets have it: one byte for the method (bit 7: it asks to switch protocols), then
/// `path?query`.
pub struct Asked<'a> {
    method: &'static Method,
    pub path: &'a str,
    query: Option<&'a str>,
    upgrade: Option<Verb>,
}

// === impl Asked ===

impl<'a> Asked<'a> {
    pub fn of(input: &'a [u8]) -> Option<Self> {
        let (first, rest) = input.split_first()?;
        let text = std::str::from_utf8(rest).ok()?;
        let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
        let method = &METHODS[usize::from(*first) % METHODS.len()];
        Some(Self { method, path, query, upgrade: (first & 0x80 != 0).then_some(Verb::Create) })
    }

    pub fn parsed(&self, served: Served) -> Parsed<'a> {
        let Self { method, path, query, upgrade } = *self;
        parse(RawRequest { method, path, query, upgrade, served })
    }

    /// Parses it where `served` is served; returns the route, if it is proxied in `dialect`.
    pub fn check(&self, served: Served, dialect: Dialect) -> Option<ProxyRoute<'a>> {
        let parsed = self.parsed(served);
        let Route::Proxy(route) = parsed.route else { return None };
        let (head, remainder) = self.path.split_at(route.prefix.len());
        assert_eq!(head, route.prefix);
        assert!(remainder.is_empty() || remainder.starts_with('/'));
        let native = format!("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/{}/proxy{remainder}", route.cluster);
        let as_native = Asked { path: &native, ..*self }.parsed(Served::default());
        assert_eq!(parsed.attributes, reviewed(as_native.attributes.clone(), route.dialect));
        let Route::Proxy(as_native) = as_native.route else { panic!("{native} is not proxied") };
        assert_eq!((&route.cluster, &route.asks), (&as_native.cluster, &as_native.asks));
        (route.dialect == dialect).then_some(route)
    }

    /// Checks that a dialect which is `on` changes nothing but its own paths, and that where it is
    /// off, its paths give no caller any information. Returns the route where it is on.
    pub fn check_switch(&self, on: Served, is_of_dialect: bool) -> Route<'a> {
        let (on, off) = (self.parsed(on).route, self.parsed(Served::default()).route);
        if is_of_dialect {
            assert!(!matches!(on, Route::NoMember(NoMember::Off)), "{on:?}");
            assert_eq!(off, Route::NoMember(NoMember::Off));
        } else {
            assert_eq!(on, off);
        }
        on
    }
}

/// The attributes that a dialect has reviewed in place of `native` on the native path.
fn reviewed(native: Attributes, dialect: Dialect) -> Attributes {
    match (native, dialect) {
        (Attributes::Resource(native), Dialect::Karmada) => Attributes::Resource(ResourceAttributes {
            group: "cluster.karmada.io".into(),
            resource: "clusters".into(),
            ..native
        }),
        (native, _) => native,
    }
}
