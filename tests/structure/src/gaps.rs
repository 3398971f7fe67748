//! One-line texts with a gap, where a string was broken without the `\` that joins its lines.

use crate::tests_out::tests_out;
use crate::tokens::tokens_and_literals;

/// So many spaces within a line are the source's indentation, not part of the text.
const GAP: &str = "    ";

/// Lines of `source`, counted from 1, on which a string starts that has a gap between two of its
/// words. Strings of several lines are left out, since they have columns; so is code for tests
/// only.
pub fn gaps(source: &str) -> Vec<usize> {
    let tokens = tests_out(&tokens_and_literals(source));
    let strings = tokens.iter().filter_map(|token| Some((token.line, token.literal()?)));
    strings.filter(|(_, text)| has_gap(text)).map(|(line, _)| line).collect()
}

fn has_gap(text: &str) -> bool {
    !text.contains('\n') && text.trim().contains(GAP)
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
