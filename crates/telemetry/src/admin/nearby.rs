//! Decides which clients may see names and addresses: those on the same machine or in the same pod
//! (`kubectl port-forward` counts), but not web pages in a browser there.

use std::net::IpAddr;

use http::uri::Authority;
use http::{Request, StatusCode, header};

use super::{Answer, PeerAddress, text};

/// The response to a client on another machine, or to a web page. `None` for other clients.
pub fn refuse_remote<B>(request: &Request<B>) -> Option<Answer> {
    let near = request
        .extensions()
        .get::<PeerAddress>()
        .is_some_and(|PeerAddress(asker)| asker.ip().to_canonical().is_loopback());
    // A page's script sends its origin, except to its own site. If it takes us for its own site,
    // its name is the host.
    let browsed = request.headers().contains_key(header::ORIGIN) || !names_this_machine(request);
    let why = "only from the loopback interface, by its address or as localhost, and not from a web page: use curl there, or kubectl \
               port-forward\n";
    (!near || browsed).then(|| text(StatusCode::FORBIDDEN, why))
}

/// Whether the request's host is an address or localhost. DNS may point any other name anywhere.
fn names_this_machine<B>(request: &Request<B>) -> bool {
    let Some(host) = request.headers().get(header::HOST) else { return true };
    let authority = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    authority.is_some_and(|authority| {
        let host = authority.host();
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        host.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
    })
}

/// Whether the client asks for JSON, with `?format=json` or `Accept`. Otherwise it gets a table for
/// people.
pub fn wants_json<B>(request: &Request<B>) -> bool {
    let by_query = request.uri().query().unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("format="));
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    by_query.map_or_else(|| accept.contains("application/json"), |format| format == "json")
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_the_same_machine_sees_details() {
        let from = |address: &str| {
            let mut request = Request::new(());
            request.extensions_mut().insert(PeerAddress(address.parse().expect("an address")));
            request
        };
        for near in ["127.0.0.1:5", "[::1]:5", "[::ffff:127.0.0.1]:5"] {
            assert!(refuse_remote(&from(near)).is_none(), "{near}");
        }
        for far in ["10.0.0.9:5", "[fd00::9]:5"] {
            assert_eq!(refuse_remote(&from(far)).expect("refused").status(), StatusCode::FORBIDDEN, "{far}");
        }
        let mut by_a_page = from("127.0.0.1:5");
        by_a_page.headers_mut().insert(header::ORIGIN, HeaderValue::from_static("https://evil.example"));
        assert!(refuse_remote(&by_a_page).is_some());
        assert!(refuse_remote(&Request::new(())).is_some(), "nobody knows who asks");
        let named = |host: &'static str| {
            let mut request = from("127.0.0.1:5");
            request.headers_mut().insert(header::HOST, HeaderValue::from_static(host));
            refuse_remote(&request).is_none()
        };
        for host in ["localhost", "localhost:8095", "127.0.0.1:8095", "[::1]:8095", "10.0.0.9"] {
            assert!(named(host), "{host}");
        }
        // Names of sites that could make a browser resolve them to this machine.
        for host in ["evil.example", "evil.example:8095", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(!named(host), "{host}");
        }
    }
}
