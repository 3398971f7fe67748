//! Writes an identity into the headers of a front proxy
//! (`k8s.io/client-go/transport.SetAuthProxyHeaders`, which a hub's aggregator uses).

use auth::User;
use http::HeaderMap;
use http::header::HeaderName;

use super::impersonation::{NotAHeader, escaped, name, value};

static USER: HeaderName = HeaderName::from_static("x-remote-user");
static GROUP: HeaderName = HeaderName::from_static("x-remote-group");
static UID: HeaderName = HeaderName::from_static("x-remote-uid");
const EXTRA: &str = "x-remote-extra-";

/// Writes all attributes of `user`. `headers` must have no identity yet.
pub fn apply(user: &User, headers: &mut HeaderMap) -> Result<(), NotAHeader> {
    headers.insert(USER.clone(), name(&user.name)?);
    for group in user.groups.iter().filter(|group| !group.is_empty()) {
        headers.append(GROUP.clone(), value(group)?);
    }
    if let Some(uid) = user.uid.as_deref().filter(|uid| !uid.is_empty()) {
        headers.insert(UID.clone(), value(uid)?);
    }
    for (key, values) in &user.extra {
        let header = HeaderName::try_from(format!("{EXTRA}{}", escaped(key))).map_err(|_| NotAHeader)?;
        for text in values {
            headers.append(header.clone(), value(text)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(user: &User) -> Result<Vec<String>, NotAHeader> {
        let mut headers = HeaderMap::new();
        apply(user, &mut headers)?;
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        Ok(headers.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect())
    }

    #[test]
    fn everything_is_told_as_the_aggregator_does() {
        let user = User {
            name: "jürgen".to_owned(),
            uid: Some("7".to_owned()),
            groups: vec!["devs".to_owned(), String::new(), "system:authenticated".to_owned()],
            extra: [("example.org/a b".to_owned(), vec!["x".to_owned(), "y".to_owned()])].into(),
        };
        let expected = [
            "x-remote-user: jürgen",
            "x-remote-group: devs",
            "x-remote-group: system:authenticated",
            "x-remote-uid: 7",
            "x-remote-extra-example.org%2fa%20b: x",
            "x-remote-extra-example.org%2fa%20b: y",
        ];
        assert_eq!(applied(&user).unwrap(), expected);
    }

    #[test]
    fn what_would_arrive_as_somebody_else_is_not_sent() {
        let named = |name: &str| User { name: name.to_owned(), ..User::default() };
        let grouped = |group: &str| User { groups: vec![group.to_owned()], ..named("a") };
        for user in [named(""), named(" a"), named("a\n"), grouped("b "), grouped("\0")] {
            assert_eq!(applied(&user), Err(NotAHeader), "{user:?}");
        }
    }
}
