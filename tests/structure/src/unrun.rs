//! Tests that the gate would not run: code in doc comments, which would cost a compilation of each
//! crate by rustdoc, and tests of programs whose manifest says that they have none. And libraries
//! that it would not lint.

use crate::tokens::{Token, tokens};

/// Words behind a fence that are rustdoc's own, besides `ignore`, `edition…`, and `E0277` and the
/// like. A block with one is compiled although there are unknown words beside it.
const COMPILED: [&str; 6] = ["rust", "should_panic", "no_run", "compile_fail", "standalone_crate", "test_harness"];
/// Columns of a line in a doc comment from which on it is code.
const INDENTED: &str = "     ";

/// Lines of `source`, counted from 1, on which code begins that rustdoc would compile and run; and
/// those with docs in a form that is not read here: block comments, attributes, fences of tildes.
pub fn examples(source: &str) -> Vec<usize> {
    let (mut found, mut is_inside) = (attributes(source), false);
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            is_inside = false;
            if line.starts_with("/**") || line.starts_with("/*!") {
                found.push(index + 1);
            }
            continue;
        };
        let block = without_marks(text);
        if let Some(language) = block.strip_prefix("```") {
            if !is_inside && is_compiled(language.trim_start_matches('`')) {
                found.push(index + 1);
            }
            is_inside = !is_inside;
        } else if !is_inside && (block.starts_with("~~~") || text.starts_with(INDENTED)) {
            found.push(index + 1);
        }
    }
    found.sort_unstable();
    found
}

/// Lines with attributes that are docs: `#[doc = include_str!("…")]`.
fn attributes(source: &str) -> Vec<usize> {
    let tokens = tokens(source);
    let is_doc = |four: &&[Token]| {
        let [before, name, sign, after] = four else { return false };
        let is_value = sign.text == "=" && !["=", ">"].contains(&&*after.text);
        ["[", "(", ","].contains(&&*before.text) && name.text == "doc" && is_value
    };
    tokens.windows(4).filter(is_doc).map(|four| four[1].line).collect()
}

/// A line of Markdown without what lists and quotations begin with.
fn without_marks(text: &str) -> &str {
    text.trim_start_matches(|sign: char| sign.is_ascii_digit() || " \t-*+>.)".contains(sign))
}

/// A block whose language has attributes (in braces) or comments (in brackets) counts as one.
fn is_compiled(language: &str) -> bool {
    let words: Vec<_> = language.split([',', ' ', '\t']).filter(|word| !word.is_empty()).collect();
    let is_edition = |word: &str| word.starts_with("edition");
    !words.contains(&"ignore")
        && (language.contains(['{', '('])
            || words.iter().all(|word| is_edition(word))
            || words.iter().any(|word| is_rust(word)))
}

fn is_rust(word: &str) -> bool {
    let is_code = |digits: &str| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
    COMPILED.contains(&word) || word.starts_with("ignore-") || word.strip_prefix('E').is_some_and(is_code)
}

/// The paths of the programs in a `manifest` that are said to have no tests.
pub fn untested(manifest: &str) -> Vec<&str> {
    let programs = manifest.split("[[bin]]").skip(1).map(|rest| rest.split("\n[").next().unwrap_or_default());
    let untested = programs.filter(|program| program.lines().any(|line| line.starts_with("test = false")));
    let paths = untested.map(|program| program.split_once("path = \"").and_then(|(_, rest)| rest.split_once('"')));
    paths.map(|path| path.map_or("src/main.rs", |(path, _)| path)).collect()
}

/// Whether a `manifest` says that its library has no tests, with which `.ci/lint` lints it.
pub fn has_untested_library(manifest: &str) -> bool {
    let library = manifest.split_once("[lib]").map_or("", |(_, rest)| rest.split("\n[").next().unwrap_or_default());
    library.lines().any(|line| line.starts_with("test = false"))
}

/// Whether this source of a program has tests, or modules that may have some.
pub fn has_tests(source: &str) -> bool {
    let is_module = |line: &str| line.starts_with("mod ") || (line.starts_with("pub") && line.contains(" mod "));
    source.contains("test]") || source.contains("cfg(test)") || source.lines().any(is_module)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_run_unless_it_is_called_something_else() {
        let source =
            |language: &str| format!("/// Text.\n///\n/// ```{language}\n/// let a = 1;\n/// ```\nfn a() {{}}\n");
        let compiled = ["", "rust", "no_run", "should_panic,edition2024", "edition2024", "`", "`rust", "test_harness"];
        let others = ["compile_fail,E0277", "rust,other", "other,rust", "ignore-windows", "{.a}", "(a)"];
        for language in compiled.into_iter().chain(others) {
            assert_eq!(examples(&source(language)), [3], "{language}");
        }
        for language in ["text", "`text", "ignore", "yaml", "rust,ignore", "Ebook", "edition2024,text"] {
            assert_eq!(examples(&source(language)), [0; 0], "{language}");
        }
        assert_eq!(examples("//! Text.\n//!\n//!     let a = 1;\n"), [3]);
        assert_eq!(examples("/// - a\n///   b\nlet a = \"```\";\n"), [0; 0]);
        for marks in ["- ", "> ", "1. "] {
            assert_eq!(examples(&format!("/// {marks}```\n///   a();\n///   ```\n")), [1], "{marks}");
        }
    }

    #[test]
    fn docs_that_are_not_read_here_are_refused() {
        for docs in ["/// ~~~text\n/// a\n/// ~~~\n", "/** a */\n", "/*! a */\n", "#![doc = include_str!(\"a.md\")]\n"]
        {
            assert_eq!(examples(docs)[0], 1, "{docs}");
        }
        assert_eq!(examples("\n#[cfg_attr(a, doc = \"a\")]\nfn a() {}\n"), [2]);
        for others in ["/// ```text\n/// ~~~\n/// ```\n", "#[doc(hidden)]\nfn a() {\n    let doc = b(doc == c);\n}\n"] {
            assert_eq!(examples(others), [0; 0], "{others}");
        }
    }

    #[test]
    fn programs_without_tests_are_found_in_manifests_and_tests_in_programs() {
        let manifest = "[[bin]]\nname = \"a\"\npath = \"a.rs\"\ntest = false # why\n\n[[bin]]\npath = \"b.rs\"\n\n\
            [[bin]]\nname = \"d\"\ntest = false\n\n[[test]]\npath = \"c.rs\"\ntest = false\n";
        assert_eq!(untested(manifest), ["a.rs", "src/main.rs"]);
        for source in ["#[test]\nfn a() {}", "mod a;\n", "pub mod a;\n", "pub(crate) mod a;\n"] {
            assert!(has_tests(source), "{source}");
        }
        assert!(!has_tests("fn main() {}\n"));
    }

    #[test]
    fn libraries_without_tests_are_found_in_manifests() {
        let manifest = |library: &str| format!("[package]\nname = \"a\"\n{library}\n[[bin]]\ntest = false\n");
        assert!(has_untested_library(&manifest("\n[lib]\nname = \"b\"\ntest = false # why\n")));
        assert!(!has_untested_library(&manifest("\n[lib]\nname = \"b\"\n")));
        assert!(!has_untested_library(&manifest("")));
    }
}
