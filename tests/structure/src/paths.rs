//! Paths that lead to the crate's root, and what they name there.

use std::collections::BTreeMap;

use crate::tokens::Token;

/// What a file says of the crate it is in.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Modules that have a file of their own: `mod name;`.
    pub modules: Vec<String>,
    /// Names taken at the root, each with its line.
    pub names: Vec<(String, usize)>,
}

/// Reads the file of a module `depth` levels below the root, which itself is at 0.
pub fn read(tokens: &[Token], depth: usize) -> Read {
    let mut read = Read::default();
    let mut inline: Vec<usize> = Vec::new(); // the braces around each `mod name {` we are in
    let mut braces = 0;
    for (here, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if inline.last() == Some(&braces) {
                    inline.pop();
                }
            }
            "mod" if word(tokens, here + 2) == ";" => read.modules.push(word(tokens, here + 1).to_owned()),
            "mod" if word(tokens, here + 2) == "{" => inline.push(braces),
            "crate" if !in_visibility(tokens, here) => named(tokens, here, &mut read.names),
            "super" if climbs(tokens, here) == depth + inline.len() => named(tokens, here, &mut read.names),
            _ => {}
        }
    }
    read
}

/// The root's own names, as `pub use` or `use` there brings them from its modules: name to module.
pub fn brought(tokens: &[Token]) -> BTreeMap<String, String> {
    let mut brought = BTreeMap::new();
    for (here, _) in tokens.iter().enumerate().filter(|(_, token)| token.text == "use") {
        let path = here + 1;
        let at = if word(tokens, path) == "self" || word(tokens, path) == "crate" { path + 3 } else { path };
        let end = tokens[at..].iter().position(|token| token.text == ";").map_or(tokens.len(), |offset| at + offset);
        for here in at + 1..end {
            if matches!(word(tokens, here + 1), "," | "}" | ";") && word(tokens, here) != "}" {
                brought.insert(word(tokens, here).to_owned(), word(tokens, at).to_owned());
            }
        }
    }
    brought
}

/// What the root takes from its modules: `module::…` outside of a `pub use`.
pub fn taken_by_root(tokens: &[Token], modules: &[String]) -> Vec<(String, usize)> {
    let mut names = Vec::new();
    let mut exported = false;
    for (here, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "use" => exported = here > 0 && matches!(word(tokens, here - 1), "pub" | ")"),
            ";" => exported = false,
            text if !exported && follows(tokens, here + 1) && modules.iter().any(|module| module == text) => {
                names.push((text.to_owned(), token.line));
            }
            _ => {}
        }
    }
    names
}

fn word(tokens: &[Token], here: usize) -> &str {
    tokens.get(here).map_or("", |token| &token.text)
}

/// Whether `::` is at `here`.
fn follows(tokens: &[Token], here: usize) -> bool {
    word(tokens, here) == ":" && word(tokens, here + 1) == ":"
}

/// `pub(in crate::a)` names an ancestor and takes nothing.
fn in_visibility(tokens: &[Token], here: usize) -> bool {
    here > 0 && word(tokens, here - 1) == "in" && here > 1 && word(tokens, here - 2) == "("
}

/// How many `super` a path has up to the one at `here`.
fn climbs(tokens: &[Token], mut here: usize) -> usize {
    let mut count = 1;
    while here >= 3 && follows(tokens, here - 2) && word(tokens, here - 3) == "super" {
        here -= 3;
        count += 1;
    }
    count
}

/// The names right after the `crate` or `super` at `here`.
fn named(tokens: &[Token], here: usize, names: &mut Vec<(String, usize)>) {
    if !follows(tokens, here + 1) {
        return;
    }
    let first = here + 3;
    if word(tokens, first) != "{" {
        return push(tokens, first, names);
    }
    let mut depth = 0;
    for at in first..tokens.len() {
        match word(tokens, at) {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return;
        }
        if depth == 1 && matches!(word(tokens, at), "{" | ",") {
            push(tokens, at + 1, names);
        }
    }
}

fn push(tokens: &[Token], here: usize, names: &mut Vec<(String, usize)>) {
    let Some(token) = tokens.get(here) else { return };
    if !matches!(token.text.as_str(), "super" | "self" | "*" | "{" | "}") {
        names.push((token.text.clone(), token.line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn names(source: &str, depth: usize) -> Vec<String> {
        read(&tokens(source), depth).names.into_iter().map(|(name, _)| name).collect()
    }

    #[test]
    fn imports_and_paths_in_code_are_read() {
        assert_eq!(names("use crate::a::B; fn f() -> crate::c::D { crate::e::f() }", 1), ["a", "c", "e"]);
        assert_eq!(names("use crate::{a::{B, C}, d, e::F as G, };", 1), ["a", "d", "e"]);
        assert_eq!(names("$crate::a::b!()", 1), ["a"]);
    }

    #[test]
    fn a_path_that_climbs_to_the_root_is_read() {
        assert_eq!(names("use super::a::B;", 1), ["a"]);
        assert_eq!(names("use super::a::B; use super::super::{c, d::E};", 2), ["c", "d"]);
        assert_eq!(names("mod inner { use super::a; use super::super::b; }", 1), ["b"]);
        assert_eq!(names("mod inner { } use super::b;", 1), ["b"]);
    }

    #[test]
    fn visibility_is_no_arrow() {
        assert_eq!(names("pub(in crate::a) fn f(); pub(crate) fn g(); pub(in super::b) h: H", 2), [""; 0]);
    }

    #[test]
    fn modules_with_a_file_are_children() {
        assert_eq!(read(&tokens("mod a; pub mod b; mod c { mod d {} }"), 0).modules, ["a", "b"]);
    }

    #[test]
    fn names_carry_their_lines() {
        assert_eq!(read(&tokens("\nuse crate::{\n a,\n b};"), 1).names, [("a".to_owned(), 3), ("b".to_owned(), 4)]);
    }

    #[test]
    fn what_the_root_brings_up_is_known_by_its_module() {
        let brought = brought(&tokens("pub use self::a::{B, C as D}; pub use e::F; use crate::g::h::I; use J;"));
        let expected = [("B", "a"), ("D", "a"), ("F", "e"), ("I", "g")].map(|(n, m)| (n.to_owned(), m.to_owned()));
        assert_eq!(brought, BTreeMap::from(expected));
    }

    #[test]
    fn the_root_takes_what_its_code_names_and_not_what_it_exports() {
        let modules = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let source = "pub use self::a::A; pub(crate) use a::D; use b::B; fn f() { c::g(); other::c(); }";
        let names: Vec<_> = taken_by_root(&tokens(source), &modules).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "c"]);
    }
}
