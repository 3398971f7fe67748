//! Names that ask, `is_…` and `has_…`: an answer changes nothing.

use crate::tokens::{Token, tokens};

/// A function whose name asks and whose body may change something.
#[derive(Debug, PartialEq, Eq)]
pub struct Loaded {
    pub name: String,
    /// Counted from 1.
    pub line: usize,
}

/// How atomics are written.
const WRITES: [&str; 13] = [
    "compare_exchange",
    "compare_exchange_weak",
    "fetch_add",
    "fetch_and",
    "fetch_max",
    "fetch_min",
    "fetch_or",
    "fetch_sub",
    "fetch_update",
    "fetch_xor",
    "send_modify",
    "store",
    "swap",
];
/// Methods that change what is behind a lock.
const CHANGES: [&str; 14] = [
    "clear",
    "drain",
    "entry",
    "extend",
    "get_or_insert_with",
    "insert",
    "pop",
    "pop_front",
    "push",
    "push_back",
    "remove",
    "replace",
    "retain",
    "take",
];

/// A function that asks.
struct Asking<'t> {
    name: &'t Token,
    arguments: Vec<&'t str>,
    body: Vec<&'t str>,
}

/// The methods of `source` that ask with `&mut self`.
pub fn loaded(source: &str) -> Vec<Loaded> {
    found(source, |asking| {
        matches!(asking.arguments[..], ["(", "&", "mut", "self", ..] | ["(", "&", _, "mut", "self", ..])
    })
}

/// The functions of `source` that ask and change something: an argument, an atomic, or what a lock
/// holds.
pub fn changing(source: &str) -> Vec<Loaded> {
    found(source, |asking| takes_mut(&asking.arguments) || writes(&asking.body))
}

fn found(source: &str, is_wrong: impl Fn(&Asking<'_>) -> bool) -> Vec<Loaded> {
    let tokens = tokens(source);
    let asking = (0..tokens.len()).filter_map(|at| asking(&tokens[at..])).filter(is_wrong);
    asking.map(|asking| Loaded { name: asking.name.text.clone(), line: asking.name.line }).collect()
}

fn asking(tokens: &[Token]) -> Option<Asking<'_>> {
    let [function, name, rest @ ..] = tokens else { return None };
    if function.text != "fn" || !["is_", "has_"].iter().any(|word| name.text.starts_with(word)) {
        return None;
    }
    let rest: Vec<&str> = rest.iter().map(|token| &*token.text).collect();
    let begins = rest.iter().position(|text| *text == "(")?;
    let (arguments, after) = within(&rest[begins..], "(", ")")?;
    let body = after.iter().position(|text| ["{", ";"].contains(text)).and_then(|at| within(&after[at..], "{", "}"));
    Some(Asking { name, arguments: arguments.to_vec(), body: body.map_or_else(Vec::new, |(body, _)| body.to_vec()) })
}

/// What is between the first of `tokens`, which opens, and the sign that closes it, with both; and
/// the rest.
fn within<'a, 't>(tokens: &'a [&'t str], opens: &str, closes: &str) -> Option<(&'a [&'t str], &'a [&'t str])> {
    let mut depth = 0_usize;
    for (at, text) in tokens.iter().enumerate() {
        if *text == opens {
            depth += 1;
        } else if *text == closes {
            depth = depth.checked_sub(1)?;
        }
        if depth == 0 {
            return (at > 0).then(|| tokens.split_at(at + 1));
        }
    }
    None
}

fn takes_mut(arguments: &[&str]) -> bool {
    arguments.windows(3).any(|window| matches!(window, ["&", "mut", _] | ["&", _, "mut"]))
}

fn writes(body: &[&str]) -> bool {
    body.windows(3).any(|window| matches!(window, [".", method, "("] if WRITES.contains(method)))
        || body.split(|text| [";", "{", "}"].contains(text)).any(changes_locked)
}

/// Whether a statement changes what a lock holds: binds it as `mut`, assigns to it, or calls a
/// method that changes it.
fn changes_locked(statement: &[&str]) -> bool {
    let after = |locked: usize| &statement[locked + 4..];
    let locked = statement.windows(4).enumerate();
    let mut locked = locked.filter(|(_, window)| matches!(window, [".", "lock" | "write", "(", ")"])).map(|(at, _)| at);
    locked.any(|at| {
        (statement.first() == Some(&"let") && statement[..at].contains(&"mut"))
            || (statement.first() == Some(&"*") && matches!(after(at), ["=", next, ..] if *next != "="))
            || matches!(after(at), [".", method, ..] if CHANGES.contains(method))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(loaded: Vec<Loaded>) -> Vec<(String, usize)> {
        loaded.into_iter().map(|loaded| (loaded.name, loaded.line)).collect()
    }

    const SOURCE: &str = "
        fn is_taken(&mut self) -> bool { true }
        fn has_left<T>(&'a mut self) -> bool { true }
        fn is_free(&self, at: &mut Self) -> bool { true }
        fn take(&mut self) -> bool { self.is_taken() }
        fn is_told(&self) -> bool { self.told.swap(true, Relaxed) }
        fn is_back(&self) -> bool { let (mut away, now) = (self.away.lock(), now()); true }
        fn is_new(&self) -> bool { self.seen.lock().insert(1) }
        fn has_set(&self) -> bool { *self.at.lock() = 1; true }
        fn is_at(&self) -> bool { let at = *self.at.lock(); at == 1 && *self.at.lock() == 1 }
        fn has_one(&self) -> bool { self.seen.lock().contains(1) && self.n.load(Relaxed) == 1 }
        fn is_bare(&self) -> bool;
        fn mark(&self) { self.told.store(true, Relaxed) }
    ";

    #[test]
    fn a_question_that_may_change_its_subject_is_found() {
        assert_eq!(names(loaded(SOURCE)), [("is_taken".to_owned(), 2), ("has_left".to_owned(), 3)]);
    }

    #[test]
    fn a_question_that_changes_anything_is_found() {
        let found = names(changing(SOURCE));
        let lines: Vec<_> = found.iter().map(|(_, line)| *line).collect();
        assert_eq!(lines, [2, 3, 4, 6, 7, 8, 9], "{found:?}");
    }
}
