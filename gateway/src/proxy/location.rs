//! Rewrites `Location` headers of members.
//!
//! A member writes a `Location` for clients that connect to it directly. Unchanged, it would send a
//! client to the hub's root with its hub credential, or to any server that the member names
//! (CVE-2022-3172).
//!
//! A rewritten location must mean the same to every client, by RFC 3986 and by the rules of
//! browsers: these remove tabs and line ends from a URL before they parse it, and read `\` as `/`
//! and `%2e` as a dot (WHATWG URL Standard, basic URL parser). So a location must be one absolute
//! path of visible ASCII without dot segments and backslashes. It is appended to our own path, so
//! that no client can read an authority in it.
//!
//! In a response that is no redirect (RFC 9110 §10.2.2: a 201 names the created resource), clients
//! do not follow the header by themselves, but use it for their next request. It is rewritten in
//! the same way, and removed if that is impossible: an error would not undo the creation. `headers`
//! removes `Refresh` from all responses. `Content-Location` and `Link` only describe, and pass
//! unchanged.

use std::borrow::Cow;

use http::header::LOCATION;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderValue, StatusCode};

/// A member's address, as the member would write it.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    pub scheme: &'a Scheme,
    pub authority: &'a Authority,
    /// The path prefix of the member's endpoint.
    pub base_path: &'a str,
}

/// The redirect leads out of the member, or has no form below the proxy path.
#[derive(Debug, PartialEq, Eq)]
pub struct OutsideMember;

/// Rewrites a `Location` of the member at `origin` so that it stays below `prefix`, the path up to
/// the member's part as the client sent it.
///
/// # Errors
/// Fails if a redirect cannot be rewritten. With any other status the header is removed instead.
pub fn rewrite(
    status: StatusCode,
    headers: &mut HeaderMap,
    prefix: &str,
    origin: Origin<'_>,
) -> Result<(), OutsideMember> {
    let Some(location) = headers.get(LOCATION) else {
        return Ok(());
    };
    match below(location, prefix, origin) {
        Some(rewritten) => headers.insert(LOCATION, rewritten),
        None if status.is_redirection() => return Err(OutsideMember),
        None => headers.remove(LOCATION),
    };
    Ok(())
}

fn below(location: &HeaderValue, prefix: &str, origin: Origin<'_>) -> Option<HeaderValue> {
    let location = location.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()))?;
    let reference = own_reference(location, origin)?;
    let path = reference.split(['?', '#']).next().unwrap_or_default();
    // A client resolves `..` before it follows: it would leave the proxy path for the hub itself.
    if path.contains('\\') || api::path::has_dot_segment(path) {
        return None;
    }
    let below = reference.strip_prefix(origin.base_path).filter(|rest| rest.starts_with('/'))?;
    // With an empty prefix, a client would read the rest as an authority, or send its own
    // credential to a member.
    if prefix.is_empty() && !api::route::is_no_members(below.split(['?', '#']).next().unwrap_or_default()) {
        return None;
    }
    HeaderValue::from_str(&format!("{prefix}{below}")).ok()
}

/// Path, query and fragment of a location on the member itself.
fn own_reference<'a>(location: &'a str, origin: Origin<'_>) -> Option<Cow<'a, str>> {
    if location.starts_with('/') {
        // `//host/path` is another authority.
        return (!location.starts_with("//")).then_some(location.into());
    }
    let (scheme, rest) = location.split_once("://")?;
    let (authority, reference) = rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
    let same = scheme.eq_ignore_ascii_case(origin.scheme.as_str())
        && authority.eq_ignore_ascii_case(origin.authority.as_str());
    let rooted = || if reference.starts_with('/') { reference.into() } else { format!("/{reference}").into() };
    same.then(rooted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy";

    /// [`rewrite`] for a member at `https://member.example:6443` with `base_path`.
    fn rewrite_below(status: StatusCode, headers: &mut HeaderMap, base_path: &str) -> Result<(), OutsideMember> {
        let authority = Authority::from_static("member.example:6443");
        let origin = Origin { scheme: &Scheme::HTTPS, authority: &authority, base_path };
        rewrite(status, headers, PREFIX, origin)
    }

    fn rewritten(location: &str, base_path: &str) -> Result<String, OutsideMember> {
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, location.parse().unwrap());
        rewrite_below(StatusCode::MOVED_PERMANENTLY, &mut headers, base_path)?;
        Ok(headers[LOCATION].to_str().unwrap().to_owned())
    }

    #[test]
    fn redirects_within_the_member_stay_below_the_proxy_path() {
        assert_eq!(rewritten("/api/v1?x=%2F", "").unwrap(), format!("{PREFIX}/api/v1?x=%2F"));
        assert_eq!(rewritten("https://member.example:6443/a", "").unwrap(), format!("{PREFIX}/a"));
        assert_eq!(rewritten("/base/a", "/base").unwrap(), format!("{PREFIX}/a"));
        assert_eq!(rewritten("HTTPS://Member.example:6443", "").unwrap(), format!("{PREFIX}/"));
        assert_eq!(rewritten("https://member.example:6443?x=/../y", "").unwrap(), format!("{PREFIX}/?x=/../y"));
        assert_eq!(rewritten("https://member.example:6443#/b", "").unwrap(), format!("{PREFIX}/#/b"));
        assert_eq!(rewritten("/a%09b?x=\\", "").unwrap(), format!("{PREFIX}/a%09b?x=\\"));
        assert_eq!(rewritten("/base//evil.example/", "/base").unwrap(), format!("{PREFIX}//evil.example/"));
    }

    #[test]
    fn beside_another_answer_what_leads_away_is_left_out() {
        for (location, expected) in [("/a", Some(format!("{PREFIX}/a"))), ("https://evil.example/", None)] {
            let mut headers = HeaderMap::new();
            headers.append(LOCATION, location.parse().unwrap());
            headers.append(LOCATION, "https://evil.example/second".parse().unwrap());
            rewrite_below(StatusCode::CREATED, &mut headers, "").unwrap();
            let told: Vec<_> = headers.get_all(LOCATION).iter().map(|told| told.to_str().unwrap()).collect();
            assert_eq!(told, expected.as_deref().as_slice());
        }
    }

    #[test]
    fn below_no_path_of_ours_nothing_becomes_an_authority() {
        let authority = Authority::from_static("member.example:6443");
        let origin = |base_path| Origin { scheme: &Scheme::HTTPS, authority: &authority, base_path };
        for (location, base_path, expected) in [
            ("/apis/cluster.karmada.io/a?b", "", Some("/apis/cluster.karmada.io/a?b")),
            ("/apis/cluster.karmada.io/v1alpha1/clusters/c1/proxy/api", "", None),
            ("/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy/api", "", None),
            ("https://member.example:6443/base/openapi/v2", "/base", Some("/openapi/v2")),
            ("https://member.example:6443//evil.example/", "", None),
            ("/base//evil.example/", "/base", None),
        ] {
            let found = below(&HeaderValue::from_static(location), "", origin(base_path));
            assert_eq!(found.as_ref().map(|found| found.to_str().unwrap()), expected, "{location}");
        }
    }

    #[test]
    fn redirects_elsewhere_never_pass() {
        for location in [
            "https://evil.example/",
            "//evil.example/",
            "/\\evil.example/",
            "http://member.example:6443/a",
            "https://member.example/a",
            "https://member.example:6443@evil.example/",
            "relative",
            "javascript:alert(1)",
            "/../../../api/v1/secrets",
            "/a/%2e%2e/b",
            "https://member.example:6443/a/../b",
            "https://member.example:6443\\@evil.example/",
            "https://user@member.example:6443/a",
            "https:/member.example:6443/a",
            "/\t/evil.example",
            "\t//evil.example",
            "/a/.\t./b",
            "/a b",
            "/a/..\t",
            "/a\\..\\..\\b",
            "/a/.%2E/b",
            "/a/%2e",
            "/a/..?x",
            "/a/..#x",
            "",
            "?x",
            "#x",
        ] {
            assert_eq!(rewritten(location, ""), Err(OutsideMember), "{location}");
        }
        assert_eq!(rewritten("/other", "/base"), Err(OutsideMember));
        assert_eq!(rewritten("/basement", "/base"), Err(OutsideMember));
    }
}
