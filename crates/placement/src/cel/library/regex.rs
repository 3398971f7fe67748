//! Regular expressions: `matches` of CEL, `find` and `findAll` of Kubernetes.

use std::ops::Deref;

use ::regex::Regex;

use crate::cel::function::{Answer, Overload, Run, function, method};
use crate::cel::meter::Failure;
use crate::cel::patterns::{self, Pattern};
use crate::cel::types::Type::{Bool, Int, List, Text};
use crate::cel::value::Value;

pub const OVERLOADS: &[Overload] = &[
    method("matches", &[Text, Text], Bool, matches),
    function("matches", &[Text, Text], Bool, matches),
    method("find", &[Text, Text], Text, find),
    method("findAll", &[Text, Text], List, find_all),
    method("findAll", &[Text, Text, Int], List, find_all),
];

/// Steps charged for compiling a pattern that is not a constant.
const COMPILING: usize = 5_000;

enum Compiled<'a> {
    Constant(&'a Pattern),
    Made(Pattern),
}

// === impl Compiled ===

impl Deref for Compiled<'_> {
    type Target = Pattern;

    fn deref(&self) -> &Pattern {
        match self {
            Self::Constant(pattern) => pattern,
            Self::Made(pattern) => pattern,
        }
    }
}

/// The pattern, compiled now unless it was a constant.
fn compiled<'a>(run: &mut Run<'_, 'a>, pattern: &str) -> Result<Compiled<'a>, Failure> {
    if let Some(compiled) = run.regex {
        return Ok(Compiled::Constant(compiled));
    }
    run.meter.charge(COMPILING)?;
    patterns::compiled_small(pattern).map(Compiled::Made).map_err(Failure::error)
}

fn with<T>(run: &mut Run<'_, '_>, text: &str, pattern: &str, ask: impl FnOnce(&Regex) -> T) -> Result<T, Failure> {
    let compiled = compiled(run, pattern)?;
    run.meter.charge(compiled.steps(text))?;
    Ok(ask(&compiled.regex))
}

fn matches<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Text(text), Value::Text(pattern)] = arguments else { return Err(Failure::no_overload()) };
    with(run, text, pattern, |regex| regex.is_match(text)).map(Value::Bool)
}

fn find<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Text(text), Value::Text(pattern)] = arguments else { return Err(Failure::no_overload()) };
    let found = with(run, text, pattern, |regex| regex.find(text).map(|found| found.as_str().to_owned()))?;
    Ok(Value::text(found.unwrap_or_default()))
}

fn find_all<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let (text, pattern, limit) = match arguments {
        [Value::Text(text), Value::Text(pattern)] => (text, pattern, usize::MAX),
        [Value::Text(text), Value::Text(pattern), Value::Int(limit)] => {
            (text, pattern, usize::try_from(*limit).unwrap_or(usize::MAX))
        }
        _ => return Err(Failure::no_overload()),
    };
    let compiled = compiled(run, pattern)?;
    let (mut found, mut from, mut end) = (Vec::new(), 0, None);
    // Each search may read the whole rest of the text, so each is charged for that.
    while found.len() < limit && from <= text.len() {
        run.meter.charge(compiled.steps(&text[from..]))?;
        let Some(next) = compiled.regex.find_at(text, from) else { break };
        from = next.end();
        if next.is_empty() {
            from += text[from..].chars().next().map_or(1, char::len_utf8);
        }
        // An empty match right behind another does not count, as in Go.
        if !next.is_empty() || end != Some(next.end()) {
            found.push(Value::text(next.as_str()));
        }
        end = Some(next.end());
    }
    Ok(Value::list(found))
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds, refused};

    #[test]
    fn patterns_match_and_find() {
        holds(&[
            r#""eu-west".matches("^e") && !"us".matches("^e") && matches("abc", "b")"#,
            r#""abc 123".find("[0-9]+") == "123" && "abc".find("[0-9]+") == """#,
            r#""123 abc 456".findAll("[0-9]+") == ["123", "456"] && "123 456".findAll("[0-9]+", 1) == ["123"]"#,
            r#""aäb".findAll("x*") == ["", "", "", ""] && "baaac".findAll("a*") == ["", "aaa", ""] && "".findAll("") == [""]"#,
            r#"["a", "b"].exists(p, "xbx".matches(p))"#,
        ]);
    }

    #[test]
    fn broken_ones_are_told_early_where_they_can_be() {
        refused(&[r#""a".matches("(")"#, r#""a".find("*") == "a""#]);
        fails(&[r#"["("].exists(p, "a".matches(p))"#]);
    }
}
