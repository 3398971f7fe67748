//! Kubernetes' semantic versions (`SemVer` 2.0.0). Build metadata does not count in comparisons.

use std::cmp::Ordering;
use std::rc::Rc;

use ::semver::Version;

use crate::cel::function::{Answer, Overload, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Bool, Int, Semver, Text};
use crate::cel::value::Value;

pub const OVERLOADS: &[Overload] = &[
    function("semver", &[Text], Semver, |_, arguments| made(arguments)),
    function("semver", &[Text, Bool], Semver, |_, arguments| made(arguments)),
    function("isSemver", &[Text], Bool, |_, arguments| read(arguments).map(|found| Value::Bool(found.is_some()))),
    function("isSemver", &[Text, Bool], Bool, |_, arguments| read(arguments).map(|found| Value::Bool(found.is_some()))),
    method("isGreaterThan", &[Semver, Semver], Bool, |_, arguments| {
        order(arguments, |order| Value::Bool(order.is_gt()))
    }),
    method("isLessThan", &[Semver, Semver], Bool, |_, arguments| order(arguments, |order| Value::Bool(order.is_lt()))),
    method("compareTo", &[Semver, Semver], Int, |_, arguments| order(arguments, |order| Value::Int(order as i64))),
    method("major", &[Semver], Int, |_, arguments| part(arguments, |version| version.major)),
    method("minor", &[Semver], Int, |_, arguments| part(arguments, |version| version.minor)),
    method("patch", &[Semver], Int, |_, arguments| part(arguments, |version| version.patch)),
];

fn made<'a>(arguments: &[Value<'a>]) -> Answer<'a> {
    let version = read(arguments)?.map(|version| Value::Semver(Rc::new(version)));
    version.ok_or_else(|| Failure::error("no semantic version"))
}

/// Longest version, in bytes: comparing two takes time in proportion to their length.
const LONGEST: usize = 256;

fn read(arguments: &[Value<'_>]) -> Result<Option<Version>, Failure> {
    match arguments {
        [Value::Text(text), ..] if text.len() > LONGEST => Ok(None),
        [Value::Text(text)] | [Value::Text(text), Value::Bool(false)] => Ok(Version::parse(text).ok()),
        [Value::Text(text), Value::Bool(true)] => {
            Ok(normalized(text).and_then(|version| Version::parse(&version).ok()))
        }
        _ => Err(Failure::no_overload()),
    }
}

/// With three parts, without a `v` and without zeros in front: `v01.5` is 1.5.0.
fn normalized(text: &str) -> Option<String> {
    let mut parts: Vec<String> = text.strip_prefix('v').unwrap_or(text).splitn(3, '.').map(unpadded).collect();
    if parts.len() < 3 && parts.last().is_some_and(|last| last.contains(['+', '-'])) {
        return None;
    }
    parts.resize(3, "0".to_owned());
    Some(parts.join("."))
}

fn unpadded(part: &str) -> String {
    let trimmed = part.trim_start_matches('0');
    let is_number = trimmed.starts_with(|c: char| c.is_ascii_digit());
    if part.len() > 1 && !is_number {
        format!("0{trimmed}")
    } else if is_number {
        trimmed.to_owned()
    } else {
        part.to_owned()
    }
}

fn order<'a>(arguments: &[Value<'a>], answer: fn(Ordering) -> Value<'a>) -> Answer<'a> {
    match arguments {
        [Value::Semver(a), Value::Semver(b)] => Ok(answer(a.cmp_precedence(b))),
        _ => Err(Failure::no_overload()),
    }
}

fn part<'a>(arguments: &[Value<'a>], of: fn(&Version) -> u64) -> Answer<'a> {
    match arguments {
        [Value::Semver(version)] => Ok(Value::Int(i64::try_from(of(version)).unwrap_or(i64::MAX))),
        _ => Err(Failure::no_overload()),
    }
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn versions_are_read_and_compared() {
        holds(&[
            r#"isSemver("1.2.3-alpha.1+build") && !isSemver("v1.2.3") && !isSemver("1.2") && !isSemver("01.2.3")"#,
            r#"isSemver("v1.2.3", true) && isSemver("1", true) && isSemver("01.02.03", true) && !isSemver("v1.2-b", true)"#,
            r#"semver("v1.01", true) == semver("1.1.0") && semver("v0.00.000", true) == semver("0.0.0")"#,
            r#"semver("1.2.3").isGreaterThan(semver("1.2.3-rc.1")) && semver("1.9.0").isLessThan(semver("1.10.0"))"#,
            r#"semver("1.2.3+a").compareTo(semver("1.2.3+b")) == 0 && semver("1.2.3+a") == semver("1.2.3")"#,
            r#"semver("1.2.3").major() == 1 && semver("1.2.3").minor() == 2 && semver("1.2.3").patch() == 3"#,
        ]);
        fails(&[r#"semver("1.2").major() == 1"#, r#"semver("v1.2.3").major() == 1"#]);
    }
}
