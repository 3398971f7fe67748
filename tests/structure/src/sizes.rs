//! How long files and functions are.

use crate::tests_out::tests_out;
use crate::tokens::{Token, tokens};

/// Most lines of a file, with its tests: a longer one should be two files.
pub const FILE: usize = 500;
/// Lines of a file without its tests: a shorter one should be part of its neighbour.
pub const CRUMB: usize = 40;
/// Most files shorter than [`CRUMB`], in percent of all files.
pub const MOST_CRUMBS: usize = 5;
/// Most lines of a function, from `fn` to its closing brace, except for one function in a hundred.
/// The limit for all functions is in `clippy.toml`.
pub const FUNCTION: usize = 40;

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Counted from 1.
    pub line: usize,
    pub lines: usize,
}

/// Lines of `source` before its inline tests.
pub fn lines(source: &str) -> usize {
    let end = source.find("\n#[cfg(test)]\nmod tests {").unwrap_or(source.len());
    source[..end].trim_end().lines().count()
}

/// The functions of `source`, without those for tests.
pub fn functions(source: &str) -> Vec<Function> {
    let tokens = tests_out(&tokens(source));
    (0..tokens.len()).filter_map(|at| function(&tokens[at..])).collect()
}

/// The function that starts with the first of `tokens`.
fn function(tokens: &[Token]) -> Option<Function> {
    let [keyword, name, rest @ ..] = tokens else { return None };
    let is_name = name.text.starts_with(|sign: char| sign.is_alphabetic() || sign == '_');
    if keyword.text != "fn" || !is_name {
        return None;
    }
    let (mut depth, mut has_body) = (0, false);
    for token in rest {
        match token.text.as_str() {
            ";" if depth == 0 => return None,
            "(" | "[" => depth += 1,
            "{" => (depth, has_body) = (depth + 1, has_body || depth == 0),
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if has_body && depth == 0 {
            let lines = token.line - keyword.line + 1;
            return Some(Function { name: name.text.clone(), line: keyword.line, lines });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_measured_from_their_keyword_to_their_last_brace() {
        let source = "trait T { fn a(&self); }\nfn b(c: fn(u8)) -> [u8; 2] {\n    if d { e }\n}\nfn f() {}\n\
            #[cfg(test)]\nmod tests { fn g() {} }\n";
        let found: Vec<_> = functions(source).into_iter().map(|one| (one.name, one.line, one.lines)).collect();
        assert_eq!(found, [("b".to_owned(), 2, 3), ("f".to_owned(), 5, 1)]);
    }

    #[test]
    fn a_files_tests_are_no_lines_of_it() {
        assert_eq!(lines("a\nb\n\n#[cfg(test)]\nmod tests {\n}\n"), 2);
        assert_eq!(lines("a\n\n#[cfg(test)]\nmod tests;\n"), 4);
    }
}
