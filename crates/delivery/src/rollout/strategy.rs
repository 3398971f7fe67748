//! `RolloutStrategy` as it is written, and read.

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

/// Of each kind; some have no use for some fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Progress {
    /// How long one that succeeded is still busy: `5m`. `All` has no use for it.
    pub min_success_time: String,
    /// How long one may be progressing or failed; `None` or nothing: for ever.
    pub progress_deadline: String,
    /// How many may fail: a count, or a share like `25%`.
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

/// A strategy that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    pub(super) kind: Kind,
    pub(super) min_success_time: Duration,
    /// None: for ever.
    pub(super) progress_deadline: Option<Duration>,
    pub(super) max_failures: Size,
    pub(super) max_concurrency: Size,
    pub(super) mandatory: Vec<MandatoryDecisionGroup>,
}

// === impl Plan ===

impl Plan {
    /// # Errors
    ///
    /// A number or a duration cannot be read.
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
        // `All` looks at neither.
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

/// `progressDeadline`: hours, minutes and seconds, as in `1h30m`; `None` or nothing is for ever,
/// which is none.
///
/// # Errors
///
/// The text is none of these. It has to begin with a whole number and `h`, `m` or `s`: `0` and
/// `1.5h` are refused, as upstream.
pub fn deadline(text: &str) -> Result<Option<Duration>, InvalidStrategy> {
    if matches!(text, "" | "None") {
        return Ok(None);
    }
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let has_number = unit.len() < text.len() && unit.starts_with(['h', 'm', 's']);
    let span = has_number.then(|| durations::read(text)).flatten();
    span.map(Some).ok_or(InvalidStrategy::Deadline)
}
