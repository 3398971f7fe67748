//! Conversions between types, `type` and `size` (CEL's standard definitions).

use std::rc::Rc;

use crate::cel::function::{Answer, Overload, Run, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{self, Bool, Bytes, Double, Duration, Dyn, Int, List, Map, Text, Timestamp, Uint};
use crate::cel::value::Value;
use crate::numbers;

pub const OVERLOADS: &[Overload] = &[
    function("type", &[Dyn], Type::Type, |_, arguments| match arguments {
        [value] => Ok(Value::Type(value.kind())),
        _ => Err(Failure::no_overload()),
    }),
    function("size", &[Text], Int, size),
    function("size", &[Bytes], Int, size),
    function("size", &[List], Int, size),
    function("size", &[Map], Int, size),
    method("size", &[Text], Int, size),
    method("size", &[Bytes], Int, size),
    method("size", &[List], Int, size),
    method("size", &[Map], Int, size),
    function("int", &[Int], Int, int),
    function("int", &[Uint], Int, int),
    function("int", &[Double], Int, int),
    function("int", &[Text], Int, int),
    function("int", &[Timestamp], Int, int),
    function("uint", &[Uint], Uint, uint),
    function("uint", &[Int], Uint, uint),
    function("uint", &[Double], Uint, uint),
    function("uint", &[Text], Uint, uint),
    function("double", &[Double], Double, double),
    function("double", &[Int], Double, double),
    function("double", &[Uint], Double, double),
    function("double", &[Text], Double, double),
    function("string", &[Text], Text, string),
    function("string", &[Bool], Text, string),
    function("string", &[Int], Text, string),
    function("string", &[Uint], Text, string),
    function("string", &[Double], Text, string),
    function("string", &[Bytes], Text, string),
    function("string", &[Timestamp], Text, string),
    function("string", &[Duration], Text, string),
    function("bool", &[Bool], Bool, bool),
    function("bool", &[Text], Bool, bool),
    function("bytes", &[Bytes], Bytes, bytes),
    function("bytes", &[Text], Bytes, bytes),
];

fn size<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    match arguments {
        [Value::Text(text)] => {
            run.meter.traverse(text.len())?;
            Ok(Value::size(text.chars().count()))
        }
        [Value::Bytes(bytes)] => Ok(Value::size(bytes.len())),
        [Value::List(list)] => Ok(Value::size(list.len())),
        [Value::Map(map)] => Ok(Value::size(map.len())),
        _ => Err(Failure::no_overload()),
    }
}

fn int<'a>(_: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let found = match arguments {
        [Value::Int(value)] => Some(*value),
        [Value::Uint(value)] => i64::try_from(*value).ok(),
        [Value::Double(value)] => numbers::exact(value.trunc()),
        [Value::Text(text)] => text.parse().ok(),
        [Value::Timestamp(at)] => Some(at.unix_timestamp()),
        _ => None,
    };
    found.map(Value::Int).ok_or_else(|| Failure::error("cannot convert to int"))
}

fn uint<'a>(_: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let found = match arguments {
        [Value::Uint(value)] => Some(*value),
        [Value::Int(value)] => u64::try_from(*value).ok(),
        [Value::Double(value)] => numbers::exact(value.trunc()).and_then(|value| u64::try_from(value).ok()),
        [Value::Text(text)] => text.parse().ok(),
        _ => None,
    };
    found.map(Value::Uint).ok_or_else(|| Failure::error("cannot convert to uint"))
}

fn double<'a>(_: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let found = match arguments {
        [Value::Double(value)] => Some(*value),
        [Value::Int(value)] => Some(numbers::float(*value)),
        [Value::Uint(value)] => Some(numbers::float_of_unsigned(*value)),
        [Value::Text(text)] => text.parse().ok(),
        _ => None,
    };
    found.map(Value::Double).ok_or_else(|| Failure::error("cannot convert to double"))
}

fn string<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let found = match arguments {
        [text @ Value::Text(_)] => return Ok(text.clone()),
        [Value::Bool(value)] => Some(value.to_string()),
        [Value::Int(value)] => Some(value.to_string()),
        [Value::Uint(value)] => Some(value.to_string()),
        [Value::Double(value)] => Some(value.to_string()),
        [Value::Bytes(bytes)] => {
            run.meter.traverse(bytes.len())?;
            String::from_utf8(bytes.to_vec()).ok()
        }
        [Value::Timestamp(at)] => at.format(&time::format_description::well_known::Rfc3339).ok(),
        [Value::Duration(duration)] => Some(crate::durations::written(*duration)),
        _ => None,
    };
    let found = found.ok_or_else(|| Failure::error("cannot convert to string"))?;
    run.meter.traverse(found.len())?;
    Ok(Value::text(found))
}

fn bool<'a>(_: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    match arguments {
        [value @ Value::Bool(_)] => Ok(value.clone()),
        [Value::Text(text)] => match &**text {
            "true" | "True" | "TRUE" | "t" | "T" | "1" => Ok(Value::Bool(true)),
            "false" | "False" | "FALSE" | "f" | "F" | "0" => Ok(Value::Bool(false)),
            _ => Err(Failure::error("cannot convert to bool")),
        },
        _ => Err(Failure::no_overload()),
    }
}

fn bytes<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    match arguments {
        [value @ Value::Bytes(_)] => Ok(value.clone()),
        [Value::Text(text)] => {
            run.meter.traverse(text.len())?;
            Ok(Value::Bytes(Rc::from(text.as_bytes())))
        }
        _ => Err(Failure::no_overload()),
    }
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn values_become_others() {
        holds(&[
            r#"int("-7") == -7 && int(3.9) == 3 && int(7u) == 7"#,
            r#"uint(7) == 7u && double("1.5") == 1.5 && string(12) == "12" && string(true) == "true""#,
            r#"bool("true") && string(b"a") == "a" && bytes("a") == b"a""#,
            r#"type(1) == int && type("") == string && type([]) == list && type({}) == map"#,
            r#"size("äß") == 2 && [1, 2].size() == 2 && size({"a": 1}) == 1 && b"abc".size() == 3"#,
            r#"string(duration("90s")) == "90s" && int(timestamp("1970-01-01T00:01:00Z")) == 60"#,
        ]);
    }

    #[test]
    fn what_does_not_fit_fails() {
        fails(&[r#"int("x") == 0"#, "int(1e300) == 0", "uint(-1) == 0u", r#"bool("yes")"#, r#"string(b"\xff") == """#]);
    }
}
