//! `"%s of %d".format([a, b])` of cel-go's strings extension.

mod decimal;

use std::fmt::Write as _;

use self::decimal::{exponent, plain, sign};
use crate::cel::function::{Answer, Overload, Run, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{List, Text};
use crate::cel::value::Value;
use crate::numbers;

pub const OVERLOADS: &[Overload] = &[method("format", &[Text, List], Text, format)];

/// Most digits after the point.
const PRECISION: usize = 100;

fn format<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Text(pattern), Value::List(values)] = arguments else { return Err(Failure::no_overload()) };
    run.meter.charge(pattern.len())?;
    let (mut out, mut rest, mut next) = (String::new(), &**pattern, 0);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (precision, after) = precision(rest)?;
        let clause = after.chars().next().ok_or_else(|| Failure::error("unexpected end of format string"))?;
        rest = &after[clause.len_utf8()..];
        let value = values.get(next).ok_or_else(|| Failure::error(format!("index {next} out of range")))?;
        next += 1;
        let length = out.len();
        written(&mut out, clause, precision, &value, run)?;
        run.meter.charge(1 + out.len() - length)?;
    }
    out.push_str(rest);
    Ok(Value::text(out))
}

fn precision(rest: &str) -> Result<(usize, &str), Failure> {
    let Some(after) = rest.strip_prefix('.') else { return Ok((6, rest)) };
    let length = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
    let digits = after[..length].parse().ok().filter(|digits| *digits <= PRECISION);
    Ok((digits.ok_or_else(|| Failure::error("invalid precision"))?, &after[length..]))
}

fn written(
    out: &mut String,
    clause: char,
    precision: usize,
    value: &Value<'_>,
    run: &mut Run<'_, '_>,
) -> Result<(), Failure> {
    let float = match value {
        Value::Double(value) => Some(*value),
        Value::Int(value) => Some(numbers::float(*value)),
        Value::Uint(value) => Some(numbers::float_of_unsigned(*value)),
        _ => None,
    };
    let written = match (clause, value, float) {
        ('s', value, _) => return plain(out, value, run),
        ('d', Value::Int(value), _) => write!(out, "{value}"),
        ('d', Value::Uint(value), _) => write!(out, "{value}"),
        ('d', Value::Double(value), _) if !value.is_finite() => write!(out, "{value}"),
        ('f', _, Some(value)) => write!(out, "{value:.precision$}"),
        ('e', _, Some(value)) => write!(out, "{}", exponent(value, precision)),
        ('b', Value::Bool(value), _) => write!(out, "{}", u8::from(*value)),
        ('b', Value::Int(value), _) => write!(out, "{}{:b}", sign(*value), value.unsigned_abs()),
        ('b', Value::Uint(value), _) => write!(out, "{value:b}"),
        ('o', Value::Int(value), _) => write!(out, "{}{:o}", sign(*value), value.unsigned_abs()),
        ('o', Value::Uint(value), _) => write!(out, "{value:o}"),
        ('x', Value::Int(value), _) => write!(out, "{}{:x}", sign(*value), value.unsigned_abs()),
        ('x', Value::Uint(value), _) => write!(out, "{value:x}"),
        ('X', Value::Int(value), _) => write!(out, "{}{:X}", sign(*value), value.unsigned_abs()),
        ('X', Value::Uint(value), _) => write!(out, "{value:X}"),
        _ => return Err(Failure::error(format!("no such formatting clause for this value: %{clause}"))),
    };
    written.map_err(|_| Failure::error("cannot format"))
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn values_are_written_by_clauses() {
        holds(&[
            r#""%s is %d%%".format(["a", 5]) == "a is 5%" && "%.2f".format([1.005]) == "1.00" && "%f".format([2]) == "2.000000""#,
            r#""%b %o %x %X".format([5, 8, 255, 255]) == "101 10 ff FF" && "%x".format([-255]) == "-ff""#,
            r#""%e".format([1234.5]) == "1.234500e+03" && "%s".format([[1, "a", {"k": true}]]) == "[1, a, {k: true}]""#,
            r#""%s %s".format([duration("90s"), null]) == "90s null""#,
        ]);
        fails(&[
            r#""%d".format(["a"]) == """#,
            r#""%s".format([]) == """#,
            r#""%q".format([1]) == """#,
            r#""%".format([]) == """#,
        ]);
    }
}
