//! What the environment says of proxies, in the meaning that Go's programs give it
//! (`golang.org/x/net/http/httpproxy`): `HTTPS_PROXY` and `NO_PROXY`, each in lower case if there
//! is none in upper case. Links are TLS, so `HTTP_PROXY` is about others.

use std::path::PathBuf;

use api::secret::ProxyUrl;

use super::Outbound;
use super::bypass::Bypass;

const PROXY: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const BYPASS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// `variable` looks up a variable. The error names the variable that is wrong, without its value:
/// it may hold a password.
pub fn read(variable: impl Fn(&str) -> Option<String>, ca: Option<PathBuf>) -> Result<Outbound, String> {
    let first = |names: [&'static str; 2]| {
        names.into_iter().find_map(|name| variable(name).filter(|value| !value.is_empty()).map(|value| (name, value)))
    };
    let Some((name, url)) = first(PROXY) else { return Ok(Outbound::direct()) };
    // Without a scheme it is an HTTP proxy.
    let url = if url.contains("://") { url } else { format!("http://{url}") };
    let proxy = ProxyUrl::parse(&url).map_err(|error| format!("{name}: {error}"))?;
    let bypass = first(BYPASS).map_or_else(String::new, |(_, value)| value);
    Ok(Outbound::with(proxy, name, Bypass::of_environment(&bypass), ca))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(variables: &[(&str, &str)]) -> Result<Outbound, String> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        read(variable, None)
    }

    #[test]
    fn upper_case_comes_first_and_http_proxy_is_about_others() {
        let proxy = |variables: &[(&str, &str)]| read_from(variables).unwrap().to_string();
        assert_eq!(proxy(&[("HTTPS_PROXY", "http://a:1"), ("https_proxy", "http://b:1")]), "http://a:1 (HTTPS_PROXY)");
        assert_eq!(proxy(&[("HTTPS_PROXY", ""), ("https_proxy", "b:3128")]), "http://b:3128 (https_proxy)");
        assert_eq!(proxy(&[("HTTP_PROXY", "http://a:1"), ("NO_PROXY", "x")]), "none");
    }

    #[test]
    fn hosts_of_no_proxy_are_reached_directly() {
        let outbound = read_from(&[("https_proxy", "socks5://u:pw@p:1"), ("no_proxy", "tunnel.example")]).unwrap();
        assert!(!outbound.is_proxied("tunnel.example", 8091) && outbound.is_proxied("other.example", 8091));
        assert!(outbound.proxy("tunnel.example", 8091).unwrap().is_none());
        assert_eq!(outbound.proxy("other.example", 8091).unwrap().unwrap().to_string(), "socks5://p:1");
    }

    #[test]
    fn a_wrong_url_is_named_without_its_password() {
        let error = read_from(&[("HTTPS_PROXY", "ftp://user:hunter2@p")]).unwrap_err();
        assert!(error.starts_with("HTTPS_PROXY: ") && !error.contains("hunter2"), "{error}");
    }
}
