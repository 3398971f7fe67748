//! Retired names of types, functions and modules, which nobody understood; and words that name one
//! type only.

use crate::tests_out::tests_out;
use crate::tokens::{Token, tokens};

/// Names that a type or a function must not have, and what to use instead: plain words, or those of
/// `docs/architecture.md#words`. The same for a module, in small letters.
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

/// Words that may name one type of the product each, because they had several meanings.
pub const ONE_MEANING: [&str; 9] = ["Contest", "Found", "Hub", "Known", "Place", "Room", "Seen", "State", "Wanted"];

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

/// The types of `source`, its tests aside, that one of these words names: the line, counted from 1,
/// and the word. An alias is no type of its own.
pub fn ambiguous(source: &str) -> Vec<(usize, &'static str)> {
    let tokens = tests_out(&tokens(source));
    let named = |pair: &[Token]| {
        let [keyword, name] = pair else { return None };
        let declares = ["enum", "struct", "trait", "union"].contains(&&*keyword.text);
        let word = ONE_MEANING.into_iter().find(|word| declares && name.text == *word)?;
        Some((name.line, word))
    };
    tokens.windows(2).filter_map(named).collect()
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

    #[test]
    fn a_word_is_found_where_it_names_a_type_and_not_in_tests() {
        let source = "pub struct Room(State);\ntype Place = Room;\ntrait State {}\n#[cfg(test)]\nmod tests { struct Contest; }\n";
        assert_eq!(ambiguous(source), [(1, "Room"), (3, "State")]);
    }
}
