//! Access to the dashboard: only for clients that know the address that the program printed.
//!
//! The port is open to every user of this machine, and to every web site in the person's browser.
//! Other users do not know the token. A web site that makes its own name lead here (DNS rebinding)
//! sends its requests with that name, which is refused. The token is a part of the path and not a
//! cookie, because cookies go to all ports of a host (RFC 6265 §8.5), and so to other users'
//! servers.
//!
//! `localhost` is not accepted: browsers try `[::1]` first, where another user may listen on the
//! same port, and would get the token.
//!
//! When the program has ended, any other program may take its port while pages are still open.
//! Pages recognize their own program by its seal, which is in the page and which no request
//! reveals: see `page.js`.

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::HOST;
use http::{Method, Request, StatusCode};

/// Random bytes of a token.
const LENGTH: usize = 24;

/// The port that browsers omit from `http` URLs (RFC 9110 §4.2.1).
const HTTP: u16 = 80;

/// A random secret: the first part of each path, and the seal that each stream begins with.
pub struct Token(String);

/// Decides which requests are answered.
pub struct Door {
    token: Token,
    seal: Token,
    port: u16,
}

/// A refused request: the status and the text of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused(pub StatusCode, pub &'static str);

// === impl Token ===

impl Token {
    pub fn random() -> Result<Self, Unspecified> {
        let mut bytes = [0; LENGTH];
        rand::fill(&mut bytes)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Compares in a time that does not reveal how much of `other` is right.
    fn is(&self, other: &str) -> bool {
        verify_slices_are_equal(self.0.as_bytes(), other.as_bytes()).is_ok()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

// === impl Door ===

impl Door {
    pub fn new(token: Token, seal: Token, port: u16) -> Self {
        Self { token, seal, port }
    }

    /// The secret that only this program and its pages know.
    pub fn seal(&self) -> &str {
        &self.seal.0
    }

    /// The URL for a browser.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.token.0)
    }

    /// The path after the token, if the request may be answered.
    pub fn admit<'a, B>(&self, request: &'a Request<B>) -> Result<&'a str, Refused> {
        if *request.method() != Method::GET {
            return Err(Refused(StatusCode::METHOD_NOT_ALLOWED, "Only GET is allowed here."));
        }
        if !self.is_ours(request) {
            return Err(Refused(
                StatusCode::MISDIRECTED_REQUEST,
                "Open the address that `kubectl clusters dashboard` printed, with 127.0.0.1 and the same port: a \
                 forwarded port (ssh -L) needs the same number on both ends.",
            ));
        }
        let path = request.uri().path().strip_prefix('/').unwrap_or_default();
        match path.split_once('/') {
            Some((token, rest)) if self.token.is(token) => Ok(rest),
            _ => Err(Refused(StatusCode::FORBIDDEN, "Open the address that `kubectl clusters dashboard` printed.")),
        }
    }

    /// Whether the request names `127.0.0.1`, and not a name that another party can make lead here.
    fn is_ours<B>(&self, request: &Request<B>) -> bool {
        let mut hosts = request.headers().get_all(HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        self.is_own(host.as_bytes())
            && request.uri().authority().is_none_or(|authority| self.is_own(authority.as_str().as_bytes()))
    }

    fn is_own(&self, host: &[u8]) -> bool {
        let bare = "127.0.0.1";
        host == format!("{bare}:{}", self.port).as_bytes() || (self.port == HTTP && host == bare.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(port: u16) -> Door {
        Door::new(Token("secret".to_owned()), Token("seal".to_owned()), port)
    }

    fn ask(method: &str, uri: &str, hosts: &[&str]) -> Result<String, StatusCode> {
        ask_at(4000, method, uri, hosts)
    }

    fn ask_at(port: u16, method: &str, uri: &str, hosts: &[&str]) -> Result<String, StatusCode> {
        let request = Request::builder().method(method).uri(uri);
        let request = hosts.iter().fold(request, |request, host| request.header(HOST, *host)).body(()).unwrap();
        door(port).admit(&request).map(str::to_owned).map_err(|refused| refused.0)
    }

    #[test]
    fn who_knows_the_address_is_answered() {
        let host = ["127.0.0.1:4000"];
        assert_eq!(ask("GET", "/secret/", &host), Ok(String::new()));
        assert_eq!(ask("GET", "/secret/clusters/berlin?x=y", &host), Ok("clusters/berlin".to_owned()));
        assert_eq!(door(4000).address(), "http://127.0.0.1:4000/secret/");
    }

    #[test]
    fn browsers_leave_the_port_of_http_out() {
        for host in ["127.0.0.1", "127.0.0.1:80"] {
            assert_eq!(ask_at(80, "GET", "/secret/", &[host]), Ok(String::new()), "{host}");
        }
        assert_eq!(ask_at(80, "GET", "/secret/", &["localhost"]), Err(StatusCode::MISDIRECTED_REQUEST));
    }

    /// A server on `[::1]` would get the token, because the address would be the same.
    #[test]
    fn a_name_with_two_addresses_is_none_of_ours() {
        for host in ["localhost:4000", "[::1]:4000", "ip6-localhost:4000"] {
            assert_eq!(ask("GET", "/secret/", &[host]), Err(StatusCode::MISDIRECTED_REQUEST), "{host}");
        }
    }

    #[test]
    fn other_users_of_the_machine_are_not() {
        for path in
            ["/", "/secret", "/secre/", "/secretx/", "/Secret/", "//secret/", "/x/secret/", "/page.css", "/?secret/"]
        {
            assert_eq!(ask("GET", path, &["127.0.0.1:4000"]), Err(StatusCode::FORBIDDEN), "{path}");
        }
    }

    #[test]
    fn web_sites_whose_name_leads_here_are_not() {
        for host in
            ["evil.example:4000", "127.0.0.1", "127.0.0.1:4001", "127.0.0.1.evil.example:4000", "", "LOCALHOST:4000"]
        {
            assert_eq!(ask("GET", "/secret/", &[host]), Err(StatusCode::MISDIRECTED_REQUEST), "{host}");
        }
        assert_eq!(ask("GET", "/secret/", &[]), Err(StatusCode::MISDIRECTED_REQUEST));
        let both = ["127.0.0.1:4000", "evil.example:4000"];
        assert_eq!(ask("GET", "/secret/", &both), Err(StatusCode::MISDIRECTED_REQUEST));
        let absolute = ask("GET", "http://evil.example:4000/secret/", &["127.0.0.1:4000"]);
        assert_eq!(absolute, Err(StatusCode::MISDIRECTED_REQUEST));
    }

    #[test]
    fn nothing_is_done_for_anybody() {
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"] {
            assert_eq!(ask(method, "/secret/", &["127.0.0.1:4000"]), Err(StatusCode::METHOD_NOT_ALLOWED), "{method}");
        }
    }

    #[test]
    fn tokens_are_long_and_differ() {
        let [one, other] = [Token::random().unwrap(), Token::random().unwrap()];
        assert!(one.0.len() == 32 && one.0 != other.0 && one.is(&one.0) && !one.is(&other.0));
        assert_eq!(format!("{one:?}"), "Token");
    }
}
