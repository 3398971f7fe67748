//! Paths that lead to the crate's root, and the items that they name.

use std::collections::BTreeMap;

use crate::tokens::Token;

/// What a file uses of the crate it is in.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// Modules that have a file of their own: `mod name;`.
    pub modules: Vec<String>,
    /// Items of this crate that are named from its root (`crate::`) or from a module above
    /// (`super::`).
    pub names: Vec<Named>,
    /// Paths that `use` imports, by their local names.
    pub brought: BTreeMap<String, Vec<String>>,
}

/// An item that a file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// From the root down: `super::b::C` in the module `a::d` is `a`, `b`, `C`.
    pub path: Vec<String>,
    pub line: usize,
}

/// Reads the file of `module`, a path from the root down; the path of the root is empty.
pub fn read(tokens: &[Token], module: &[String]) -> Read {
    let mut read = Read::default();
    let mut inline: Vec<usize> = Vec::new(); // the braces around each `mod name {` we are in
    let mut stands = module.to_vec();
    let mut braces = 0;
    for (here, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => braces += 1,
            "}" => {
                braces -= 1;
                if inline.last() == Some(&braces) {
                    inline.pop();
                    stands.pop();
                }
            }
            "mod" if word(tokens, here + 2) == ";" => read.modules.push(word(tokens, here + 1).to_owned()),
            "mod" if word(tokens, here + 2) == "{" => {
                inline.push(braces);
                stands.push(word(tokens, here + 1).to_owned());
            }
            "use" if inline.is_empty() => {
                let found = leaves(tokens, here + 1, module);
                read.brought.extend(found.into_iter().map(|leaf| (leaf.name, leaf.named.path)));
            }
            "crate" | "super" if begins(tokens, here) && !in_visibility(tokens, here) => {
                read.names.extend(leaves(tokens, here, &stands).into_iter().map(|leaf| leaf.named));
            }
            _ => {}
        }
    }
    read
}

/// Items that the root uses of its modules: `module::…` outside of a `pub use`.
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

/// `pub(in crate::a)` names an ancestor and uses nothing of it.
fn in_visibility(tokens: &[Token], here: usize) -> bool {
    here > 0 && word(tokens, here - 1) == "in" && here > 1 && word(tokens, here - 2) == "("
}

/// Whether a path starts at `here`, and has a second part.
fn begins(tokens: &[Token], here: usize) -> bool {
    follows(tokens, here + 1) && !(here >= 2 && follows(tokens, here - 2))
}

/// One end of a path, which braces may split.
struct Leaf {
    /// Its local name: its last name, or the one after `as`.
    name: String,
    named: Named,
}

/// Every end of the path that starts at `here`, resolved in `module`.
fn leaves(tokens: &[Token], here: usize, module: &[String]) -> Vec<Leaf> {
    let mut found = Vec::new();
    leaves_below(tokens, here, module.to_vec(), &mut found);
    found
}

/// Continues at `here`, below `path`, and returns the position of the end.
fn leaves_below(tokens: &[Token], mut here: usize, mut path: Vec<String>, found: &mut Vec<Leaf>) -> usize {
    let line = tokens.get(here).map_or(0, |token| token.line);
    loop {
        match word(tokens, here) {
            "{" => return split(tokens, here, &path, found),
            "crate" => path.clear(),
            "super" => drop(path.pop()),
            "self" | "*" => {}
            name => path.push(name.to_owned()),
        }
        if !follows(tokens, here + 1) || word(tokens, here + 3) == "<" {
            break;
        }
        here += 3;
    }
    let renamed = word(tokens, here + 1) == "as";
    let name = if renamed { word(tokens, here + 2) } else { path.last().map_or("", String::as_str) };
    found.push(Leaf { name: name.to_owned(), named: Named { path, line } });
    if renamed { here + 3 } else { here + 1 }
}

/// The branches within the brace at `here`; returns the position of the closing brace.
fn split(tokens: &[Token], here: usize, path: &[String], found: &mut Vec<Leaf>) -> usize {
    let mut at = here + 1;
    while !matches!(word(tokens, at), "}" | "") {
        at = leaves_below(tokens, at, path.to_vec(), found);
        if word(tokens, at) == "," {
            at += 1;
        }
    }
    at + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    fn read_in(module: &[&str], source: &str) -> Read {
        let module: Vec<String> = module.iter().map(|name| (*name).to_owned()).collect();
        read(&tokens(source), &module)
    }

    fn names(module: &[&str], source: &str) -> Vec<String> {
        read_in(module, source).names.into_iter().map(|named| named.path.join("::")).collect()
    }

    #[test]
    fn imports_and_paths_in_code_are_read() {
        let code = "use crate::a::B; fn f() -> crate::c::D { crate::e::f::<X>() }";
        assert_eq!(names(&["m"], code), ["a::B", "c::D", "e::f"]);
        let split = "use crate::{a::{B, C}, d, e::F as G, };";
        assert_eq!(names(&["m"], split), ["a::B", "a::C", "d", "e::F"]);
        assert_eq!(names(&["m"], "$crate::a::b!()"), ["a::b"]);
    }

    #[test]
    fn a_path_that_climbs_is_read_from_the_root() {
        assert_eq!(names(&["m"], "use super::a::B;"), ["a::B"]);
        let deeper = "use super::a::B; use super::super::{c, d::{self, E}}; super::X { y }";
        assert_eq!(names(&["m", "n"], deeper), ["m::a::B", "c", "d", "d::E", "m::X"]);
        assert_eq!(names(&["m"], "mod inner { use super::a; use super::super::b; }"), ["m::a", "b"]);
        assert_eq!(names(&["m"], "mod inner { } use super::b;"), ["b"]);
    }

    #[test]
    fn visibility_is_no_arrow() {
        let source = "pub(in crate::a) fn f(); pub(crate) fn g(); pub(in super::b) h: H";
        assert_eq!(names(&["m", "n"], source), [""; 0]);
    }

    #[test]
    fn modules_with_a_file_are_children() {
        assert_eq!(read_in(&[], "mod a; pub mod b; mod c { mod d {} }").modules, ["a", "b"]);
    }

    #[test]
    fn names_carry_their_lines() {
        let lines: Vec<usize> =
            read_in(&["m"], "\nuse crate::{\n a,\n b};").names.iter().map(|named| named.line).collect();
        assert_eq!(lines, [3, 4]);
    }

    #[test]
    fn what_a_module_brings_is_known_by_its_place() {
        let brought = |module: &[&str], source| {
            let brought = read_in(module, source).brought;
            brought.into_iter().map(|(name, path)| format!("{name}={}", path.join("::"))).collect::<Vec<_>>()
        };
        let root = "pub use self::a::{B, C as D}; pub use e::F; use crate::g::h::I; use J;";
        assert_eq!(brought(&[], root), ["B=a::B", "D=a::C", "F=e::F", "I=g::h::I", "J=J"]);
        assert_eq!(brought(&["m"], "pub use self::a::B; use crate::c::D;"), ["B=m::a::B", "D=c::D"]);
    }

    #[test]
    fn the_root_takes_what_its_code_names_and_not_what_it_exports() {
        let modules = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let source = "pub use self::a::A; pub(crate) use a::D; use b::B; fn f() { c::g(); other::c(); }";
        let names: Vec<_> = taken_by_root(&tokens(source), &modules).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["b", "c"]);
    }
}
