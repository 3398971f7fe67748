//! Tests that the gate would not run: code in doc comments, which would cost a compilation of each
//! crate by rustdoc, and tests of programs whose manifest says that they have none.

/// Languages of a block in a doc comment that rustdoc compiles, besides none and `edition…`.
const COMPILED: [&str; 5] = ["rust", "should_panic", "no_run", "compile_fail", "standalone_crate"];
/// Columns of a line in a doc comment from which on it is code.
const INDENTED: &str = "     ";

/// Lines of `source`, counted from 1, on which code begins that rustdoc would compile and run.
pub fn examples(source: &str) -> Vec<usize> {
    let (mut found, mut is_inside) = (Vec::new(), false);
    for (index, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            is_inside = false;
            continue;
        };
        if let Some(language) = text.trim_start().strip_prefix("```") {
            if !is_inside && is_compiled(language) {
                found.push(index + 1);
            }
            is_inside = !is_inside;
        } else if !is_inside && text.starts_with(INDENTED) {
            found.push(index + 1);
        }
    }
    found
}

fn is_compiled(language: &str) -> bool {
    let mut words = language.split([',', ' ', '{']).map(str::trim).filter(|word| !word.is_empty());
    words.all(|word| COMPILED.contains(&word) || word.starts_with("edition"))
}

/// The paths of the programs in a `manifest` that are said to have no tests.
pub fn untested(manifest: &str) -> Vec<&str> {
    let programs = manifest.split("[[bin]]").skip(1).map(|rest| rest.split("\n[").next().unwrap_or_default());
    let untested = programs.filter(|program| program.lines().any(|line| line.starts_with("test = false")));
    untested.filter_map(|program| Some(program.split_once("path = \"")?.1.split_once('"')?.0)).collect()
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
        for language in ["", "rust", "no_run", "should_panic,edition2024"] {
            assert_eq!(examples(&source(language)), [3], "{language}");
        }
        for language in ["text", "ignore", "yaml", "rust,ignore"] {
            assert_eq!(examples(&source(language)), [0; 0], "{language}");
        }
        assert_eq!(examples("//! Text.\n//!\n//!     let a = 1;\n"), [3]);
        assert_eq!(examples("/// - a\n///   b\nlet a = \"```\";\n"), [0; 0]);
    }

    #[test]
    fn programs_without_tests_are_found_in_manifests_and_tests_in_programs() {
        let manifest = "[[bin]]\nname = \"a\"\npath = \"a.rs\"\ntest = false # why\n\n[[bin]]\npath = \"b.rs\"\n\n\
            [[test]]\npath = \"c.rs\"\ntest = false\n";
        assert_eq!(untested(manifest), ["a.rs"]);
        for source in ["#[test]\nfn a() {}", "mod a;\n", "pub mod a;\n", "pub(crate) mod a;\n"] {
            assert!(has_tests(source), "{source}");
        }
        assert!(!has_tests("fn main() {}\n"));
    }
}
