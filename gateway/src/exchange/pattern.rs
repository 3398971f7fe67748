//! Regular expressions with the meaning of Go's `regexp` (RE2 syntax, unanchored), in linear time
//! and bounded memory.
//!
//! A pattern decides a caller's permissions, so it must mean the same here as in Go. Where Go reads
//! syntax differently, this module reads it as Go does (`\d`, `\s`, `\w` and `\b` are ASCII), or
//! refuses it (set operations and nested brackets in classes, `\<`, the flags `x`, `u` and `R`).
//! Syntax that only Go has is refused: `\Q…\E`, `\C`, octal escapes, `{` as a plain character.

use std::convert::Infallible;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    self, AssertionKind, Ast, ClassPerl, ClassPerlKind, ClassSetBinaryOp, ClassSetItem, Flag, Flags, FlagsItemKind,
    GroupKind, Span, Visitor,
};

/// Bytes one compiled pattern may take: enough for any list of names, too little for `\pL{1000}`.
const LARGEST: usize = 64 * 1024;
/// Most nested groups.
const DEEPEST: u32 = 50;

/// A compiled pattern. Matches anywhere in a text unless it has `^` or `$`.
#[derive(Debug)]
pub struct Pattern(Regex);

/// A refused pattern. The texts fit in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("is not a valid regular expression: {0}")]
    Syntax(String),
    #[error("takes more than {} KiB when compiled: make its repetitions smaller", LARGEST / 1024)]
    TooLarge,
    #[error("{0}")]
    NotGo(&'static str),
}

/// Collects what must be replaced, and what must be refused.
#[derive(Default)]
struct Translation {
    /// Positions and their new texts, ordered by position.
    replacements: Vec<(Span, &'static str)>,
    refused: Option<&'static str>,
}

// === impl Pattern ===

impl Pattern {
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let parsed = ParserBuilder::new().nest_limit(DEEPEST).build().parse(text);
        let ast = parsed.map_err(|error| PatternError::Syntax(error.kind().to_string()))?;
        let Ok(translation) = ast::visit(&ast, Translation::default());
        if let Some(reason) = translation.refused {
            return Err(PatternError::NotGo(reason));
        }
        // A lazy automaton of the same size at most is kept per thread.
        let built = RegexBuilder::new(&translation.apply(text)).size_limit(LARGEST).dfa_size_limit(LARGEST).build();
        built.map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => PatternError::TooLarge,
            error => PatternError::Syntax(error.to_string().split_whitespace().collect::<Vec<_>>().join(" ")),
        })
    }

    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text.as_bytes())
    }
}

// === impl Translation ===

impl Translation {
    fn apply(self, text: &str) -> String {
        let mut translated = String::with_capacity(text.len());
        let mut copied = 0;
        for (span, replacement) in self.replacements {
            translated.push_str(&text[copied..span.start.offset]);
            translated.push_str(replacement);
            copied = span.end.offset;
        }
        translated.push_str(&text[copied..]);
        translated
    }

    fn refuse(&mut self, reason: &'static str) {
        self.refused.get_or_insert(reason);
    }

    fn perl(&mut self, class: &ClassPerl) {
        let ascii = match (&class.kind, class.negated) {
            (ClassPerlKind::Digit, false) => "[0-9]",
            (ClassPerlKind::Digit, true) => "[^0-9]",
            (ClassPerlKind::Space, false) => r"[\t\n\f\r ]",
            (ClassPerlKind::Space, true) => r"[^\t\n\f\r ]",
            (ClassPerlKind::Word, false) => "[0-9A-Za-z_]",
            (ClassPerlKind::Word, true) => "[^0-9A-Za-z_]",
        };
        self.replacements.push((class.span, ascii));
    }

    fn flags(&mut self, flags: &Flags) {
        let foreign = |kind: &FlagsItemKind| {
            matches!(kind, FlagsItemKind::Flag(Flag::Unicode | Flag::CRLF | Flag::IgnoreWhitespace))
        };
        if flags.items.iter().any(|item| foreign(&item.kind)) {
            self.refuse("uses a flag other than i, m, s and U");
        }
    }
}

impl Visitor for Translation {
    type Output = Self;
    type Err = Infallible;

    fn finish(self) -> Result<Self, Infallible> {
        Ok(self)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
        match ast {
            Ast::ClassPerl(class) => self.perl(class),
            Ast::Flags(set) => self.flags(&set.flags),
            Ast::Group(group) => {
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    self.flags(flags);
                }
            }
            Ast::Assertion(assertion) => match assertion.kind {
                AssertionKind::WordBoundary => self.replacements.push((assertion.span, r"(?-u:\b)")),
                AssertionKind::NotWordBoundary => self.replacements.push((assertion.span, r"(?-u:\B)")),
                AssertionKind::StartLine
                | AssertionKind::EndLine
                | AssertionKind::StartText
                | AssertionKind::EndText => {}
                _ => self.refuse(r"uses \< or \> or \b{…}: write < and > without a backslash"),
            },
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
        match item {
            ClassSetItem::Perl(class) => self.perl(class),
            ClassSetItem::Bracketed(_) => self.refuse(r"has [ inside a bracketed class: write \["),
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_binary_op_pre(&mut self, _: &ClassSetBinaryOp) -> Result<(), Infallible> {
        self.refuse(r"has &&, -- or ~~ inside a bracketed class: write \&, \- or \~");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::parse(pattern).unwrap().matches(text)
    }

    #[test]
    fn patterns_are_not_anchored() {
        assert!(matches("ops", "team-ops-1"));
        assert!(!matches("^ops$", "team-ops-1"));
        assert!(matches("", "anything"));
        assert!(!matches("^a$", "a\n"), "the end of the text, not of a line");
    }

    #[test]
    fn classes_are_about_ascii_as_in_go() {
        assert!(matches(r"^ci-\d+$", "ci-12"));
        assert!(!matches(r"^ci-\d+$", "ci-٣"));
        assert!(matches(r"^[\w.]+$", "a_b.c") && !matches(r"^[\w.]+$", "jörg"));
        assert!(matches(r"^[^\D]\D\S\W\B-$", "1a!--"));
        assert!(matches(r"ö\bx", "öx"), "ö is no word character in Go");
        assert!(!matches(r"\s", "\u{a0}\u{b}"));
        assert!(matches("^j.rg$", "jörg") && matches("(?i)^JÖRG$", "jörg") && matches(r"^\pL+$", "jörg"));
    }

    #[test]
    fn what_go_reads_otherwise_is_refused() {
        for pattern in [
            "[a[b]",
            "[a&&b]",
            "[a--b]",
            "[a~~b]",
            r"\<a",
            r"\>",
            r"\b{start}",
            "(?x) a",
            "(?-u)a",
            "(?R:a)",
            "a{,2}",
            "a{",
            r"\Qa\E",
            r"\C",
            r"\101",
            "(",
            "[",
            "*",
            r"\p{Nonsense}",
            "(?=a)",
            r"(a)\1",
        ] {
            assert!(Pattern::parse(pattern).is_err(), "{pattern} was accepted");
        }
    }

    #[test]
    fn size_and_depth_are_limited() {
        assert_eq!(Pattern::parse(r"\pL{30}").unwrap_err(), PatternError::TooLarge);
        assert_eq!(Pattern::parse("((a{100}){100}){100}").unwrap_err(), PatternError::TooLarge);
        assert!(Pattern::parse(&format!("{}a{}", "(".repeat(100), ")".repeat(100))).is_err());
        let names: Vec<_> = (0..100).map(|number| format!("team-{number}")).collect();
        assert!(Pattern::parse(&format!("^(?:{})$", names.join("|"))).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_brings_it_down(text in ".{0,60}", subject in ".{0,20}") {
            if let Ok(pattern) = Pattern::parse(&text) {
                pattern.matches(&subject);
            }
        }

        #[test]
        fn escaped_punctuation_means_itself(text in r"[ -;=?-~]{0,12}") {
            let escaped: String =
                text.chars().flat_map(|c| [c.is_ascii_punctuation().then_some('\\'), Some(c)]).flatten().collect();
            let pattern = format!("^{escaped}$");
            prop_assert!(matches(&pattern, &text), "{pattern}");
        }
    }
}
