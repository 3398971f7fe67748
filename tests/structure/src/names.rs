//! Retired names of types, functions and modules, which nobody understood.

use crate::tokens::{Token, tokens};

/// Names that a type or a function must not have, and what to use instead
/// (`docs/architecture.md#words`). The same for a module, in small letters.
pub const RETIRED: [(&str, &str); 15] = [
    ("Ear", "an observer"),
    ("Ground", "a fixture"),
    ("Heard", "an observer"),
    ("Lab", "a testbed"),
    ("Making", "a builder"),
    ("Pulse", "an observed Lease"),
    ("Rig", "a testbed, a fixture or a harness"),
    ("Stethoscope", "an observer"),
    ("Told", "what it holds, such as a conclusion"),
    ("Unasked", "an unexpected informational response"),
    ("Way", "a dialer"),
    ("Wishes", "query hints"),
    ("is_stranger", "is_unauthenticated"),
    ("is_untold_whose", "is_before_authentication"),
    ("knows_nobody", "is_anonymous_refusal"),
];

/// The types, functions and modules of `source` with a retired name: the line, counted from 1, the
/// name, and its replacement.
pub fn retired(source: &str) -> Vec<(usize, &'static str, &'static str)> {
    let tokens = tokens(source);
    tokens.windows(2).filter_map(|pair| declared(pair).map(|(name, instead)| (pair[1].line, name, instead))).collect()
}

fn declared(pair: &[Token]) -> Option<(&'static str, &'static str)> {
    let [keyword, name] = pair else { return None };
    let is_named = |retired: &str| match &*keyword.text {
        "enum" | "fn" | "struct" | "trait" | "type" => name.text == retired,
        "mod" => name.text == retired.to_lowercase(),
        _ => false,
    };
    RETIRED.into_iter().find(|(retired, _)| is_named(retired))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_found_and_a_use_is_not() {
        let source = "use a::Lab;\npub struct Pulse(Lab);\n// struct Ear\nenum Earth {}\ntrait Wishes {}\nfn knows_nobody() { Lab }\nmod told;\nmod ways { fn told() {} }\n";
        let found: Vec<_> = retired(source).into_iter().map(|(line, name, _)| (line, name)).collect();
        assert_eq!(found, [(2, "Pulse"), (5, "Wishes"), (6, "knows_nobody"), (7, "Told")]);
    }
}
