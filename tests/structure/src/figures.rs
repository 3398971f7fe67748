//! Figures on one page that are measured on another, and messages that a page quotes from sources.

use crate::tests_out::tests_out;
use crate::tokens::{Token, tokens_and_literals};

/// Least number of words of a sentence: a shorter text is a name.
const SENTENCE: usize = 4;

/// A figure: its text and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub text: String,
    pub value: f64,
    /// Number of decimal places.
    places: usize,
    /// Whether the figure says how many times one value is another.
    is_ratio: bool,
}

/// Bullets and rows of tables, each in one line.
pub fn units(text: &str) -> Vec<String> {
    let mut units: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        if line.starts_with("- ") || line.starts_with("| ") {
            units.push(line.to_owned());
            is_open = line.starts_with("- ");
        } else if is_open && line.starts_with("  ") {
            if let Some(last) = units.last_mut() {
                last.push(' ');
                last.push_str(line.trim_start());
            }
        } else {
            is_open = false;
        }
    }
    units
}

/// The anchors of `page` that a text links to, and the text without the targets of its links.
pub fn linked(text: &str, page: &str) -> (Vec<String>, String) {
    let (mut anchors, mut rest) = (Vec::new(), String::new());
    for (number, part) in text.split("](").enumerate() {
        let (target, prose) = if number == 0 { ("", part) } else { part.split_once(')').unwrap_or(("", part)) };
        anchors.extend(target.strip_prefix(page).and_then(|target| target.strip_prefix('#')).map(str::to_owned));
        rest.push_str(prose);
    }
    (anchors, rest)
}

/// The figures of a text: digits, with commas between thousands and a point.
pub fn figures(text: &str) -> Vec<Figure> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | ',');
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let after = &rest[start..];
        let end = after.find(|c| !is_part(c)).unwrap_or(after.len());
        let written = after[..end].trim_end_matches(['.', ',']);
        if let Ok(value) = written.replace(',', "").parse() {
            let places = written.split_once('.').map_or(0, |(_, places)| places.len());
            let is_ratio = after[end..].starts_with(" times");
            found.push(Figure { text: written.to_owned(), value, places, is_ratio });
        }
        rest = &after[end..];
    }
    found
}

/// The figures of `unit` that are in none of the `sections`, rounded as in the text. A ratio must
/// follow from two of the unit's own figures.
pub fn unfounded(unit: &str, sections: &str) -> Vec<String> {
    let (own, there) = (figures(unit), figures(sections));
    let measured: Vec<_> = own.iter().filter(|figure| !figure.is_ratio).collect();
    let is_founded = |figure: &&Figure| {
        if figure.is_ratio {
            measured.iter().any(|one| measured.iter().any(|other| rounds(one.value / other.value, figure)))
        } else {
            there.iter().any(|measured| rounds(measured.value, figure))
        }
    };
    own.iter().filter(|figure| !is_founded(figure)).map(|figure| figure.text.clone()).collect()
}

fn rounds(value: f64, figure: &Figure) -> bool {
    value.is_finite() && format!("{value:.*}", figure.places) == format!("{:.*}", figure.places, figure.value)
}

/// The part of a page below the heading of `anchor`, that heading included, up to the next one.
pub fn section(text: &str, anchor: &str) -> String {
    let is_heading = |line: &&str| line.starts_with('#');
    let mut lines = text.lines().skip_while(|line| !is_heading(line) || !super::links::anchors(line).contains(anchor));
    let heading = lines.next().unwrap_or_default();
    [heading].into_iter().chain(lines.take_while(|line| !is_heading(line))).collect::<Vec<_>>().join("\n")
}

/// The texts between backquotes in the column `column` (from 0) of the table that begins with
/// `head`.
pub fn quoted(page: &str, head: &str, column: usize) -> Vec<String> {
    let rows = page.lines().skip_while(|line| !line.starts_with(head)).skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(column + 1));
    cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The string literals of a source without its tests: each on one line, with `#` for each
/// placeholder.
pub fn literals(source: &str) -> String {
    let tokens = tests_out(&tokens_and_literals(source));
    tokens.iter().filter_map(Token::literal).map(|literal| filled(literal) + "\n").collect()
}

fn filled(literal: &str) -> String {
    let (mut filled, mut rest) = (String::new(), literal);
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        match after.split_once('}') {
            Some((name, end)) if name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '?')) => {
                filled.push('#');
                rest = end;
            }
            _ => {
                filled.push('{');
                rest = after;
            }
        }
    }
    filled + rest
}

/// Whether `literals` contain a quoted text: the text may be shortened by `…`, and its numbers may
/// be placeholders in the source.
pub fn is_said(literals: &str, quoted: &str) -> bool {
    let text = quoted.trim_end_matches('…').trim_end();
    let filled: Vec<_> = text.split(' ').map(|word| if word.parse::<f64>().is_ok() { "#" } else { word }).collect();
    literals.contains(text) || literals.contains(&filled.join(" "))
}

/// The sentences among `literals` that quote none of the `messages`, and start with none of the
/// `others`.
pub fn unlisted<'a>(literals: &'a str, messages: &[String], others: &[&str]) -> Vec<&'a str> {
    let is_sentence = |line: &&str| line.split(' ').count() >= SENTENCE;
    let is_listed = |line: &&str| {
        let quotes = |message: &String| is_said(line, message);
        messages.iter().any(quotes) || others.iter().any(|other| line.starts_with(other))
    };
    literals.lines().filter(is_sentence).filter(|line| !is_listed(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_the_sections_that_are_linked() {
        let text =
            "# A\n- **22 times less**: 12.4 µs against 270\n  for [1 KiB](perf.md#b-1).\n\n| a | 7,800 µs |\nb\n";
        let units = units(text);
        assert_eq!(units.len(), 2);
        let (anchors, prose) = linked(&units[0], "perf.md");
        assert_eq!((anchors, prose.contains("perf.md")), (vec!["b-1".to_owned()], false));
        let page = "## A\n12.4\n## B 1\n| 12.44 (1–2) | 270.2 |\n## C\n7,800\n";
        assert_eq!(section(page, "b-1"), "## B 1\n| 12.44 (1–2) | 270.2 |");
        assert_eq!(unfounded(&prose, &section(page, "b-1")), Vec::<String>::new());
        assert_eq!(unfounded(&prose.replace("22", "21"), &section(page, "b-1")), ["21"]);
        assert_eq!(unfounded(&prose.replace("12.4", "12.3"), &section(page, "b-1")), ["12.3"]);
        assert_eq!(unfounded(&units[1], &section(page, "c")), Vec::<String>::new());
        assert_eq!(unfounded(&units[1], &section(page, "a")), ["7,800"]);
    }

    #[test]
    fn quoted_messages_are_literals_with_what_is_filled_in() {
        let page = "| a | b |\n|---|---|\n| `x` | `one two`, `more than 10 parts` |\n\n| `y` | `z` |\n";
        assert_eq!(quoted(page, "| a | b", 1), ["one two", "more than 10 parts"]);
        let source = literals("\"is one \\\n    two\" \"more than {MOST} parts\" if x { y }");
        assert!(is_said(&source, "one two") && is_said(&source, "more than 10 parts") && is_said(&source, "is one …"));
        assert!(!is_said(&source, "one three") && !is_said(&source, "less than 10 parts"), "{source}");
        let others = "// one two\nfn three() { a(\"one\", \"two\") }\n#[cfg(test)]\nmod tests { b(\"one two\") }";
        for unsaid in ["one two", "three"] {
            assert!(!is_said(&literals(others), unsaid), "{unsaid}: only comments, names and tests have it");
        }
    }

    #[test]
    fn sentences_that_no_row_quotes_are_named() {
        let said = "application/json\nno such cluster #\n# keeps coming back to it\nthe request has #\n";
        let messages = ["no such cluster".to_owned()];
        assert_eq!(unlisted(said, &messages, &["the request has #"]), ["# keeps coming back to it"]);
        assert!(unlisted(said, &["keeps coming…".to_owned()], &["no such", "the request"]).is_empty());
        let filled = "more than # lines of it\nmore than # of them here\n";
        assert_eq!(unlisted(filled, &["more than 20 lines".to_owned()], &[]), ["more than # of them here"]);
    }
}
