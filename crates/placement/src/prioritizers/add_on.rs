//! Scores from add-ons.

use super::each;
use crate::input::Input;
use crate::objects::AddOnPlacementScore;
use crate::outcome::{Candidate, MESSAGE, Warning};

/// One score of one resource.
pub struct AddOn<'a> {
    pub plugin: &'a str,
    pub resource: &'a str,
    pub score: &'a str,
}

// === impl AddOn ===

impl<'a> AddOn<'a> {
    /// The stored value, as it is; 0 if there is none or it has expired. Expired values, and those
    /// outside of −100 to 100, add a warning.
    pub fn scores(
        &self,
        candidates: &[Candidate<'a>],
        input: &Input<'a>,
        warnings: &mut Vec<Warning<'a>>,
    ) -> Vec<Option<i64>> {
        let known = input.scores.of(self.resource);
        let (mut expired, mut outside) = (String::new(), String::new());
        let scores = each(candidates, |cluster| {
            let Some(found) = known.and_then(|known| known.get(&cluster.name)) else { return Some(0) };
            if found.valid_until.is_some_and(|end| input.now > end) {
                self.note(&mut expired, found);
                return Some(0);
            }
            let value = found.value(self.score).unwrap_or(0);
            if !(-100..=100).contains(&value) {
                self.note(&mut outside, found);
            }
            Some(value)
        });
        for (names, what) in [(expired, "expired"), (outside, "outside -100..100")] {
            if !names.is_empty() {
                let message = format!("AddOnPlacementScores{names} {what}");
                warnings.push(Warning { plugin: self.plugin, message });
            }
        }
        scores
    }

    /// Adds the score's name, as long as a message has room for it.
    fn note(&self, names: &mut String, score: &AddOnPlacementScore) {
        let length = names.len() + score.cluster.len() + self.resource.len();
        if length < MESSAGE {
            for part in [" ", &score.cluster, "/", self.resource] {
                names.push_str(part);
            }
        } else if !names.ends_with("......") {
            names.push_str("......");
        }
    }
}
