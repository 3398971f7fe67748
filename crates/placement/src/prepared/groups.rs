//! How decisions are grouped.

use crate::numbers;
use crate::objects::{GroupStrategy, IntOrString, ManagedCluster};
use crate::selector::{InvalidSelector, Selector};

/// Most groups and requirements of groups: all are checked for each cluster.
const MOST: usize = 1000;

#[derive(Debug)]
pub struct GroupRule {
    pub size: Size,
    /// In the order in which they take the clusters that they match.
    pub groups: Vec<DecisionGroup>,
}

#[derive(Debug)]
pub struct DecisionGroup {
    pub name: String,
    labels: Selector,
    claims: Selector,
}

/// Most clusters of a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Size {
    Count(i64),
    /// Of all chosen clusters.
    Percent(f64),
}

// === impl GroupRule ===

impl GroupRule {
    /// # Errors
    ///
    /// Fails if the size is neither a count nor a percentage, a selector cannot be used, or there
    /// are more than 1,000 groups and requirements.
    pub fn compile(strategy: &GroupStrategy) -> Result<Self, String> {
        let size = Size::read(&strategy.clusters_per_decision_group)?;
        let mut groups = Vec::new();
        for group in &strategy.decision_groups {
            let selector = &group.group_cluster_selector;
            let wrong = |error: InvalidSelector| error.to_string();
            groups.push(DecisionGroup {
                name: group.group_name.clone(),
                labels: Selector::compile(&selector.label_selector).map_err(wrong)?,
                claims: Selector::of_expressions(&selector.claim_selector.match_expressions).map_err(wrong)?,
            });
        }
        if groups.iter().map(|group| 1 + group.labels.rules() + group.claims.rules()).sum::<usize>() > MOST {
            return Err(format!("decisionGroups have more than {MOST} requirements"));
        }
        Ok(Self { size, groups })
    }
}

// === impl DecisionGroup ===

impl DecisionGroup {
    pub fn has(&self, cluster: &ManagedCluster) -> bool {
        self.labels.matches(&cluster.labels) && self.claims.matches(&cluster.claims)
    }
}

// === impl Size ===

impl Size {
    /// # Errors
    ///
    /// Fails if it is neither a count nor a percentage.
    pub fn read(value: &IntOrString) -> Result<Self, String> {
        match value {
            IntOrString::Int(count) => Ok(Self::Count(*count)),
            IntOrString::String(text) => {
                let percent = text.strip_suffix('%').and_then(|number| number.parse().ok());
                let wrong = || format!("{text} invalid type: string is not a percentage");
                percent.map(Self::Percent).ok_or_else(wrong)
            }
        }
    }

    /// The size for `total` clusters, percentages rounded up. `None` for no limit: the size is not
    /// above 0, or is above the total.
    pub fn within(self, total: usize) -> Option<usize> {
        let wanted = match self {
            Self::Count(count) => count,
            Self::Percent(percent) => numbers::truncated((percent / 100.0 * numbers::count(total)).ceil()),
        };
        usize::try_from(wanted).ok().filter(|wanted| (1..=total).contains(wanted))
    }
}
