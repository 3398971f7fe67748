//! Any claims of a caller: none survives their removal, nothing else is changed by it, and who is
//! asked for is what Go reads.
//!
//! Input: a request's headers, `name: value` a line.

use auth::edges::{Claims, claims};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderName, HeaderValue};

pub const WORDS: &[&str] = &[
    "Authorization: Bearer t0ken",
    "authorization: bEARER",
    "Connection: Upgrade",
    "connection: keep-alive, upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.dDBrZW4, v4.channel.k8s.io",
    "base64url.bearer.authorization.k8s.io.",
    "v5.channel.k8s.io",
    "Impersonate-User: jane",
    "Impersonate-User: system:serviceaccount:ns:name",
    "impersonate-group: dev",
    "Impersonate-Uid: 1",
    "Impersonate-Extra-a%2fb: c",
    "Impersonate-Other: x",
    "X-Remote-User: jane",
    "x-remote-",
    "Accept: */*",
    "system:anonymous",
    "system:unauthenticated",
    "\n",
    ": ",
    ",",
    " ",
    "é",
];

const PROTOCOL: &str = "sec-websocket-protocol";
const BEARER: &[u8] = b"base64url.bearer.authorization.k8s.io.";

pub fn check(input: &[u8]) {
    let sent = headers(input);
    let mut left = sent.clone();
    let read = claims(&mut left);
    assert_eq!(left, without_claims(&sent));
    let mut again = left.clone();
    assert_eq!(claims(&mut again), Claims::default(), "a claim is left");
    assert_eq!(again, left);
    assert_eq!(read.bearer, bearer(&sent));
    if let Some(Ok(token)) = &read.protocol {
        let encoded = [BEARER, URL_SAFE_NO_PAD.encode(token).as_bytes()].concat();
        assert_eq!(bearers(&sent), [encoded]);
    }
    check_impersonation(&read, &sent);
}

fn headers(input: &[u8]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..colon]), value) {
            headers.append(name, value);
        }
    }
    headers
}

fn entries(headers: &HeaderMap) -> Vec<Vec<u8>> {
    let values = headers.get_all(PROTOCOL).iter();
    values.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')).map(|one| one.trim_ascii().to_vec()).collect()
}

fn bearers(headers: &HeaderMap) -> Vec<Vec<u8>> {
    entries(headers).into_iter().filter(|entry| entry.starts_with(BEARER)).collect()
}

/// What may go on.
fn without_claims(sent: &HeaderMap) -> HeaderMap {
    let is_claim =
        |name: &str| name == "authorization" || name.starts_with("x-remote-") || name.starts_with("impersonate-");
    let has_bearer = !bearers(sent).is_empty();
    let mut left = HeaderMap::new();
    for (name, value) in sent {
        if !(is_claim(name.as_str()) || has_bearer && name == PROTOCOL) {
            left.append(name, value.clone());
        }
    }
    let others: Vec<_> = entries(sent).into_iter().filter(|entry| !entry.starts_with(BEARER)).collect();
    if has_bearer && !others.is_empty() {
        left.insert(PROTOCOL, HeaderValue::from_bytes(&others.join(&b","[..])).expect("parts of one"));
    }
    left
}

/// `bearertoken.Authenticator.AuthenticateRequest`: at most three parts, of which the second is the
/// token.
fn bearer(sent: &HeaderMap) -> Option<Vec<u8>> {
    let line = sent.get("authorization")?.as_bytes().trim_ascii();
    let parts: Vec<_> = line.splitn(3, |byte| *byte == b' ').collect();
    let [scheme, token, ..] = parts[..] else { return None };
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then(|| token.to_vec())
}

/// Each value that is impersonated needs a permission of its own, and no value comes from anywhere
/// else.
fn check_impersonation(read: &Claims, sent: &HeaderMap) {
    let wanted: Vec<_> = sent.iter().filter(|(name, _)| name.as_str().starts_with("impersonate-")).collect();
    assert_eq!(read.impersonated.is_some(), !wanted.is_empty());
    let Some(Ok((user, permissions))) = &read.impersonated else { return };
    let count = |prefix: &str| wanted.iter().filter(|(name, _)| name.as_str().starts_with(prefix)).count();
    let known = ["impersonate-user", "impersonate-group", "impersonate-uid"];
    let is_known = |name: &str| known.contains(&name) || name.starts_with("impersonate-extra-");
    assert!(wanted.iter().all(|(name, _)| is_known(name.as_str())), "one was ignored");
    let first = |name: &str| sent.get(name).map(|value| value.as_bytes().to_vec()).filter(|value| !value.is_empty());
    assert_eq!(Some(user.name.as_bytes().to_vec()), first("impersonate-user"));
    assert_eq!(user.uid.as_ref().map(|uid| uid.as_bytes().to_vec()), first("impersonate-uid"));
    let groups = sent.get_all("impersonate-group").iter().count();
    assert_eq!(*permissions, 1 + groups + count("impersonate-extra-") + usize::from(user.uid.is_some()));
    let asked = sent.get_all("impersonate-group").iter().map(|value| value.as_bytes().to_vec());
    if groups > 0 {
        let given: Vec<_> = user.groups.iter().take(groups).map(|group| group.as_bytes().to_vec()).collect();
        assert_eq!(given, asked.collect::<Vec<_>>());
        // The one that the hub adds to everybody.
        assert!(user.groups.len() <= groups + 1);
    }
}
