//! Strings: CEL's own functions and cel-go's extension. Positions count code points.

use crate::cel::function::{Answer, Overload, Run, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Bool, Int, List, Text};
use crate::cel::value::Value;

pub const OVERLOADS: &[Overload] = &[
    method("contains", &[Text, Text], Bool, |run, arguments| asked(run, arguments, |a, b| a.contains(b))),
    method("startsWith", &[Text, Text], Bool, |run, arguments| asked(run, arguments, |a, b| a.starts_with(b))),
    method("endsWith", &[Text, Text], Bool, |run, arguments| asked(run, arguments, |a, b| a.ends_with(b))),
    method("charAt", &[Text, Int], Text, char_at),
    method("indexOf", &[Text, Text], Int, index_of),
    method("indexOf", &[Text, Text, Int], Int, index_of),
    method("lastIndexOf", &[Text, Text], Int, last_index_of),
    method("lastIndexOf", &[Text, Text, Int], Int, last_index_of),
    method("lowerAscii", &[Text], Text, |run, arguments| changed(run, arguments, str::to_ascii_lowercase)),
    method("upperAscii", &[Text], Text, |run, arguments| changed(run, arguments, str::to_ascii_uppercase)),
    method("trim", &[Text], Text, |run, arguments| changed(run, arguments, |text| text.trim().to_owned())),
    method("reverse", &[Text], Text, |run, arguments| changed(run, arguments, |text| text.chars().rev().collect())),
    method("replace", &[Text, Text, Text], Text, replace),
    method("replace", &[Text, Text, Text, Int], Text, replace),
    method("split", &[Text, Text], List, split),
    method("split", &[Text, Text, Int], List, split),
    method("substring", &[Text, Int], Text, substring),
    method("substring", &[Text, Int, Int], Text, substring),
    method("join", &[List], Text, join),
    method("join", &[List, Text], Text, join),
    function("strings.quote", &[Text], Text, |run, arguments| changed(run, arguments, quoted)),
];

fn asked<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>], ask: fn(&str, &str) -> bool) -> Answer<'a> {
    let [Value::Text(text), Value::Text(part)] = arguments else { return Err(Failure::no_overload()) };
    run.meter.traverse(text.len())?;
    Ok(Value::Bool(ask(text, part)))
}

fn changed<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>], change: fn(&str) -> String) -> Answer<'a> {
    let [Value::Text(text)] = arguments else { return Err(Failure::no_overload()) };
    run.meter.traverse(2 * text.len())?;
    Ok(Value::text(change(text)))
}

fn char_at<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Text(text), Value::Int(at)] = arguments else { return Err(Failure::no_overload()) };
    run.meter.traverse(text.len())?;
    let start = byte(text, *at)?;
    Ok(Value::text(text[start..].chars().next().map(String::from).unwrap_or_default()))
}

fn index_of<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let (text, part, from) = match arguments {
        [Value::Text(text), Value::Text(part)] => (text, part, 0),
        [Value::Text(text), Value::Text(part), Value::Int(from)] => (text, part, *from),
        _ => return Err(Failure::no_overload()),
    };
    run.meter.traverse(text.len())?;
    let start = byte(text, from)?;
    let found = text[start..].find(&**part).map(|at| text[..start + at].chars().count());
    Ok(found.map_or(Value::Int(-1), Value::size))
}

fn last_index_of<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let (text, part, until) = match arguments {
        [Value::Text(text), Value::Text(part)] => (text, part, None),
        [Value::Text(text), Value::Text(part), Value::Int(until)] => (text, part, Some(*until)),
        _ => return Err(Failure::no_overload()),
    };
    run.meter.traverse(text.len())?;
    // A match begins at `until` or before.
    let end = match until {
        Some(until) => (byte(text, until)? + part.len()).min(text.len()),
        None => text.len(),
    };
    let head = text.get(..end).unwrap_or(text);
    let found = head.rfind(&**part).map(|at| text[..at].chars().count());
    Ok(found.map_or(Value::Int(-1), Value::size))
}

fn replace<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let (text, old, new, limit) = match arguments {
        [Value::Text(text), Value::Text(old), Value::Text(new)] => (text, old, new, usize::MAX),
        [Value::Text(text), Value::Text(old), Value::Text(new), Value::Int(limit)] => {
            (text, old, new, usize::try_from(*limit).unwrap_or(usize::MAX))
        }
        _ => return Err(Failure::no_overload()),
    };
    run.meter.traverse(text.len())?;
    let count = text.matches(&**old).count().min(limit);
    run.meter.traverse(text.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::text(text.replacen(&**old, new, limit)))
}

fn split<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let (text, separator, limit) = match arguments {
        [Value::Text(text), Value::Text(separator)] => (text, separator, -1),
        [Value::Text(text), Value::Text(separator), Value::Int(limit)] => (text, separator, *limit),
        _ => return Err(Failure::no_overload()),
    };
    run.meter.charge(text.len())?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let parts: Vec<Value<'a>> = match (limit, separator.is_empty()) {
        (0, _) => Vec::new(),
        (_, true) => letters(text, limit).into_iter().map(Value::text).collect(),
        _ => text.splitn(limit, &**separator).map(Value::text).collect(),
    };
    Ok(Value::list(parts))
}

/// Each code point alone; the `limit`th part is the rest.
fn letters(text: &str, limit: usize) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if parts.len() + 1 == limit { rest.len() } else { first.len_utf8() };
        let (part, after) = rest.split_at(length);
        parts.push(part);
        rest = after;
    }
    parts
}

fn substring<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let (text, from, until) = match arguments {
        [Value::Text(text), Value::Int(from)] => (text, *from, None),
        [Value::Text(text), Value::Int(from), Value::Int(until)] => (text, *from, Some(*until)),
        _ => return Err(Failure::no_overload()),
    };
    run.meter.traverse(2 * text.len())?;
    let start = byte(text, from)?;
    let end = until.map_or(Ok(text.len()), |until| byte(text, until))?;
    text.get(start..end).map(Value::text).ok_or_else(|| Failure::error("invalid substring range"))
}

fn join<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let (list, separator) = match arguments {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::Text(separator)] => (list, &**separator),
        _ => return Err(Failure::no_overload()),
    };
    let mut out = String::new();
    for (at, part) in list.iter().enumerate() {
        let Value::Text(part) = part else { return Err(Failure::no_overload()) };
        run.meter.charge(1)?;
        run.meter.traverse(part.len() + separator.len())?;
        if at > 0 {
            out.push_str(separator);
        }
        out.push_str(&part);
    }
    Ok(Value::text(out))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '\x07' => out.push_str("\\a"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x0b' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The byte at which the code point at `position` begins; the end is a position too.
fn byte(text: &str, position: i64) -> Result<usize, Failure> {
    let out = || Failure::error(format!("index out of range: {position}"));
    let position = usize::try_from(position).map_err(|_| out())?;
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    starts.into_iter().nth(position).ok_or_else(out)
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn parts_and_places() {
        holds(&[
            r#""tacocat".charAt(3) == "o" && "abc".charAt(3) == "" && "äß".charAt(1) == "ß""#,
            r#""hello mellow".indexOf("ello") == 1 && "hello mellow".indexOf("ello", 2) == 7"#,
            r#""hello".indexOf("") == 0 && "hello".indexOf("x") == -1"#,
            r#""hello mellow".lastIndexOf("ello") == 7 && "hello mellow".lastIndexOf("ello", 6) == 1"#,
            r#""tacocat".substring(4) == "cat" && "tacocat".substring(0, 4) == "taco""#,
            r#""abc".contains("b") && "abc".startsWith("ab") && "abc".endsWith("bc")"#,
        ]);
        fails(&[r#""abc".charAt(4) == "x""#, r#""abc".substring(2, 1) == """#, r#""abc".substring(-1) == """#]);
    }

    #[test]
    fn other_texts_of_them() {
        holds(&[
            r#""TacoCat".lowerAscii() == "tacocat" && "TacoCÆt".upperAscii() == "TACOCÆT""#,
            r#""hello hello".replace("he", "we") == "wello wello""#,
            r#""hello hello".replace("he", "we", 1) == "wello hello" && "aa".replace("a", "b", 0) == "aa""#,
            r#""v1.2".replace("v", "") == "1.2" && "ab".replace("", "_") == "_a_b_""#,
            r#""a b c".split(" ") == ["a", "b", "c"] && "a b c".split(" ", 2) == ["a", "b c"]"#,
            r#""abc".split("") == ["a", "b", "c"] && "abc".split("", 2) == ["a", "bc"] && "a".split("x", 0) == []"#,
            r#"["a", "b"].join() == "ab" && ["a", "b"].join("-") == "a-b" && [].join("-") == """#,
            r#""  a\n".trim() == "a" && "gums".reverse() == "smug" && strings.quote("a\"b\n") == "\"a\\\"b\\n\"""#,
        ]);
        fails(&["[1].join() == ''"]);
    }
}
