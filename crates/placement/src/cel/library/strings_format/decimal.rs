//! Numbers in decimal notation.

use std::fmt::Write as _;

use crate::cel::function::Run;
use crate::cel::meter::Failure;
use crate::cel::value::Value;

/// Writes the exponent with a sign and two digits, as Go does.
pub(super) fn exponent(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            format!("{digits}e{sign}{exponent:0>2}")
        }
        None => text,
    }
}

pub(super) fn sign(value: i64) -> &'static str {
    if value < 0 { "-" } else { "" }
}

pub(super) fn plain(out: &mut String, value: &Value<'_>, run: &mut Run<'_, '_>) -> Result<(), Failure> {
    run.meter.charge(1)?;
    let written = match value {
        Value::Null => write!(out, "null"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        Value::Uint(value) => write!(out, "{value}"),
        Value::Double(value) => write!(out, "{value}"),
        Value::Text(text) => {
            run.meter.traverse(text.len())?;
            write!(out, "{}", &**text)
        }
        Value::Type(kind) => write!(out, "{kind}"),
        Value::Duration(span) => write!(out, "{}", crate::durations::written(*span)),
        Value::Timestamp(at) => {
            let text = at.format(&time::format_description::well_known::Rfc3339);
            write!(out, "{}", text.unwrap_or_default())
        }
        Value::List(list) => {
            out.push('[');
            for (at, value) in list.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                plain(out, &value, run)?;
            }
            write!(out, "]")
        }
        Value::Map(map) => {
            run.meter.charge(2 * map.len())?;
            out.push('{');
            for (at, (key, value)) in map.keys().iter().zip(map.values()).enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                plain(out, key, run)?;
                out.push_str(": ");
                plain(out, &value, run)?;
            }
            write!(out, "}}")
        }
        _ => return Err(Failure::error("no such formatting clause for this value: %s")),
    };
    written.map_err(|_| Failure::error("cannot format"))
}
