//! Texts of one line with a hole, where a string was broken without the `\` that joins its lines.

use crate::tests_out::tests_out;
use crate::tokens::{string, with_strings};

/// So many spaces within a line are the indentation of the source, not what was meant.
const GAP: &str = "    ";

/// Lines of `source`, from 1, on which a string begins that has a gap between two of its words.
/// Strings of several lines are left out, since they have columns; so is what is for tests only.
pub fn gaps(source: &str) -> Vec<usize> {
    let tokens = tests_out(&with_strings(source));
    let strings = tokens.iter().filter_map(|token| Some((token.line, string(token)?)));
    strings.filter(|(_, text)| has_gap(text)).map(|(line, _)| line).collect()
}

fn has_gap(text: &str) -> bool {
    let mut parts = text.split("\\\n");
    let first = parts.next().unwrap_or_default().to_owned();
    let joined = parts.fold(first, |joined, part| joined + part.trim_start());
    let is_one_line = !joined.contains('\n') && !joined.contains("\\n");
    is_one_line && joined.trim().contains(GAP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_within_a_line_of_a_string() {
        let source = "a(\"b c\");\na(\"b      c\");\na(\"b \\\n        c\");\na(\"b:\\n    c\");\na(r\"b\nd    c\");\n";
        assert_eq!(gaps(source), [2]);
        assert_eq!(gaps("a = 1;     // b    c\n#[cfg(test)] mod tests { const A: &str = \"b    c\"; }"), [0; 0]);
    }
}
