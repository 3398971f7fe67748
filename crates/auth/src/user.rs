//! The identity of a caller, as the hub's RBAC sees it.
//!
//! Names and groups with a special meaning are those of
//! `k8s.io/apiserver/pkg/authentication/user/user.go` and
//! `…/authentication/serviceaccount/util.go`.

use std::collections::BTreeMap;

pub(crate) const ANONYMOUS: &str = "system:anonymous";
pub(crate) const ALL_AUTHENTICATED: &str = "system:authenticated";
pub(crate) const ALL_UNAUTHENTICATED: &str = "system:unauthenticated";
pub(crate) const MASTERS: &str = "system:masters";
pub(crate) const ALL_SERVICE_ACCOUNTS: &str = "system:serviceaccounts";
const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";
/// Longest namespace name (an RFC 1123 label) and longest ServiceAccount name (a DNS-1123
/// subdomain), in bytes.
const MAX_LABEL: usize = 63;
const MAX_SUBDOMAIN: usize = 253;
/// What an allocator adds to a text.
const ALLOCATION: usize = 16;
/// Fewest entries in a node of a B-tree that has several, and the memory of one.
const IN_NODE: usize = 5;
const NODE: usize = 11 * size_of::<(String, Vec<String>)>() + ALLOCATION;

/// The user of a request. Contains no secret.
///
/// `extra` keys are lower case. Groups keep the order in which the authenticator gave them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct User {
    pub name: String,
    pub uid: Option<String>,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// An owner ([`User::owner`]), for callers to read.
pub(crate) fn in_words(owner: &str) -> String {
    let namespace = owner.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|rest| rest.strip_suffix(':'));
    match namespace {
        Some(namespace) => format!("all ServiceAccounts of namespace {namespace:?}"),
        None => format!("user {owner:?}"),
    }
}

// === impl User ===

impl User {
    /// Most memory of one that a cache keeps. Active Directory stops at 1,015 groups, which fit
    /// with names of 70 bytes.
    pub(crate) const LARGEST_KEPT: usize = 128 << 10;

    pub(crate) fn anonymous() -> Self {
        Self { name: ANONYMOUS.to_owned(), groups: vec![ALL_UNAUTHENTICATED.to_owned()], ..Self::default() }
    }

    /// The namespace of a ServiceAccount; `None` for other users.
    pub fn service_account_namespace(&self) -> Option<&str> {
        service_account(&self.name).map(|(namespace, _)| namespace)
    }

    /// The name under which the user's requests in flight count. ServiceAccounts count together by
    /// namespace, because a user that may create one there can create any number. It is a slice of
    /// the name, so this costs a request nothing.
    pub fn owner(&self) -> &str {
        let accounts = self.name.strip_prefix(SERVICE_ACCOUNT_PREFIX).and_then(|rest| rest.split_once(':'));
        accounts.map_or(&self.name, |(_, account)| &self.name[..self.name.len() - account.len()])
    }

    /// Whether the user is not authenticated: the anonymous user, or a member of
    /// `system:unauthenticated`.
    pub fn is_anonymous(&self) -> bool {
        self.name == ANONYMOUS || self.is_in(ALL_UNAUTHENTICATED)
    }

    /// Whether one of the user's groups is `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Its memory. Reads the length of every text.
    pub fn bytes(&self) -> usize {
        let text = |text: &String| text.capacity() + ALLOCATION;
        let all = |texts: &Vec<String>| {
            texts.capacity() * size_of::<String>() + texts.iter().map(text).sum::<usize>() + ALLOCATION
        };
        let nodes = self.extra.len().div_ceil(IN_NODE) * NODE;
        let extra = self.extra.iter().map(|(key, values)| text(key) + all(values)).sum::<usize>();
        let uid = self.uid.as_ref().map_or(0, text);
        size_of::<Self>() + text(&self.name) + uid + all(&self.groups) + nodes + extra
    }

    /// Adds `system:authenticated` by the rule of
    /// `pkg/authentication/group/authenticated_group_adder.go`: not for the anonymous user, and not
    /// if the user has one of the two system groups already.
    pub(crate) fn with_authenticated_group(mut self) -> Self {
        if self.name != ANONYMOUS && !self.is_in(ALL_AUTHENTICATED) && !self.is_in(ALL_UNAUTHENTICATED) {
            self.groups.push(ALL_AUTHENTICATED.to_owned());
        }
        self
    }
}

/// Namespace and name of `system:serviceaccount:<namespace>:<name>`; `None` for any other user name
/// (`serviceaccount.SplitUsername`).
pub(crate) fn service_account(name: &str) -> Option<(&str, &str)> {
    let (namespace, name) = name.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let valid = namespace.len() <= MAX_LABEL && is_label(namespace) && is_subdomain(name);
    valid.then_some((namespace, name))
}

fn is_subdomain(name: &str) -> bool {
    name.len() <= MAX_SUBDOMAIN && name.split('.').all(is_label)
}

fn is_label(label: &str) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = label.as_bytes();
    bytes.first().is_some_and(edge) && bytes.last().is_some_and(edge) && bytes.iter().all(|b| edge(b) || *b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str, groups: &[&str]) -> User {
        User { name: name.to_owned(), groups: groups.iter().map(|&g| g.to_owned()).collect(), ..User::default() }
    }

    #[test]
    fn everybody_but_the_anonymous_is_authenticated() {
        assert_eq!(user("u", &["g"]).with_authenticated_group().groups, ["g", ALL_AUTHENTICATED]);
        assert_eq!(user("u", &[ALL_AUTHENTICATED]).with_authenticated_group().groups, [ALL_AUTHENTICATED]);
        assert_eq!(user("u", &[ALL_UNAUTHENTICATED]).with_authenticated_group().groups, [ALL_UNAUTHENTICATED]);
        assert_eq!(User::anonymous().with_authenticated_group().groups, [ALL_UNAUTHENTICATED]);
    }

    /// A text of one byte takes forty.
    #[test]
    fn short_texts_count_with_what_they_take_beside_their_letters() {
        let few = user("u", &[]).bytes();
        let groups = user("u", &["g"; 1000]);
        assert!((40_000..60_000).contains(&(groups.bytes() - few)), "{} bytes", groups.bytes());
        let extra = (0..1000).map(|key| (key.to_string(), vec![String::new(); 4])).collect();
        let extra = User { extra, ..user("u", &[]) }.bytes() - few;
        assert!((200_000..400_000).contains(&extra), "{extra} bytes");
        let roomy = User { name: String::with_capacity(5000), ..User::default() };
        assert!(roomy.bytes() > 5000, "{} bytes", roomy.bytes());
    }

    #[test]
    fn the_service_accounts_of_a_namespace_have_one_owner() {
        for (name, owner) in [
            ("system:serviceaccount:ci:bot", "system:serviceaccount:ci:"),
            ("system:serviceaccount:ci:other", "system:serviceaccount:ci:"),
            ("system:serviceaccount:c:bot", "system:serviceaccount:c:"),
            ("system:serviceaccount:ci", "system:serviceaccount:ci"),
            ("system:node:a", "system:node:a"),
            ("alice", "alice"),
            ("", ""),
        ] {
            assert_eq!(user(name, &[]).owner(), owner);
        }
    }

    #[test]
    fn owners_are_named_as_people_know_them() {
        for (name, words) in [
            ("system:serviceaccount:ci:bot", "all ServiceAccounts of namespace \"ci\""),
            ("system:node:a", "user \"system:node:a\""),
            ("a\"b", "user \"a\\\"b\""),
        ] {
            assert_eq!(in_words(user(name, &[]).owner()), words);
        }
    }

    #[test]
    fn service_account_names_are_told_from_look_alikes() {
        assert_eq!(service_account("system:serviceaccount:ci:bot.v1"), Some(("ci", "bot.v1")));
        for other in [
            "bot",
            "system:serviceaccount:ci",
            "system:serviceaccount:ci:",
            "system:serviceaccount::bot",
            "system:serviceaccount:ci:bot:x",
            "system:serviceaccount:c.i:bot",
            "system:serviceaccount:CI:bot",
        ] {
            assert_eq!(service_account(other), None, "{other}");
        }
    }
}
