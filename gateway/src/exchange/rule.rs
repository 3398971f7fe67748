//! Compiled rules, and the choice of the first that matches.

use std::sync::Arc;

use auth::User;

use super::impersonation::Impersonation;
use super::pattern::Pattern;

/// Rules in order. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Rules(Arc<[Rule]>);

/// One rule.
#[derive(Debug)]
pub struct Rule {
    pub(super) source: Source,
    pub(super) outcome: Outcome,
}

/// The identity that a rule gives to a caller.
#[derive(Debug)]
pub enum Outcome {
    /// The registered credential acts as itself.
    Privileged,
    /// Another user, the same for all callers.
    Mapped(Arc<Impersonation>),
}

/// The callers that a rule matches: all its conditions must hold. Without conditions, it matches
/// all callers.
#[derive(Debug, Default)]
pub struct Source {
    pub user: Option<String>,
    pub group: Option<String>,
    pub uid: Option<String>,
    pub cluster: Option<String>,
    pub user_pattern: Option<Pattern>,
    /// Matches if any group matches.
    pub group_pattern: Option<Pattern>,
    pub cluster_pattern: Option<Pattern>,
}

// === impl Rules ===

impl Rules {
    /// The outcome of the first rule that matches `user` on `cluster`.
    pub fn find(&self, user: &User, cluster: &str) -> Option<&Outcome> {
        self.0.iter().find(|rule| rule.source.matches(user, cluster)).map(|rule| &rule.outcome)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<T: IntoIterator<Item = Rule>>(rules: T) -> Self {
        Self(rules.into_iter().collect())
    }
}

// === impl Source ===

impl Source {
    /// Comparisons first: they are cheaper than patterns.
    fn matches(&self, user: &User, cluster: &str) -> bool {
        let equals = |wanted: &Option<String>, is: &str| wanted.as_deref().is_none_or(|wanted| wanted == is);
        let like = |pattern: &Option<Pattern>, is: &str| pattern.as_ref().is_none_or(|pattern| pattern.matches(is));
        equals(&self.user, &user.name)
            && equals(&self.uid, user.uid.as_deref().unwrap_or_default())
            && equals(&self.cluster, cluster)
            && self.group.as_deref().is_none_or(|group| user.is_in(group))
            && like(&self.user_pattern, &user.name)
            && like(&self.cluster_pattern, cluster)
            && (self.group_pattern.as_ref())
                .is_none_or(|pattern| user.groups.iter().any(|group| pattern.matches(group)))
    }
}
