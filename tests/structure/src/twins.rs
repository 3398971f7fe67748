//! Runs of equal lines: what was written twice.

use std::collections::HashMap;

use crate::tests_out::tests_out;
use crate::tokens::{Token, tokens_and_literals};

/// So many equal lines in a row are a twin.
pub const RUN: usize = 6;

/// A line of code: its words and signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    /// Counted from 1.
    pub number: usize,
}

/// Two places with equal lines: the index of the source, and the line where it begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Twin {
    pub one: (usize, usize),
    pub other: (usize, usize),
    pub lines: usize,
}

/// The lines of `source` that have words. Comments, tests, attributes and imports are left out.
pub fn lines(source: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for Token { text, line } in tests_out(&tokens_and_literals(source)) {
        match lines.last_mut().filter(|last| last.number == line) {
            Some(last) => last.text = format!("{} {text}", last.text),
            None => lines.push(Line { text, number: line }),
        }
    }
    let mut is_import = false;
    lines.retain(|line| {
        is_import |= line.text.starts_with("use ") || line.text.starts_with("pub use ");
        let is_code = !is_import && !line.text.starts_with('#') && line.text.contains(char::is_alphanumeric);
        is_import &= !line.text.ends_with(';');
        is_code
    });
    lines
}

/// The longest equal runs in `sources`.
pub fn twins(sources: &[Vec<Line>]) -> Vec<Twin> {
    let mut runs: HashMap<Vec<&str>, Vec<(usize, usize)>> = HashMap::new();
    for (source, lines) in sources.iter().enumerate() {
        for (at, run) in lines.windows(RUN).enumerate() {
            runs.entry(run.iter().map(|line| &*line.text).collect()).or_default().push((source, at));
        }
    }
    let mut twins = Vec::new();
    for places in runs.into_values() {
        for (number, one) in places.iter().enumerate() {
            twins.extend(places[number + 1..].iter().filter_map(|other| twin(sources, *one, *other)));
        }
    }
    twins.sort_by_key(|twin| (twin.one, twin.other));
    twins
}

/// The run that begins at both places, unless it begins before them, or they overlap.
fn twin(sources: &[Vec<Line>], (one, at): (usize, usize), (other, from): (usize, usize)) -> Option<Twin> {
    let (left, right) = (&sources[one], &sources[other]);
    let goes_on = at > 0 && from > 0 && left[at - 1].text == right[from - 1].text;
    if goes_on || one == other && at.abs_diff(from) < RUN {
        return None;
    }
    let lines = left[at..].iter().zip(&right[from..]).take_while(|(one, other)| one.text == other.text).count();
    Some(Twin { one: (one, left[at].number), other: (other, right[from].number), lines })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_with_words_counts() {
        let source = "use a::{\n    b,\n};\n// c\n#[inline]\nfn d() {\n    e(\"f\");\n}\n#[cfg(test)]\nmod tests {\n    use g;\n}\n";
        let found = lines(source);
        assert_eq!(found.iter().map(|line| line.number).collect::<Vec<_>>(), [6, 7], "{found:?}");
    }

    #[test]
    fn a_run_is_found_once_and_as_a_whole() {
        let body = |name: &str, count: usize| {
            let calls: Vec<_> = (0..count).map(|number| format!("    call({number});\n")).collect();
            let calls = calls.concat();
            lines(&format!("fn {name}() {{\n{calls}}}\n"))
        };
        let found = twins(&[body("a", 7), body("b", 7), body("c", 5)]);
        assert_eq!(found, [Twin { one: (0, 2), other: (1, 2), lines: 7 }]);
        let within = lines(&format!("{}fn x() {{}}\n{}", "    y();\n".repeat(6), "    y();\n".repeat(6)));
        assert_eq!(twins(&[within]).len(), 1);
    }
}
