//! Compiles a `ClusterGatewayProxyConfiguration`, YAML or JSON, into rules, and reports all its
//! mistakes at once.
//!
//! Unknown keys below `clientIdentityExchanger` are errors: a misspelt condition would otherwise be
//! ignored, and its rule would match all callers.

mod document;

use std::sync::Arc;

use net::words::cut;

use self::document::{Target, Written, WrittenSource, read};
use super::impersonation::Impersonation;
use super::pattern::Pattern;
use super::rule::{Outcome, Rule, Rules, Source};

/// Longest configuration, in bytes.
pub const LONGEST: usize = 256 * 1024;
/// Most patterns of one configuration: each takes memory, and more on every core.
const MOST_PATTERNS: usize = 1000;
/// Length of the problems that callers see, in bytes; the log has them all.
const BRIEF: usize = 600;
/// Longest part of a rule's name in messages, in characters.
const LONGEST_NAME: usize = 64;
const PRIVILEGED: &str = "PrivilegedIdentityExchanger";
const STATIC: &str = "StaticMappingIdentityExchanger";
const EXTERNAL: &str = "ExternalIdentityExchanger";

/// All mistakes of a configuration that is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct InvalidConfiguration(Vec<String>);

/// Rules, and remarks for the operator.
type Compiled = Result<(Rules, Vec<String>), InvalidConfiguration>;

/// Compiles rules, and collects problems and remarks.
struct Compiler<'a> {
    origin: Origin<'a>,
    patterns: usize,
    problems: Vec<String>,
    remarks: Vec<String>,
}

/// The source of the rules.
#[derive(Clone, Copy)]
enum Origin<'a> {
    Operator,
    Cluster { name: &'a str, privileged: bool },
}

/// The operator's rules, for all clusters.
pub fn of_operator(text: &str) -> Compiled {
    compile(text, Origin::Operator)
}

/// The rules in the annotation of `cluster`'s Secret, for this cluster alone. Privileged rules
/// count only with `privileged`.
pub fn of_cluster(text: &str, cluster: &str, privileged: bool) -> Compiled {
    compile(text, Origin::Cluster { name: cluster, privileged })
}

fn compile(text: &str, origin: Origin<'_>) -> Compiled {
    let written = read(text).map_err(|problem| InvalidConfiguration(vec![problem]))?;
    let mut compiler = Compiler { origin, patterns: 0, problems: Vec::new(), remarks: Vec::new() };
    let rules: Rules =
        written.into_iter().enumerate().filter_map(|(index, rule)| compiler.rule(index + 1, rule)).collect();
    if compiler.patterns > MOST_PATTERNS {
        compiler.problems.push(format!("more than {MOST_PATTERNS} patterns"));
    }
    if compiler.problems.is_empty() {
        Ok((rules, compiler.remarks))
    } else {
        Err(InvalidConfiguration(compiler.problems))
    }
}

// === impl Compiler ===

impl Compiler<'_> {
    /// `None` if the rule is invalid, matches no user, or is not allowed here.
    fn rule(&mut self, number: usize, written: Written) -> Option<Rule> {
        let name = written.name.as_deref().unwrap_or_default();
        let label = format!("rule {number} ({:?})", cut(name, LONGEST_NAME));
        let outcome = self.outcome(&label, written.r#type.as_deref(), written.target);
        let source = if let Some(source) = written.source {
            self.source(&label, source)
        } else {
            let remark =
                format!("{label} has no source and matches no caller: write `source: {{}}` to match every caller");
            self.remarks.push(remark);
            None
        };
        if let (Some(outcome), Origin::Cluster { privileged: false, .. }) = (&outcome, self.origin)
            && let Some(what) = privilege(outcome)
        {
            self.remarks.push(format!(
                "{label} is ignored: {what} in a Secret's annotation take effect only with \
                 --allow-privileged-annotations"
            ));
            return None;
        }
        Some(Rule { source: source?, outcome: outcome? })
    }

    fn outcome(&mut self, label: &str, kind: Option<&str>, target: Option<Target>) -> Option<Outcome> {
        let problem = match kind {
            Some(PRIVILEGED) => return Some(Outcome::Privileged),
            Some(STATIC) => match mapping(target) {
                Ok(mapping) => return Some(Outcome::Mapped(Arc::new(mapping))),
                Err(problem) => problem,
            },
            Some(EXTERNAL) => format!("type {EXTERNAL} is not implemented, here as in the Go cluster-gateway"),
            Some(other) => {
                format!("type {:?} is neither {PRIVILEGED} nor {STATIC}", cut(other, LONGEST_NAME))
            }
            None => format!("has no type: write {PRIVILEGED} or {STATIC}"),
        };
        self.problems.push(format!("{label}: {problem}"));
        None
    }

    fn source(&mut self, label: &str, written: WrittenSource) -> Option<Source> {
        let before = self.problems.len();
        let source = Source {
            user: written.user,
            group: written.group,
            uid: written.uid,
            cluster: match self.origin {
                Origin::Operator => written.cluster,
                Origin::Cluster { name, .. } => Some(name.to_owned()),
            },
            user_pattern: self.pattern(label, "userPattern", written.user_pattern),
            group_pattern: self.pattern(label, "groupPattern", written.group_pattern),
            cluster_pattern: self.pattern(label, "clusterPattern", written.cluster_pattern),
        };
        (self.problems.len() == before).then_some(source)
    }

    fn pattern(&mut self, label: &str, key: &str, text: Option<String>) -> Option<Pattern> {
        let text = text?;
        self.patterns += 1;
        if self.patterns > MOST_PATTERNS {
            return None;
        }
        let parsed = Pattern::parse(&text);
        parsed.map_err(|error| self.problems.push(format!("{label}: {key} {error}"))).ok()
    }
}

/// The privilege that a rule in a Secret must not grant. Members reserve `system:` for their own
/// users and groups, including `system:masters`, which may do everything.
fn privilege(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Privileged => Some("privileged rules"),
        Outcome::Mapped(target) => target.is_of_the_system().then_some("mappings to system: users or groups"),
    }
}

fn mapping(target: Option<Target>) -> Result<Impersonation, String> {
    let target = target.ok_or("has no target")?;
    if target.user.is_empty() {
        // Without a user, a member would treat the request as the credential's own, or refuse it.
        return Err("target needs a user: members impersonate no groups without a user".to_owned());
    }
    let uid = Some(&*target.uid).filter(|uid| !uid.is_empty());
    Impersonation::new(&target.user, &target.groups, uid)
        .map_err(|field| format!("target.{field} has an empty entry, or cannot be sent in a header"))
}

// === impl InvalidConfiguration ===

impl InvalidConfiguration {
    pub fn problems(&self) -> &[String] {
        &self.0
    }

    /// The text for a response.
    pub fn brief(&self) -> String {
        cut(&self.to_string(), BRIEF)
    }
}

#[cfg(test)]
mod tests;
