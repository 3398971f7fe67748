//! Any forward proxy in a Secret: it reads the same again, and is shown without its password.

use api::secret::{ProxyCredentials, ProxyUrl};
use secrecy::{ExposeSecret as _, SecretString};

pub const WORDS: &[&str] = &[
    "http://",
    "https://",
    "socks5://",
    "socks5h://",
    "HTTP://",
    "jane",
    ":s3cr3t-pass",
    "@",
    "@proxy.example",
    ":3128",
    "[::1]",
    "10.0.0.1",
    "%40",
    "%3A",
    "%",
    "%zz",
    "%ff",
    "/",
    "?",
    "#",
    "\\",
    ":",
    "::",
    ":0",
    ":65536",
    "é",
    "%C3%A9",
    "xxxxx",
];

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(proxy) = ProxyUrl::parse(text) else { return };
    let again = ProxyUrl::parse(proxy.exposed().expose_secret());
    assert_eq!(again.as_ref(), Ok(&proxy), "written and read again");
    let plain = proxy.to_string();
    assert!(!plain.contains('@'), "{plain}");
    let redacted = ProxyUrl::parse(&proxy.redacted()).expect("a URL, as it was");
    assert_eq!((redacted.scheme, &redacted.host, redacted.port), (proxy.scheme, &proxy.host, proxy.port));
    let Some(login) = &proxy.credentials else { return };
    let kept = redacted.credentials.map(|kept| kept.user);
    assert!(kept.as_ref() == Some(&login.user) || login.user.is_empty(), "{kept:?}");
    if login.password.expose_secret().is_empty() {
        return;
    }
    // The shown URL does not depend on the password. (A search for the password finds it by chance:
    // `@proxy` is one, and stands before the host.)
    let mut other = proxy.clone();
    let password = SecretString::from(format!("another {}", login.password.expose_secret()));
    other.credentials = Some(ProxyCredentials { user: login.user.clone(), password });
    assert_eq!(
        (proxy.redacted(), plain, format!("{proxy:?}")),
        (other.redacted(), other.to_string(), format!("{other:?}"))
    );
}
