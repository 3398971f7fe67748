//! `RolloutStrategy` as written and as parsed; the decision groups of a Placement that it names.

use std::collections::BTreeSet;

use placement::durations;
use placement::objects::IntOrString;
use placement::prepared::Size;
use serde::Deserialize;
use time::Duration;

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RolloutStrategy {
    /// `All`, `Progressive` or `ProgressivePerGroup`.
    #[serde(rename = "type")]
    pub kind: String,
    pub all: Progress,
    pub progressive: Progress,
    pub progressive_per_group: Progress,
}

/// The settings of one kind; not every kind uses every field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Progress {
    /// How long a cluster that succeeded is still busy: `5m`. `All` does not use it.
    pub min_success_time: String,
    /// How long a cluster may be progressing or failed; `None` or empty for ever.
    pub progress_deadline: String,
    /// How many clusters may fail: a count, or a share like `25%`.
    pub max_failures: IntOrString,
    pub max_concurrency: IntOrString,
    pub mandatory_decision_groups: Vec<MandatoryDecisionGroup>,
}

/// A group that goes first: by its name, or else by its index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct MandatoryDecisionGroup {
    pub group_name: String,
    pub group_index: usize,
}

/// A decision group of a Placement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionGroup<'a> {
    /// From 0, as the decisions' label says.
    pub index: usize,
    /// Several groups may have one name, or none.
    pub name: &'a str,
    pub clusters: Vec<&'a str>,
}

/// A strategy that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidStrategy {
    #[error("incorrect rollout strategy type {0}")]
    Kind(String),
    #[error("invalid timeout format")]
    Deadline,
    #[error("minSuccessTime: invalid duration {0:?}")]
    MinSuccessTime(String),
    #[error("failed to parse the provided {field}: {why}")]
    Size { field: &'static str, why: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    All,
    Progressive,
    PerGroup,
}

/// A parsed strategy.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(super) kind: Kind,
    pub(super) min_success_time: Duration,
    /// `None` for ever.
    pub(super) progress_deadline: Option<Duration>,
    pub(super) max_failures: Size,
    pub(super) max_concurrency: Size,
    pub(super) mandatory: Vec<MandatoryDecisionGroup>,
}

// === impl MandatoryDecisionGroup ===

impl MandatoryDecisionGroup {
    fn means(&self, group: &DecisionGroup<'_>) -> bool {
        if self.group_name.is_empty() { self.group_index == group.index } else { self.group_name == group.name }
    }
}

// === impl Plan ===

impl Plan {
    /// # Errors
    ///
    /// Fails if the type, a number or a duration cannot be parsed.
    pub fn read(strategy: &RolloutStrategy) -> Result<Self, InvalidStrategy> {
        let (kind, progress) = match strategy.kind.as_str() {
            "All" => (Kind::All, &strategy.all),
            "Progressive" => (Kind::Progressive, &strategy.progressive),
            "ProgressivePerGroup" => (Kind::PerGroup, &strategy.progressive_per_group),
            other => return Err(InvalidStrategy::Kind(other.to_owned())),
        };
        let min_success_time = match progress.min_success_time.as_str() {
            _ if kind == Kind::All => Duration::ZERO,
            "" => Duration::ZERO,
            text => durations::read(text).ok_or_else(|| InvalidStrategy::MinSuccessTime(text.to_owned()))?,
        };
        // `All` uses neither.
        let size = |field, value: &IntOrString| match kind {
            Kind::All => Ok(Size::Count(0)),
            _ => Size::read(value).map_err(|why| InvalidStrategy::Size { field, why }),
        };
        Ok(Self {
            kind,
            min_success_time,
            progress_deadline: deadline(&progress.progress_deadline)?,
            max_failures: size("maxFailures", &progress.max_failures)?,
            max_concurrency: size("maxConcurrency", &progress.max_concurrency)?,
            mandatory: progress.mandatory_decision_groups.clone(),
        })
    }
}

/// All clusters of groups, sorted.
pub fn clusters<'g, 'a: 'g>(groups: impl Iterator<Item = &'g DecisionGroup<'a>>) -> BTreeSet<&'a str> {
    groups.flat_map(|group| group.clusters.iter().copied()).collect()
}

/// The named groups, and the others, each sorted by index. A name means all groups of that name.
pub fn split<'g, 'a>(
    groups: &'g [DecisionGroup<'a>],
    named: &[MandatoryDecisionGroup],
) -> (Vec<&'g DecisionGroup<'a>>, Vec<&'g DecisionGroup<'a>>) {
    let mut sorted: Vec<&DecisionGroup<'a>> = groups.iter().collect();
    sorted.sort_by_key(|group| group.index);
    sorted.into_iter().partition(|group| named.iter().any(|one| one.means(group)))
}

/// Parses `progressDeadline`: hours, minutes and seconds, as in `1h30m`. `None` or an empty text
/// means for ever, and returns `None`.
///
/// # Errors
///
/// Fails for any other text. It must begin with a whole number and `h`, `m` or `s`: `0` and `1.5h`
/// are refused, as upstream.
pub fn deadline(text: &str) -> Result<Option<Duration>, InvalidStrategy> {
    if matches!(text, "" | "None") {
        return Ok(None);
    }
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let has_number = unit.len() < text.len() && unit.starts_with(['h', 'm', 's']);
    let span = has_number.then(|| durations::read(text)).flatten();
    span.map(Some).ok_or(InvalidStrategy::Deadline)
}
