//! Redirects of members.
//!
//! A `Location` is written for clients that speak to the member itself. Passed on unchanged, it
//! would send a client to the hub's root with its hub credential, or to any server a member names
//! (CVE-2022-3172).
//!
//! What passes has to mean the same to everybody who resolves it: to RFC 3986, and to browsers,
//! which take tabs and line ends out of a URL before they look at it, read `\` as `/`, and `%2e` as
//! a dot (WHATWG URL Standard, basic URL parser). So it is one absolute path of visible ASCII
//! without dot segments and backslashes; it is told below our own path, which leaves no authority
//! to be read into it.
//!
//! Beside an answer that is no redirect (RFC 9110 §10.2.2: 201, where it names what was made)
//! nobody follows it by himself, but clients use it for their next request. There it is told in the
//! same way, and left out where that is impossible: what was made is made. `Refresh` is left out
//! with all answers (`headers`); `Content-Location` and `Link` describe, and are passed on as they
//! are.

use std::borrow::Cow;

use api::cluster_name::ClusterName;
use api::route::ProxyRoute;
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::upstream::Target;

/// The redirect leads out of the member, or cannot be expressed below the proxy path.
#[derive(Debug, PartialEq, Eq)]
pub struct OutsideMember;

/// Rewrites a `Location` to stay below the proxy path of `cluster`. `base_path` is the member's own
/// prefix in its endpoint.
///
/// # Errors
/// A redirect cannot be rewritten. With any other status the header is removed then.
pub fn rewrite(
    status: StatusCode,
    headers: &mut HeaderMap,
    cluster: &ClusterName,
    base_path: &str,
    target: &Target,
) -> Result<(), OutsideMember> {
    let Some(location) = headers.get(LOCATION) else {
        return Ok(());
    };
    match below(location, cluster, base_path, target) {
        Some(rewritten) => headers.insert(LOCATION, rewritten),
        None if status.is_redirection() => return Err(OutsideMember),
        None => headers.remove(LOCATION),
    };
    Ok(())
}

fn below(location: &HeaderValue, cluster: &ClusterName, base_path: &str, target: &Target) -> Option<HeaderValue> {
    let location = location.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_graphic()))?;
    let reference = own_reference(location, target)?;
    let path = reference.split(['?', '#']).next().unwrap_or_default();
    // A client resolves `..` before it follows: out of the proxy path, to the hub itself.
    if path.contains('\\') || api::path::has_dot_segment(path) {
        return None;
    }
    let below = reference.strip_prefix(base_path).filter(|rest| rest.starts_with('/'))?;
    HeaderValue::from_str(&format!("{}{below}", ProxyRoute::prefix(cluster))).ok()
}

/// Path, query and fragment of a location on the member itself.
fn own_reference<'a>(location: &'a str, target: &Target) -> Option<Cow<'a, str>> {
    if location.starts_with('/') {
        // `//host/path` is another authority.
        return (!location.starts_with("//")).then_some(location.into());
    }
    let (scheme, rest) = location.split_once("://")?;
    let (authority, reference) = rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
    let same = scheme.eq_ignore_ascii_case(target.scheme.as_str())
        && authority.eq_ignore_ascii_case(target.authority.as_str());
    let rooted = || if reference.starts_with('/') { reference.into() } else { format!("/{reference}").into() };
    same.then(rooted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PREFIX: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy";

    fn rewritten(location: &str, base_path: &str) -> Result<String, OutsideMember> {
        let target = Target::sample();
        let mut headers = HeaderMap::new();
        headers.insert(LOCATION, location.parse().unwrap());
        let cluster = ClusterName::parse("c1").unwrap();
        rewrite(StatusCode::MOVED_PERMANENTLY, &mut headers, &cluster, base_path, &target)?;
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
        let target = Target::sample();
        let cluster = ClusterName::parse("c1").unwrap();
        for (location, expected) in [("/a", Some(format!("{PREFIX}/a"))), ("https://evil.example/", None)] {
            let mut headers = HeaderMap::new();
            headers.append(LOCATION, location.parse().unwrap());
            headers.append(LOCATION, "https://evil.example/second".parse().unwrap());
            rewrite(StatusCode::CREATED, &mut headers, &cluster, "", &target).unwrap();
            let told: Vec<_> = headers.get_all(LOCATION).iter().map(|told| told.to_str().unwrap()).collect();
            assert_eq!(told, expected.as_deref().as_slice());
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

    /// Where a browser on the hub goes with `location`: authority and path, as the WHATWG URL
    /// Standard has it for an `https` base (basic URL parser; its states are the steps below).
    /// Written for these tests, by the standard and not by the code above.
    fn followed(location: &str) -> (String, String) {
        let text: String =
            location.trim_matches(|c: char| c <= ' ').chars().filter(|c| !"\t\n\r".contains(*c)).collect();
        let slash = |c: char| c == '/' || c == '\\';
        let scheme = text.split_once(':').filter(|(scheme, _)| {
            scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        });
        let (authority, rest) = match scheme {
            // `https:x` is relative to the base, as `x` is; another scheme leads away in any case.
            Some((scheme, rest)) if !scheme.eq_ignore_ascii_case("https") => return (scheme.into(), rest.into()),
            Some((_, rest)) if rest.chars().take_while(|c| slash(*c)).count() >= 2 => authority_of(rest),
            Some((_, rest)) => ("hub".into(), rest.to_owned()),
            None if text.chars().take_while(|c| slash(*c)).count() >= 2 => authority_of(&text),
            None => ("hub".into(), text),
        };
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        let base = if authority == "hub" { format!("{PREFIX}/dir/page") } else { "/".to_owned() };
        let mut segments: Vec<&str> = if path.starts_with(slash) { Vec::new() } else { base[1..].split('/').collect() };
        segments.pop();
        let path = path.strip_prefix(slash).unwrap_or(path);
        let mut parts = path.split(slash).peekable();
        while let Some(part) = parts.next() {
            match part.to_ascii_lowercase().replace("%2e", ".").as_str() {
                ".." => {
                    segments.pop();
                    if parts.peek().is_none() {
                        segments.push("");
                    }
                }
                "." if parts.peek().is_none() => segments.push(""),
                "." => {}
                _ => segments.push(part),
            }
        }
        (authority, format!("/{}", segments.join("/")))
    }

    fn authority_of(rest: &str) -> (String, String) {
        let rest = rest.trim_start_matches(['/', '\\']);
        let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
        (rest[..end].into(), rest[end..].into())
    }

    #[test]
    fn the_tests_browser_goes_where_browsers_go() {
        for (location, authority, path) in [
            ("/a", "hub", "/a"),
            ("/\t/evil/x", "evil", "/x"),
            (" \\/evil\\x", "evil", "/x"),
            ("/a/.\t./%2e/b", "hub", "/b"),
            ("https:\\\\evil", "evil", "/"),
            ("/a/..", "hub", "/"),
        ] {
            assert_eq!(followed(location), (authority.to_owned(), path.to_owned()), "{location:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]

        /// Whatever passes stays on the hub and below the proxy path, for browsers too.
        #[test]
        fn what_passes_stays_below_the_proxy_path(
            parts in prop::collection::vec(prop_oneof![
                Just("/"), Just("//"), Just("\\"), Just("."), Just(".."), Just("%2e"), Just("%2E"), Just("\t"), Just(" "),
                Just("?"), Just("#"), Just("@"), Just(":"), Just("https://member.example:6443"), Just("https:"), Just("evil"),
                Just("a"), Just("/base"), Just("%09"), Just("%2f"), Just("%5c"),
            ], 0..9),
            base_path in prop_oneof![Just(""), Just("/base")],
        ) {
            if let Ok(told) = rewritten(&parts.concat(), base_path) {
                let (authority, path) = followed(&told);
                prop_assert_eq!(&authority, "hub", "{:?}", told);
                prop_assert!(path.starts_with(&format!("{PREFIX}/")), "{told:?} leads to {path}");
            }
        }
    }
}
