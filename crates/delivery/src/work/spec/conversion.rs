//! Makes of the written spec what delivery works with, or says which type is invalid.

use super::{ConditionRule, FeedbackRule, IgnoreField, JsonPath, ManifestWorkExecutor, UpdateStrategy};
use crate::executor::Executor;
use crate::strategy::{Ignore, ServerSide, Strategy, When};
use crate::work::kind;
use crate::{feedback, rules};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSpec {
    #[error("unknown update strategy {0:?}: there are Update, CreateOnly, ServerSideApply and ReadOnly")]
    Kind(String),
    #[error("unknown condition {0:?} of ignoreFields: there are OnSpokePresent and OnSpokeChange")]
    Condition(String),
    #[error("only support ServiceAccount type for the executor")]
    Executor,
    #[error("the executor service account is nil")]
    NoServiceAccount,
}

/// Longest type of a condition, in characters.
const TYPE: usize = 316;

/// Whether a condition may have that type: a name, with or without a domain and a slash before it.
fn is_type(text: &str) -> bool {
    let is_name = |name: &str, is_inner: fn(char) -> bool| {
        let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        name.chars().all(is_inner) && is_end(name.chars().next()) && is_end(name.chars().next_back())
    };
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_of_domain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let (domain, name) = text.split_once('/').map_or((None, text), |(domain, name)| (Some(domain), name));
    text.len() <= TYPE && is_name(name, is_of_name) && domain.is_none_or(|domain| is_name(domain, is_of_domain))
}

// === impl UpdateStrategy ===

impl UpdateStrategy {
    /// # Errors
    ///
    /// Fails for an unknown strategy, or an unknown condition of `ignoreFields`.
    pub fn strategy(&self) -> Result<Strategy, InvalidSpec> {
        match self.kind.as_str() {
            "" | "Update" => Ok(Strategy::Update),
            "CreateOnly" => Ok(Strategy::CreateOnly),
            "ReadOnly" => Ok(Strategy::ReadOnly),
            "ServerSideApply" => {
                let config = self.server_side_apply.clone().unwrap_or_default();
                let ignore = config.ignore_fields.into_iter().map(IgnoreField::ignore).collect::<Result<_, _>>()?;
                Ok(Strategy::ServerSideApply(ServerSide { manager: config.field_manager, force: config.force, ignore }))
            }
            other => Err(InvalidSpec::Kind(other.to_owned())),
        }
    }
}

// === impl IgnoreField ===

impl IgnoreField {
    fn ignore(self) -> Result<Ignore, InvalidSpec> {
        let when = match self.condition.as_str() {
            // The API's default.
            "" | "OnSpokePresent" => When::Present,
            "OnSpokeChange" => When::Changed,
            other => return Err(InvalidSpec::Condition(other.to_owned())),
        };
        Ok(Ignore { when, paths: self.json_paths, pointers: self.json_pointers, jq: self.jq_path_expressions })
    }
}

// === impl FeedbackRule ===

impl FeedbackRule {
    /// None for an unknown kind, which upstream skips.
    pub fn rule(&self) -> Option<feedback::Rule> {
        let named = |path: &JsonPath| feedback::Named {
            name: path.name.clone(),
            version: path.version.clone(),
            path: path.path.clone(),
        };
        match self.kind.as_str() {
            "WellKnownStatus" => Some(feedback::Rule::WellKnown),
            "JSONPaths" => Some(feedback::Rule::Paths(self.json_paths.iter().map(named).collect())),
            _ => None,
        }
    }
}

// === impl ConditionRule ===

impl ConditionRule {
    /// A rule for a reserved or invalid condition is reported as another condition: rules may not
    /// set ours, and the API would refuse an invalid one with the whole status.
    pub fn rule(&self) -> rules::Rule {
        let is_possible = is_type(&self.condition) && !kind::OURS.contains(&self.condition.as_str());
        let source = match self.kind.as_str() {
            _ if !is_possible => {
                let told: String = self.condition.chars().take(TYPE).collect();
                rules::Source::Invalid(format!("a rule cannot make the condition {told:?}"))
            }
            "WellKnownConditions" => rules::Source::WellKnown,
            "CEL" => rules::Source::Expressions(self.cel_expressions.clone()),
            other => rules::Source::Invalid(format!("unrecognized condition rule type {other}")),
        };
        let condition = if is_possible { &self.condition } else { rules::INVALID_RULE };
        rules::Rule {
            condition: condition.to_owned(),
            source,
            message: self.message.clone(),
            message_expression: self.message_expression.clone(),
        }
    }
}

// === impl ManifestWorkExecutor ===

impl ManifestWorkExecutor {
    /// # Errors
    ///
    /// Fails if it is not a `ServiceAccount`, or none is named.
    pub fn executor(&self) -> Result<Executor, InvalidSpec> {
        if self.subject.kind != "ServiceAccount" {
            return Err(InvalidSpec::Executor);
        }
        let account = self.subject.service_account.clone().ok_or(InvalidSpec::NoServiceAccount)?;
        Ok(Executor { namespace: account.namespace, name: account.name })
    }
}
