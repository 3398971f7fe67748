//! Any identity that a front proxy writes: the same user whatever came before on the connection,
//! and the one that Go reads.
//!
//! Input: requests' headers, `name: value` a line, with an empty line between requests.

use std::sync::Arc;

use auth::User;
use auth::edges::FrontProxied;
use http::{HeaderMap, HeaderName, HeaderValue};

pub const WORDS: &[&str] = &[
    "X-Remote-User: jane",
    "x-remote-user:",
    "X-Remote-Group: dev",
    "x-remote-group: system:masters",
    "X-Remote-Uid: 1",
    "x-remote-extra-a: b",
    "X-Remote-Extra-a%2fb: c",
    "x-remote-extra-",
    "\n",
    "\n\n",
    ": ",
    "|",
    "%c3%b6",
    "%zz",
    "é",
    "system:authenticated",
    "system:anonymous",
    "u",
    "k",
    "v",
];

pub fn check(input: &[u8]) {
    let mut connection = FrontProxied::default();
    let lines: Vec<_> = input.split(|byte| *byte == b'\n').collect();
    // Twice, so that each request also follows all others.
    for request in lines.split(|line| line.is_empty()).chain(lines.split(|line| line.is_empty())) {
        let headers = headers(request);
        let user = connection.user(&headers);
        assert_eq!(user, FrontProxied::default().user(&headers), "what came before changes who it is");
        match user {
            Ok(Some(user)) => compare(&user, &headers),
            Ok(None) => assert_eq!(first(&headers, "x-remote-user"), None),
            Err(_) => assert!(headers.values().any(|value| std::str::from_utf8(value.as_bytes()).is_err())),
        }
    }
}

fn headers(lines: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(&line[..colon]), value) {
            headers.append(name, value);
        }
    }
    headers
}

/// `requestHeaderAuthRequestHandler`: the first value of the name, if it says something.
fn first(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name).filter(|value| !value.is_empty())?;
    String::from_utf8(value.as_bytes().to_vec()).ok()
}

fn compare(user: &Arc<User>, headers: &HeaderMap) {
    assert_eq!(Some(&user.name), first(headers, "x-remote-user").as_ref());
    assert_eq!(user.uid, first(headers, "x-remote-uid"));
    let mut groups: Vec<_> = headers.get_all("x-remote-group").iter().map(HeaderValue::as_bytes).collect();
    groups.retain(|group| !group.is_empty());
    let added = b"system:authenticated".as_slice();
    if user.groups.len() > groups.len() {
        assert!(user.name != "system:anonymous" && !groups.contains(&added));
        groups.push(added);
    }
    assert_eq!(user.groups.iter().map(String::as_bytes).collect::<Vec<_>>(), groups);
    let extras = headers.iter().filter(|(name, _)| name.as_str().starts_with("x-remote-extra-")).count();
    assert_eq!(user.extra.values().map(Vec::len).sum::<usize>(), extras);
}
