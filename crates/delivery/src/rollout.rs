//! Rollout of a template over the clusters of a Placement: all at once, some at a time, or group by
//! group (`RolloutStrategy` of Open Cluster Management's API v1.3).
//!
//! The caller passes the state of each work that has the new template already; other clusters have
//! no state. It gives the template to the clusters [to roll out](Rollout::to_roll_out), and calls
//! again when something changes, at the latest at [`Rollout::recheck_at`].

mod state;
mod steps;
mod strategy;

pub use self::state::{Existing, RolloutStatus, state};
pub use self::strategy::{DecisionGroup, InvalidStrategy, MandatoryDecisionGroup, Progress, RolloutStrategy, deadline};

use placement::prepared::Size;
use time::OffsetDateTime;

use self::steps::{Waits, per_cluster, per_group};
use self::strategy::{Kind, Plan, clusters, split};

/// What to do next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rollout<'a> {
    /// Clusters that are busy with the template, or get it now.
    pub to_roll_out: Vec<Due<'a>>,
    /// Clusters whose time is over.
    pub timed_out: Vec<&'a str>,
    /// Clusters that have a work and are no longer chosen.
    pub removed: Vec<&'a str>,
    /// Whether more clusters failed than may: no other cluster starts.
    pub has_too_many_failures: bool,
    /// When the first wait ends.
    pub recheck_at: Option<OffsetDateTime>,
}

/// A cluster that should have the template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due<'a> {
    pub cluster: &'a str,
    pub state: RolloutStatus,
}

/// Determines which clusters are next.
///
/// # Errors
///
/// Fails if the type, a number or a duration of the strategy cannot be parsed.
pub fn roll_out<'a>(
    strategy: &RolloutStrategy,
    groups: &'a [DecisionGroup<'a>],
    existing: &'a [Existing<'a>],
    now: OffsetDateTime,
) -> Result<Rollout<'a>, InvalidStrategy> {
    let plan = Plan::read(strategy)?;
    let all = clusters(groups.iter());
    let is_here = |one: &&Existing<'a>| all.contains(one.cluster);
    let (mut current, removed): (Vec<&Existing<'a>>, Vec<_>) = existing.iter().partition(is_here);
    current.sort_by_key(|one| one.cluster);
    let mut removed: Vec<&str> = removed.into_iter().map(|one| one.cluster).collect();
    removed.sort_unstable();
    let waits = Waits { success: plan.min_success_time, deadline: plan.progress_deadline, now };
    Ok(Rollout { removed, ..run(&plan, groups, &current, &waits) })
}

fn run<'a>(plan: &Plan, groups: &'a [DecisionGroup<'a>], current: &[&'a Existing<'a>], waits: &Waits) -> Rollout<'a> {
    let all = clusters(groups.iter());
    if plan.kind == Kind::All {
        return per_cluster(&all, all.len(), all.len(), waits, current);
    }
    let (mandatory, rest) = split(groups, &plan.mandatory);
    // The mandatory groups tolerate no failure, whatever the others do.
    if !mandatory.is_empty() {
        let first = per_group(&mandatory, Size::Count(0), waits, current);
        if !first.to_roll_out.is_empty() || !first.timed_out.is_empty() {
            return first;
        }
    }
    if plan.kind == Kind::PerGroup {
        return per_group(&rest, plan.max_failures, waits, current);
    }
    let others = clusters(rest.into_iter());
    let concurrency = plan.max_concurrency.within(others.len()).unwrap_or(others.len());
    let failures = plan.max_failures.within(all.len()).unwrap_or(0);
    per_cluster(&others, concurrency, failures, waits, current)
}
