//! Compares goals with measurements. The median of the rounds decides; the report adds in how many
//! rounds the goal was met.

use super::{Judged, Verdict};
use crate::figure::{Bound, Goal, Target};
use crate::outcome::Outcome;
use crate::statistics::{self, Summary};

/// Digits of ratios.
const RATIO: usize = 3;

pub(super) fn judge(goal: &Goal, outcome: &Outcome) -> Verdict {
    let samples = |target: Target| outcome.target(target).map_or(&[][..], |measured| &measured.samples);
    let rounds = statistics::by_round(goal, samples);
    let summary = Summary::of(rounds.iter().copied().flatten());
    let judged = |bound: Bound| Judged {
        bound,
        met: summary.map(|summary| bound.is_met(summary.median)),
        rounds: rounds.iter().flatten().filter(|value| bound.is_met(**value)).count(),
    };
    let figure = outcome.scenario.about.figures.iter().find(|figure| figure.key == goal.figure);
    Verdict {
        figure: figure.map_or(goal.figure, |figure| figure.title).to_owned(),
        of: goal.of.to_owned(),
        beside: goal.beside.map(str::to_owned),
        over: goal.over.map(str::to_owned),
        digits: if goal.beside.is_some() { RATIO } else { figure.map_or(RATIO, |figure| figure.digits) },
        must: goal.must.map(judged),
        aim: goal.aim.map(judged),
        summary,
        rounds,
    }
}

// === impl Verdict ===

impl Verdict {
    /// `ours / nginx, CPU µs per request`.
    pub(super) fn subject(&self) -> String {
        let mut subject = self.of.clone();
        if let Some(beside) = &self.beside {
            subject = format!("{subject} / {beside}");
        }
        if let Some(over) = &self.over {
            subject = format!("{subject} (each minus {over})");
        }
        format!("{subject}, {}", self.figure)
    }
}

// === impl Judged ===

impl Judged {
    /// `met`, `not met`, `not measured`; and in which part of `of` rounds, where they disagree.
    pub(super) fn word(&self, of: usize) -> String {
        match self.met {
            None => "not measured".to_owned(),
            Some(true) if self.rounds < of => format!("met (in {} of {of} rounds)", self.rounds),
            Some(true) => "met".to_owned(),
            Some(false) if self.rounds > 0 => format!("not met (but in {} of {of} rounds)", self.rounds),
            Some(false) => "not met".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{DIRECT, GO, NGINX, OURS, Sample};
    use crate::outcome::Measured;
    use crate::run::fake::Fake;

    const GOALS: &[Goal] = &[
        Goal::ratio("cpu", OURS, GO).must(Bound::AtMost(0.25)).aim(Bound::AtMost(0.1)),
        Goal::ratio("cpu", OURS, NGINX).must(Bound::AtMost(1.0)),
        Goal::value("rate", OURS).over(DIRECT).must(Bound::AtLeast(5.0)),
    ];

    fn outcome(ours: &[f64], go: &[f64]) -> Outcome {
        let samples = |values: &[f64]| values.iter().map(|value| Sample::from([("cpu", *value)])).collect();
        let measured = |target, values| Measured { target, samples: samples(values), missing: None };
        let scenario = Fake { goals: GOALS, ..Fake::default() }.into();
        Outcome { scenario, targets: vec![measured(OURS, ours), measured(GO, go)], missing: None }
    }

    #[test]
    fn the_median_decides_and_rounds_that_disagree_are_told() {
        let verdict = judge(&GOALS[0], &outcome(&[2.0, 2.0, 3.0], &[10.0, 10.0, 10.0]));
        assert_eq!(verdict.subject(), "ours / go gateway, CPU µs per request");
        assert_eq!(verdict.summary.map(|summary| (summary.median, summary.highest)), Some((0.2, 0.3)));
        let (must, aim) = (verdict.must.unwrap(), verdict.aim.unwrap());
        assert_eq!((must.met, must.word(3).as_str()), (Some(true), "met (in 2 of 3 rounds)"));
        assert_eq!((aim.met, aim.word(3).as_str()), (Some(false), "not met"));
    }

    #[test]
    fn a_goal_beside_somebody_absent_is_not_measured() {
        let outcome = outcome(&[2.0], &[10.0]);
        for goal in &GOALS[1..] {
            let verdict = judge(goal, &outcome);
            let must = verdict.must.unwrap();
            assert_eq!((verdict.summary, must.met, must.word(1).as_str()), (None, None, "not measured"));
        }
    }

    #[test]
    fn a_near_miss_says_so() {
        let verdict = judge(&GOALS[0], &outcome(&[3.0, 3.0, 2.0], &[10.0, 10.0, 10.0]));
        assert_eq!(verdict.must.unwrap().word(3), "not met (but in 1 of 3 rounds)");
    }
}
