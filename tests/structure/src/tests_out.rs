//! Removes code that is compiled for tests only: it makes no arrow.

use crate::tokens::Token;

/// Words with which an item or a statement starts. Anything else is a field, a variant or an arm,
/// and ends at a comma.
const ITEMS: [&str; 18] = [
    "async",
    "const",
    "enum",
    "extern",
    "fn",
    "for",
    "if",
    "impl",
    "let",
    "macro_rules",
    "match",
    "mod",
    "return",
    "static",
    "struct",
    "trait",
    "type",
    "use",
];

/// `tokens` without code under `#[cfg(test)]`; empty for a file that starts with `#![cfg(test)]`.
pub fn tests_out(tokens: &[Token]) -> Vec<Token> {
    if at(tokens, 0, &["#", "!", "[", "cfg", "(", "test", ")", "]"]) {
        return Vec::new();
    }
    let mut kept = Vec::with_capacity(tokens.len());
    let mut here = 0;
    while here < tokens.len() {
        if at(tokens, here, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            here = end_of_item(tokens, here);
        } else {
            kept.push(tokens[here].clone());
            here += 1;
        }
    }
    kept
}

fn at(tokens: &[Token], here: usize, words: &[&str]) -> bool {
    tokens.len() >= here + words.len() && tokens[here..].iter().zip(words).all(|(token, word)| token.text == *word)
}

/// The first token after the item that starts, with its attributes, at `here`.
fn end_of_item(tokens: &[Token], mut here: usize) -> usize {
    while at(tokens, here, &["#", "["]) {
        here = closed(tokens, here + 1);
    }
    if at(tokens, here, &["pub"]) {
        here += 1;
        if at(tokens, here, &["("]) {
            here = closed(tokens, here);
        }
    }
    let item = tokens.get(here).is_some_and(|token| ITEMS.contains(&token.text.as_str()));
    while let Some(token) = tokens.get(here) {
        match token.text.as_str() {
            ";" => return here + 1,
            "," if !item => return here + 1,
            ")" | "]" | "}" => return here, // of what the item stands in
            "{" => {
                here = closed(tokens, here);
                if !goes_on(tokens, here) {
                    return here;
                }
            }
            "(" | "[" => here = closed(tokens, here),
            _ => here += 1,
        }
    }
    here
}

/// Whether the item goes on after a closing brace: `use a::{b};`, `let c = D { e };`, `if f {} else
/// {}`, `G { h } => …`, `g: I { .. },`.
fn goes_on(tokens: &[Token], here: usize) -> bool {
    at(tokens, here, &["="])
        || tokens.get(here).is_some_and(|token| matches!(token.text.as_str(), ";" | "," | "else" | "." | "?"))
}

/// The first token after the bracket that opens at `here` and its content.
fn closed(tokens: &[Token], here: usize) -> usize {
    let mut depth = 0;
    for (offset, token) in tokens[here..].iter().enumerate() {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return here + offset + 1;
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn left(source: &str) -> String {
        tests_out(&tokens(source)).into_iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn modules_items_and_imports_for_tests_go() {
        assert_eq!(left("a; #[cfg(test)] mod tests { use crate::x; fn f() {} } b;"), "a ; b ;");
        assert_eq!(left("#[cfg(test)] mod tests; b;"), "b ;");
        assert_eq!(left("#[cfg(test)] pub(super) use crate::{a, b}; c"), "c");
        assert_eq!(left("#[cfg(test)] #[allow(x)] pub fn f(a: [u8; 3]) -> T<A, B> { { } } c"), "c");
        assert_eq!(left("#[cfg(test)] impl A for B { } c"), "c");
        assert_eq!(left("#[cfg(test)] const A: B = B { c, d }; e"), "e");
    }

    #[test]
    fn fields_and_arms_for_tests_go_alone() {
        assert_eq!(left("struct A { #[cfg(test)] pub b: crate::B, c: C }"), "struct A { c : C }");
        assert_eq!(left("A { a, #[cfg(test)] b: B { x }, c }"), "A { a , c }");
        assert_eq!(left("A { #[cfg(test)] b: C }"), "A { }");
        assert_eq!(left("match a { #[cfg(test)] B { c } => crate::d(), e => f }"), "match a { e = > f }");
    }

    #[test]
    fn a_file_for_tests_goes_whole() {
        assert_eq!(left("//! Words\n#![cfg(test)] use crate::x;"), "");
    }

    #[test]
    fn other_conditions_stay() {
        assert_eq!(left("#[cfg(feature = \"x\")] use a;"), "# [ cfg ( feature = ) ] use a ;");
    }
}
