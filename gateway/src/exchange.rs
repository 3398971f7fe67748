//! As whom a member sees a caller: by rules, as itself, or not at all.
//!
//! Without the gate `ClientIdentityPenetration` a member sees the registered credential, unless the
//! request says `impersonate=true`. With either, the rules of the cluster are asked, then those of
//! the operator's file; the first rule that matches wins, and where none does the caller acts as
//! itself. Order and meaning are those of the Go cluster-gateway; what it lets pass by mistake (a
//! pattern that does not compile, a mapping to nobody) is an error here when the rules are loaded.

mod configuration;
mod file;
mod front_proxy;
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

/// What the operator says about identities.
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
    /// What the registered credential may say of others.
    #[default]
    Permitted,
    /// `--karmada-forward-all-groups`
    Everything,
}

/// Decides for each request as whom it acts.
pub struct Exchange {
    /// For every request, not only for those that ask.
    always: bool,
    global: Arc<ArcSwap<Rules>>,
    disclosure: Arc<Disclosure>,
    forwarded: Forwarded,
}

/// As whom one request acts on its member.
#[derive(Debug, Clone)]
pub enum ActingAs {
    /// As the registered credential, with all its rights.
    Registered,
    /// As a rule says.
    Mapped(Arc<Impersonation>),
    /// As its caller, as far as members may see callers.
    Caller(Arc<Disclosure>),
    /// As its caller, as far as the member lets the registered credential say so.
    CallerWithin(Arc<Disclosure>, Within),
    /// As its caller, where the registered credential is that of a front proxy: members believe all
    /// it says.
    FrontProxied,
}

/// How the annotations of Secrets are read.
#[derive(Debug, Clone, Copy, Default)]
pub struct Annotations {
    /// Only with the gate: where callers do not penetrate, nothing is asked of the annotation's
    /// author.
    read: bool,
    privileged: bool,
}

/// One cluster's own rules. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub enum OwnRules {
    #[default]
    None,
    Valid(Rules),
    /// Why no caller may act on this cluster: rules that cannot be read might have refused some.
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

    /// Whether it matters what a registered credential may say of others.
    pub fn asks_members(&self) -> bool {
        self.forwarded == Forwarded::Permitted
    }

    /// As its caller, whatever the rules say, as far as the registered credential may say so.
    pub fn as_caller(&self, rights: Arc<Impersonable>) -> ActingAs {
        ActingAs::CallerWithin(Arc::clone(&self.disclosure), Within(rights))
    }

    /// As whom `user` acts on `cluster`; `asked`: the request says `impersonate=true`.
    ///
    /// # Errors
    /// The cluster's own rules are not valid; the text says which.
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
    /// What the registered credential may say of others, if that is looked at.
    pub fn within(&self) -> Option<&Arc<Impersonable>> {
        if let Self::CallerWithin(_, Within(rights)) = self { Some(rights) } else { None }
    }

    /// Adds what makes the member see `user` like this. The headers must hold no identity yet.
    pub fn apply(&self, user: &User, headers: &mut HeaderMap) -> Result<(), NotAHeader> {
        match self {
            Self::Registered => {}
            Self::Mapped(target) => target.apply(headers),
            Self::Caller(disclosure) => disclosure.apply(user, None, headers)?,
            Self::CallerWithin(disclosure, within) => disclosure.apply(user, Some(within), headers)?,
            Self::FrontProxied => front_proxy::apply(user, headers)?,
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
    /// Compiles the annotation `text` of `cluster`'s Secret. What is wrong or ignored goes to the
    /// log.
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
