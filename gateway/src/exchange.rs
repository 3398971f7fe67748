//! Decides which identity a member sees for a caller: a rule's, the caller's own, or the registered
//! credential's.
//!
//! Without the gate `ClientIdentityPenetration`, a member sees the registered credential, unless
//! the request has `impersonate=true`. With either, the cluster's own rules come first, then the
//! rules of the operator's file. The first rule that matches decides; without a match, the caller
//! acts as itself. Order and meaning are those of the Go cluster-gateway, except for mistakes that
//! it lets pass (a pattern that does not compile, a mapping without a user): here these are errors
//! when the rules are loaded.

mod configuration;
mod file;
mod impersonation;
mod pattern;
mod rule;

use std::path::PathBuf;
use std::sync::Arc;

use api::impersonable::Impersonable;
use api::secret::IDENTITY_RULES_ANNOTATION;
use arc_swap::ArcSwap;
use auth::User;
use http::HeaderMap;

pub use self::file::{Metrics, RulesFile};
pub use self::impersonation::{Disclosure, Impersonation, NotAHeader, Within};
pub use self::rule::{Outcome, Rules};

/// The operator's options for identities.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// `--cluster-gateway-proxy-config`
    pub file: Option<PathBuf>,
    /// Gate `ClientIdentityPenetration`.
    pub gate: bool,
    /// `--allow-privileged-annotations`
    pub privileged_annotations: bool,
    /// `--impersonate-uid`
    pub uid: bool,
    /// `--impersonate-extra-filter`
    pub withheld_extra: Vec<String>,
    pub forwarded: Forwarded,
}

/// What members see of callers that act as themselves whatever the rules say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Forwarded {
    /// Only what the registered credential may impersonate.
    #[default]
    Permitted,
    /// `--karmada-forward-all-groups`
    Everything,
}

/// Decides the identity of each request.
pub struct Exchange {
    /// Whether the rules apply to every request, and not only to those with `impersonate=true`.
    always: bool,
    global: Arc<ArcSwap<Rules>>,
    disclosure: Arc<Disclosure>,
    forwarded: Forwarded,
}

/// The identity with which one request acts on its member.
#[derive(Debug, Clone)]
pub enum ActingAs {
    /// The registered credential, with all its permissions.
    Registered,
    /// The target of a rule.
    Mapped(Arc<Impersonation>),
    /// The caller, without attributes that the options withhold.
    Caller(Arc<Disclosure>),
    /// The caller, as far as the member lets the registered credential impersonate it.
    CallerWithin(Arc<Disclosure>, Within),
    /// The caller, by headers of a front proxy: members accept all that these contain.
    FrontProxied,
}

/// How the annotations of Secrets are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Annotations {
    /// True only with the gate: where callers do not penetrate, an invalid annotation must not make
    /// a cluster unusable.
    read: bool,
    privileged: bool,
}

/// One cluster's own rules. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub enum OwnRules {
    #[default]
    None,
    Valid(Rules),
    /// The reason why no caller may act on this cluster: rules that cannot be read might have
    /// refused some callers.
    Invalid(Arc<str>),
}

// === impl Options ===

impl Options {
    pub fn annotations(&self) -> Annotations {
        Annotations { read: self.gate, privileged: self.privileged_annotations }
    }
}

// === impl Exchange ===

impl Exchange {
    /// `global` is what [`RulesFile`] keeps current.
    pub fn new(options: &Options, global: Arc<ArcSwap<Rules>>) -> Self {
        let disclosure = Disclosure::new(options.uid, &options.withheld_extra);
        Self { always: options.gate, global, disclosure: Arc::new(disclosure), forwarded: options.forwarded }
    }

    /// Whether the permissions of registered credentials to impersonate are looked up.
    pub fn asks_members(&self) -> bool {
        self.forwarded == Forwarded::Permitted
    }

    /// The caller's identity, whatever the rules say, as far as the registered credential may
    /// impersonate it.
    pub fn as_caller(&self, rights: Arc<Impersonable>) -> ActingAs {
        ActingAs::CallerWithin(Arc::clone(&self.disclosure), Within(rights))
    }

    /// The identity with which `user` acts on `cluster`; `asked`: the request has
    /// `impersonate=true`.
    ///
    /// # Errors
    /// The cluster's own rules are invalid; the text has the reason.
    pub fn acting(&self, cluster: &str, own: &OwnRules, user: &User, asked: bool) -> Result<ActingAs, Arc<str>> {
        if !self.always && !asked {
            return Ok(ActingAs::Registered);
        }
        let own = match own {
            OwnRules::None => None,
            OwnRules::Valid(rules) => rules.find(user, cluster),
            OwnRules::Invalid(reason) => return Err(Arc::clone(reason)),
        };
        if let Some(outcome) = own {
            return Ok(outcome.into());
        }
        let global = self.global.load();
        Ok(global.find(user, cluster).map_or_else(|| ActingAs::Caller(Arc::clone(&self.disclosure)), ActingAs::from))
    }
}

// === impl ActingAs ===

impl ActingAs {
    /// What the registered credential may impersonate, if that limits the identity.
    pub fn within(&self) -> Option<&Arc<Impersonable>> {
        if let Self::CallerWithin(_, Within(rights)) = self { Some(rights) } else { None }
    }

    /// Replaces the identity in `headers` by one that claims only what `rights` allow. Nothing to
    /// do for identities without such a limit.
    pub fn narrow(&self, rights: Arc<Impersonable>, user: &User, headers: &mut HeaderMap) -> Result<(), NotAHeader> {
        let Self::CallerWithin(disclosure, _) = self else { return Ok(()) };
        impersonation::clear(headers);
        disclosure.apply(user, Some(&Within(rights)), headers)
    }

    /// Whether the headers of the identity are copies of the caller's texts, made for each request.
    pub fn copies_caller(&self) -> bool {
        matches!(self, Self::Caller(_) | Self::CallerWithin(..) | Self::FrontProxied)
    }

    /// Adds the headers that make the member see `user` like this. `headers` must have no identity
    /// yet.
    pub fn apply(&self, user: &User, headers: &mut HeaderMap) -> Result<(), NotAHeader> {
        match self {
            Self::Registered => {}
            Self::Mapped(target) => target.apply(headers),
            Self::Caller(disclosure) => disclosure.apply(user, None, headers)?,
            Self::CallerWithin(disclosure, within) => disclosure.apply(user, Some(within), headers)?,
            Self::FrontProxied => impersonation::front_proxied(user, headers)?,
        }
        Ok(())
    }
}

impl From<&Outcome> for ActingAs {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Privileged => Self::Registered,
            Outcome::Mapped(target) => Self::Mapped(Arc::clone(target)),
        }
    }
}

// === impl Annotations ===

impl Annotations {
    /// Compiles the annotation `text` of `cluster`'s Secret. Logs what is wrong or ignored.
    pub fn compile(self, cluster: &str, text: Option<&str>) -> OwnRules {
        let Some(text) = text.filter(|_| self.read) else { return OwnRules::None };
        match configuration::of_cluster(text, cluster, self.privileged) {
            Ok((rules, remarks)) => {
                for remark in remarks {
                    tracing::warn!(cluster, annotation = IDENTITY_RULES_ANNOTATION, "{remark}");
                }
                OwnRules::Valid(rules)
            }
            Err(error) => {
                let reason = format!("annotation {IDENTITY_RULES_ANNOTATION}: {}", error.brief());
                tracing::warn!(cluster, reason, "cluster unusable: correct its identity rules");
                OwnRules::Invalid(reason.into())
            }
        }
    }
}

#[cfg(test)]
mod tests;
