//! One screen at the end of a run: which goals are met.

use std::fmt::Write as _;

use super::number::{bound, spread};
use super::{Judged, Report, Section, Verdict};

/// A line for each goal, then how many there are of each kind. Nothing without goals.
pub fn screen(report: &Report) -> String {
    let verdicts =
        || report.scenarios.iter().flat_map(|section| section.goals.iter().map(move |verdict| (section, verdict)));
    let mut text = String::new();
    for (section, verdict) in verdicts() {
        let _ = writeln!(text, "{}", line(section, verdict));
    }
    for (word, pick) in [("must", must as fn(&Verdict) -> Option<Judged>), ("aim", aim)] {
        let judged: Vec<Judged> = verdicts().filter_map(|(_, verdict)| pick(verdict)).collect();
        let count = |met: Option<bool>| judged.iter().filter(|judged| judged.met == met).count();
        if !judged.is_empty() {
            let (met, missed, open) = (count(Some(true)), count(Some(false)), count(None));
            let _ = writeln!(text, "{word}: {met} met, {missed} not met, {open} not measured");
        }
    }
    text
}

fn must(verdict: &Verdict) -> Option<Judged> {
    verdict.must
}

fn aim(verdict: &Verdict) -> Option<Judged> {
    verdict.aim
}

fn line(section: &Section, verdict: &Verdict) -> String {
    let measured = verdict.summary.map_or_else(|| "-".to_owned(), |summary| spread(&summary, verdict.digits));
    let judged = |word: &str, judged: Option<Judged>| {
        judged.map(|judged| format!("  {word} {}: {}", bound(judged.bound), judged.word(verdict.rounds.len())))
    };
    let must = judged("must", verdict.must).unwrap_or_default();
    let aim = judged("aim", verdict.aim).unwrap_or_default();
    format!("{:<18} {:<58} {measured:<22}{must}{aim}", section.name, verdict.subject())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;

    #[test]
    fn every_goal_is_counted_once() {
        let text = screen(&report());
        insta::assert_snapshot!(text);
    }
}
