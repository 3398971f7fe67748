//! The committed figures, against which new ones are held.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use crate::figure::Figure;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../instructions.json");

/// Instructions per unit by case.
pub struct Figures {
    committed: BTreeMap<String, u64>,
    new: BTreeMap<String, u64>,
}

// === impl Figures ===

impl Figures {
    /// Reads the committed figures; none where there is no file yet.
    pub fn committed() -> Result<Self> {
        let committed = if Path::new(FILE).exists() {
            let text = fs::read_to_string(FILE).context(FILE)?;
            serde_json::from_str(&text).context(FILE)?
        } else {
            BTreeMap::new()
        };
        Ok(Self { new: committed.clone(), committed })
    }

    pub fn set(&mut self, name: &str, instructions: f64) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
        self.new.insert(name.to_owned(), instructions.round() as u64);
    }

    /// By how many per cent `figure` is above the committed one. `None`: none is committed.
    pub fn above(&self, name: &str, figure: Figure) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        self.committed.get(name).map(|&committed| (figure.median / committed as f64 - 1.0) * 100.0)
    }

    /// A line about `figure` and how far it is from the committed one.
    pub fn compare(&self, name: &str, unit: &str, figure: Figure) -> String {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let committed = self.committed.get(name).map(|&committed| grouped(committed as f64));
        let moved = match (self.above(name, figure), committed) {
            (Some(percent), Some(committed)) => format!("{percent:+.1} % of the committed {committed}"),
            _ => "none committed".to_owned(),
        };
        let (median, spread) = (grouped(figure.median), figure.spread * 100.0);
        format!("{name:<22} {median:>13} instructions per {unit}, rounds within {spread:.1} %; {moved}")
    }

    /// Makes the new ones the committed ones; those not counted now stay.
    pub fn write(&self) -> Result<()> {
        fs::write(FILE, serde_json::to_string_pretty(&self.new)? + "\n").context(FILE)
    }
}

/// `105,230`.
pub fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let grouped = [0.0, 999.4, 1000.0, 105_230.0, 1_234_567.0].map(grouped);
        assert_eq!(grouped, ["0", "999", "1,000", "105,230", "1,234,567"]);
    }

    #[test]
    fn a_figure_is_held_against_the_committed_one() {
        let figures = Figures { committed: [("known".to_owned(), 1000)].into(), new: BTreeMap::new() };
        let figure = Figure { median: 1100.0, spread: 0.02 };
        let (known, unknown) = (figures.compare("known", "call", figure), figures.compare("other", "call", figure));
        assert!(known.contains("1,100") && known.contains("+10.0 %") && known.contains("1,000"), "{known}");
        assert!(unknown.contains("none committed"), "{unknown}");
        assert!(figures.above("known", figure).is_some_and(|above| (9.9..10.1).contains(&above)));
        assert_eq!(figures.above("other", figure), None);
    }
}
