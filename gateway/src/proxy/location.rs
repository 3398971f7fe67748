//! Redirects of members.
//!
//! A `Location` is written for clients that speak to the member itself. Passed on unchanged, it would send a client to the
//! hub's root with its hub credential, or to any server a member names (CVE-2022-3172).

use api::cluster_name::ClusterName;
use api::route::ProxyRoute;
use http::header::LOCATION;
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use crate::upstream::Target;

/// The redirect leads out of the member, or cannot be expressed below the proxy path.
#[derive(Debug, PartialEq, Eq)]
pub struct LeadsAway;

/// Rewrites a redirect to stay below the proxy path of `cluster`. `base_path` is the member's own prefix in its endpoint.
pub fn rewrite(
    status: StatusCode,
    headers: &mut HeaderMap,
    cluster: &ClusterName,
    base_path: &str,
    target: &Target,
) -> Result<(), LeadsAway> {
    if !status.is_redirection() {
        return Ok(());
    }
    let Some(location) = headers.get(LOCATION) else {
        return Ok(());
    };
    let location = location.to_str().map_err(|_| LeadsAway)?;
    let path = own_path(location, target).ok_or(LeadsAway)?;
    if api::path::has_dot_segment(path.split(['?', '#']).next().unwrap_or_default()) {
        // A client resolves `..` before it follows: out of the proxy path, to the hub itself.
        return Err(LeadsAway);
    }
    let below = path.strip_prefix(base_path).filter(|rest| rest.starts_with('/')).ok_or(LeadsAway)?;
    let rewritten = HeaderValue::from_str(&format!("{}{below}", ProxyRoute::prefix(cluster))).map_err(|_| LeadsAway)?;
    headers.insert(LOCATION, rewritten);
    Ok(())
}

/// The path and query of a location on the member itself.
fn own_path<'a>(location: &'a str, target: &Target) -> Option<&'a str> {
    // `//host/path` is another authority; browsers read `/\` the same way.
    if location.starts_with('/') {
        return (!location.starts_with("//") && !location.starts_with("/\\")).then_some(location);
    }
    let uri = location.parse::<Uri>().ok()?;
    let same = uri.scheme() == Some(&target.scheme) && uri.authority() == Some(&target.authority);
    let rest = &location[location.find("://")? + 3..];
    same.then(|| rest.find('/').map_or("/", |start| &rest[start..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy";

    fn rewritten(location: &str, base_path: &str) -> Result<String, LeadsAway> {
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
        ] {
            assert_eq!(rewritten(location, ""), Err(LeadsAway), "{location}");
        }
        assert_eq!(rewritten("/other", "/base"), Err(LeadsAway));
        assert_eq!(rewritten("/basement", "/base"), Err(LeadsAway));
    }
}
