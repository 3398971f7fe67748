//! As whom the gateway speaks to a member: always with the registered credential, and if the request asks for it, on behalf of
//! its caller.

use api::query;
use auth::User;
use http::header::{AUTHORIZATION, HeaderName};
use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::clusters::Cluster;

/// The caller's identity has no form as a header.
#[derive(Debug, PartialEq, Eq)]
pub struct NotAHeader;

static IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");
static IMPERSONATE_GROUP: HeaderName = HeaderName::from_static("impersonate-group");
const IMPERSONATE_EXTRA: &str = "impersonate-extra-";

/// Keys that a hub puts on the identity of a ServiceAccount. They mean nothing on a member, and an ordinary credential may not
/// impersonate them.
const HUBS_OWN_EXTRA: &str = "authentication.kubernetes.io/";

/// What a header name may hold beside letters and digits (RFC 9110 §5.6.2), without `%`, which introduces an escape
/// (`k8s.io/client-go/transport.headerKeyEscape`).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'!')
    .remove(b'#')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'*')
    .remove(b'+')
    .remove(b'-')
    .remove(b'.')
    .remove(b'^')
    .remove(b'_')
    .remove(b'`')
    .remove(b'|')
    .remove(b'~');

/// Sets the cluster's own credential. The caller's was removed when it was authenticated; a cluster that authenticates us by
/// client certificate needs no header.
///
/// With `impersonate=true` in the query, exactly so, the member is asked to act as `user` instead of as the credential itself:
/// that can only lower what the request may do there.
pub fn apply(cluster: &Cluster, query: Option<&str>, user: &User, headers: &mut HeaderMap) -> Result<(), NotAHeader> {
    if query.is_some() && query::first(query, "impersonate").as_deref() == Some("true") {
        impersonate(user, headers)?;
    }
    if let Some(authorization) = cluster.authorization() {
        headers.insert(AUTHORIZATION, authorization.clone());
    }
    Ok(())
}

fn impersonate(user: &User, headers: &mut HeaderMap) -> Result<(), NotAHeader> {
    headers.insert(IMPERSONATE_USER.clone(), value(&user.name)?);
    for group in &user.groups {
        headers.append(IMPERSONATE_GROUP.clone(), value(group)?);
    }
    for (key, values) in user.extra.iter().filter(|(key, _)| !key.starts_with(HUBS_OWN_EXTRA)) {
        let name = format!("{IMPERSONATE_EXTRA}{}", utf8_percent_encode(key, ESCAPED));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| NotAHeader)?;
        for text in values {
            headers.append(name.clone(), value(text)?);
        }
    }
    Ok(())
}

/// As bytes: names need not be ASCII.
fn value(text: &str) -> Result<HeaderValue, NotAHeader> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_| NotAHeader)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn user(name: &str, groups: &[&str], extra: &[(&str, &[&str])]) -> User {
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        User {
            name: name.into(),
            uid: Some("u-1".into()),
            groups: texts(groups),
            extra: extra.iter().map(|(key, values)| ((*key).to_owned(), texts(values))).collect::<BTreeMap<_, _>>(),
        }
    }

    fn lines(user: &User) -> Vec<(String, Vec<u8>)> {
        let mut headers = HeaderMap::new();
        impersonate(user, &mut headers).unwrap();
        headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
    }

    #[test]
    fn an_identity_is_one_line_per_group_and_value() {
        let jane = user("jörg", &["dev", "ops"], &[("example.org/Team=x", &["a", "b"])]);
        let line = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
        let expected = [
            line("impersonate-user", "jörg"),
            line("impersonate-group", "dev"),
            line("impersonate-group", "ops"),
            line("impersonate-extra-example.org%2fteam%3dx", "a"),
            line("impersonate-extra-example.org%2fteam%3dx", "b"),
        ];
        assert_eq!(lines(&jane), expected);
    }

    #[test]
    fn a_user_without_groups_has_no_empty_group() {
        assert_eq!(lines(&user("jane", &[], &[])).len(), 1);
    }

    #[test]
    fn what_the_hub_says_of_its_service_accounts_stays_there() {
        let bot = user("bot", &[], &[("authentication.kubernetes.io/pod-name", &["p"])]);
        assert_eq!(lines(&bot).len(), 1);
    }

    #[test]
    fn a_name_that_would_be_two_lines_is_refused() {
        let mut headers = HeaderMap::new();
        assert_eq!(impersonate(&user("a\nb", &[], &[]), &mut headers), Err(NotAHeader));
    }
}
