//! A run: filters, scores, the choice, its groups.

use std::cmp::Reverse;

use crate::candidates::{Candidates, candidates};
use crate::conditions::{Counts, Misconfigured, misconfigured, satisfied};
use crate::input::{Input, Own};
use crate::objects::ManagedCluster;
use crate::outcome::{Candidate, Filter, Group, Outcome, Scored, Warning};
use crate::predicates::{Predicates, RUN, TooCostly};
use crate::prepared::GroupRule;
use crate::prioritizers::scored;
use crate::slices::{SLICE, groups};
use crate::taints::{Tolerance, earlier, tolerance};

/// Most decisions of a Placement: each is written, and named in the Placement's status.
const MOST_OBJECTS: usize = 1000;

/// The results of a run so far.
struct Run<'i, 'a> {
    input: &'i Input<'a>,
    own: Own<'a>,
    candidates: Vec<Candidate<'a>>,
    prioritizers: Vec<Scored<'a>>,
    warnings: Vec<Warning<'a>>,
    chosen: Vec<&'a ManagedCluster>,
    unscheduled: usize,
    /// Steps that predicates took.
    steps: u64,
}

/// Chooses the clusters of `input`'s Placement, and says why.
///
/// The result depends only on the input, and not on the order of its lists. It ignores whether the
/// Placement is [at rest](crate::Prepared::is_at_rest).
pub fn schedule<'a>(input: &Input<'a>) -> Outcome<'a> {
    let Candidates { bindings, sets, clusters, unreadable } = candidates(input);
    let candidates = clusters.into_iter().map(|cluster| Candidate { cluster, filtered_by: None, total: 0 }).collect();
    let mut run = Run {
        input,
        own: Own::of(input),
        candidates,
        prioritizers: Vec::new(),
        warnings: Vec::new(),
        chosen: Vec::new(),
        unscheduled: 0,
        steps: 0,
    };
    let unreadable = unreadable.map_or(Ok(()), |why| Err(Misconfigured { plugin: "", why }));
    let ran = unreadable.and_then(|()| run.run());
    // Upstream groups whatever was chosen, so mistakes in groups are reported before the rest.
    let rule = input.placement.groups.as_ref().map_err(|why| Misconfigured { plugin: "", why: why.clone() });
    let requeue_at = if ran.is_ok() { run.first_end() } else { None };
    let grouped = rule.and_then(|rule| ran.map(|()| rule)).and_then(|rule| grouped(&run.chosen, rule));
    let counts = Counts {
        asked: &input.placement.cluster_sets,
        eligible: &sets,
        bindings,
        candidates: run.candidates.len(),
        chosen: run.chosen.len(),
        unscheduled: run.unscheduled,
    };
    Outcome {
        conditions: [
            misconfigured(grouped.as_ref().err(), input.placement, input.decided_generation),
            satisfied(&counts),
        ],
        groups: grouped.ok(),
        chosen: run.chosen.iter().map(|cluster| cluster.name.as_str()).collect(),
        unscheduled: run.unscheduled,
        candidates: run.candidates,
        prioritizers: run.prioritizers,
        warnings: run.warnings,
        steps: run.steps,
        requeue_at,
    }
}

/// The groups, unless they take more objects than any reader reads.
fn grouped<'a>(chosen: &[&'a ManagedCluster], rule: &'a GroupRule) -> Result<Vec<Group<'a>>, Misconfigured> {
    let groups = groups(chosen, rule);
    let objects: usize = groups.iter().map(|group| group.clusters.len().div_ceil(SLICE).max(1)).sum();
    let why = || format!("the groups take {objects} decisions, of which there can be {MOST_OBJECTS}: make them larger");
    if objects > MOST_OBJECTS { Err(Misconfigured { plugin: "", why: why() }) } else { Ok(groups) }
}

// === impl Run ===

impl Run<'_, '_> {
    /// The steps in upstream's order: a mistake in a step is found only when the step is reached,
    /// and in a filter only when there is a cluster for it.
    fn run(&mut self) -> Result<(), Misconfigured> {
        self.filter_by_predicates()?;
        self.filter_by_taints()?;
        self.score()?;
        self.choose();
        Ok(())
    }

    fn filter_by_predicates(&mut self) -> Result<(), Misconfigured> {
        if self.candidates.is_empty() {
            return Ok(());
        }
        let wrong = |why: &str| Misconfigured { plugin: "Predicate", why: why.to_owned() };
        let predicates = self.input.placement.predicates.as_ref().map_err(|why| wrong(why))?;
        let mut predicates = Predicates::new(predicates, self.input.scores);
        for candidate in &mut self.candidates {
            let passed = predicates.pass(candidate.cluster);
            self.steps = predicates.steps();
            let has_passed = passed.map_err(|TooCostly| {
                wrong(&format!("the predicates take more than {RUN} steps on all clusters: make them fewer, or their expressions cheaper"))
            })?;
            candidate.filtered_by = (!has_passed).then_some(Filter::Predicate);
        }
        Ok(())
    }

    fn filter_by_taints(&mut self) -> Result<(), Misconfigured> {
        let mut left = self.candidates.iter_mut().filter(|candidate| candidate.filtered_by.is_none()).peekable();
        if left.peek().is_none() {
            return Ok(());
        }
        let wrong = |why: &&str| Misconfigured { plugin: "TaintToleration", why: (*why).to_owned() };
        let tolerations = self.input.placement.tolerations.as_ref().map_err(wrong)?;
        for candidate in left.filter(|candidate| !candidate.cluster.taints.is_empty()) {
            let is_decided = self.own.has(&candidate.cluster.name);
            let found = tolerance(candidate.cluster, tolerations, is_decided, self.input.now);
            candidate.filtered_by = (found == Tolerance::No).then_some(Filter::TaintToleration);
        }
        Ok(())
    }

    fn score(&mut self) -> Result<(), Misconfigured> {
        let prioritizers = self.input.placement.prioritizers.as_ref();
        let prioritizers = prioritizers.map_err(|why| Misconfigured { plugin: "", why: why.clone() })?;
        for weighted in prioritizers {
            let scored = scored(weighted, &self.candidates, &self.own, self.input, &mut self.warnings);
            for (candidate, score) in self.candidates.iter_mut().zip(&scored.scores) {
                let weighted = score.unwrap_or(0).saturating_mul(i64::from(scored.weight));
                candidate.total = candidate.total.saturating_add(weighted);
            }
            self.prioritizers.push(scored);
        }
        Ok(())
    }

    /// Chooses the best of the remaining clusters; of equal ones, the first by name.
    fn choose(&mut self) {
        let left = self.candidates.iter().filter(|candidate| candidate.filtered_by.is_none());
        let mut left: Vec<&Candidate<'_>> = left.collect();
        // They are sorted by name, and this sort is stable.
        left.sort_by_key(|candidate| Reverse(candidate.total));
        let asked = self.input.placement.number_of_clusters;
        left.truncate(asked.unwrap_or(usize::MAX));
        self.chosen = left.into_iter().map(|candidate| candidate.cluster).collect();
        self.unscheduled = asked.unwrap_or(0).saturating_sub(self.chosen.len());
    }

    /// The first end of a toleration of the clusters that are decided already. A cluster that is
    /// chosen only now is checked in the next run, which its decision causes.
    fn first_end(&self) -> Option<time::OffsetDateTime> {
        let Ok(tolerations) = &self.input.placement.tolerations else { return None };
        let tainted = self.input.clusters.iter().filter(|cluster| !cluster.taints.is_empty());
        let decided = tainted.filter(|cluster| self.own.has(&cluster.name));
        decided.fold(None, |first, cluster| match tolerance(cluster, tolerations, true, self.input.now) {
            Tolerance::Until(end) => earlier(first, end),
            Tolerance::No => first,
        })
    }
}
