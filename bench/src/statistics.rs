//! The summary of several rounds: the median, with the lowest and highest. With the few rounds of a
//! run, quartiles would hide a good part of them.

use serde::{Deserialize, Serialize};

use crate::figure::{Goal, Sample, Target};

/// Summary of one figure or ratio over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub median: f64,
    pub lowest: f64,
    pub highest: f64,
    /// Number of rounds.
    pub rounds: usize,
}

// === impl Summary ===

impl Summary {
    /// `None` without values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (lowest, highest) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len().is_multiple_of(2) {
            f64::midpoint(values[middle - 1], values[middle])
        } else {
            values[middle]
        };
        Some(Self { median, lowest, highest, rounds: values.len() })
    }
}

/// Values of `goal`, round by round, from each target's samples in the order of the rounds. None
/// where a round lacks a figure, or where the divisor is not above zero: a difference smaller than
/// its noise.
pub fn by_round<'a>(goal: &Goal, samples: impl Fn(Target) -> &'a [Sample]) -> Vec<Option<f64>> {
    let figure = |target: Target, round: usize| samples(target).get(round)?.get(goal.figure).copied();
    let value = |round: usize| -> Option<f64> {
        let floor = goal.over.map_or(Some(0.0), |over| figure(over, round))?;
        let of = figure(goal.of, round)? - floor;
        match goal.beside {
            None => Some(of),
            Some(beside) => {
                Some(figure(beside, round)? - floor).filter(|beside| *beside > 0.0).map(|beside| of / beside)
            }
        }
    };
    let rounds = [Some(goal.of), goal.beside, goal.over].into_iter().flatten().map(|target| samples(target).len());
    (0..rounds.max().unwrap_or_default()).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{DIRECT, GO, OURS};

    fn samples(values: &[f64]) -> Vec<Sample> {
        values.iter().map(|value| Sample::from([("cpu", *value)])).collect()
    }

    fn rounds(goal: &Goal, ours: &[f64], go: &[f64], direct: &[f64]) -> Vec<Option<f64>> {
        let all = [(OURS, samples(ours)), (GO, samples(go)), (DIRECT, samples(direct))];
        by_round(goal, |target| &all.iter().find(|(known, _)| *known == target).unwrap().1)
    }

    #[test]
    fn the_median_is_the_middle_or_between_the_two_in_the_middle() {
        let summary = Summary::of([9.0, 1.0, 5.0]).unwrap();
        assert_eq!(summary, Summary { median: 5.0, lowest: 1.0, highest: 9.0, rounds: 3 });
        assert_eq!(Summary::of([4.0, 1.0, 2.0, 9.0]).map(|summary| summary.median), Some(3.0));
        assert_eq!(Summary::of([]), None);
        assert_eq!(Summary::of([f64::NAN]), None);
    }

    #[test]
    fn ratios_are_made_within_a_round() {
        // The machine was twice as slow in the second round: the ratio does not move, a ratio of
        // medians would.
        let values = rounds(&Goal::ratio("cpu", OURS, GO), &[1.0, 2.0, 1.0], &[10.0, 20.0, 40.0], &[]);
        assert_eq!(values, [Some(0.1), Some(0.1), Some(0.025)]);
    }

    #[test]
    fn what_is_added_is_what_goes_beyond_the_same_rounds_floor() {
        let goal = Goal::ratio("cpu", OURS, GO).over(DIRECT);
        assert_eq!(rounds(&goal, &[3.0, 4.0], &[6.0, 10.0], &[2.0, 2.0]), [Some(0.25), Some(0.25)]);
        assert_eq!(rounds(&Goal::value("cpu", OURS).over(DIRECT), &[3.0], &[], &[2.0]), [Some(1.0)]);
    }

    #[test]
    fn nothing_is_divided_by_noise_and_rounds_that_lack_a_figure_say_nothing() {
        let goal = Goal::ratio("cpu", OURS, GO).over(DIRECT);
        assert_eq!(rounds(&goal, &[3.0, 3.0], &[1.0, 4.0], &[2.0, 2.0]), [None, Some(0.5)]);
        assert_eq!(rounds(&goal, &[3.0, 3.0], &[4.0], &[2.0, 2.0]), [Some(0.5), None]);
        assert_eq!(rounds(&Goal::value("cpu", OURS), &[], &[1.0], &[]), []);
    }
}
