//! Timestamps and durations (CEL's standard definitions). Zones are UTC or an offset: `+01:00`. An
//! expression with any other literal zone is refused ([`super::check_zone`]).

use ::time::format_description::well_known::Rfc3339;
use ::time::{Duration as Span, OffsetDateTime, UtcOffset};

use crate::cel::function::{Answer, Overload, Run, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Duration, Int, Text, Timestamp};
use crate::cel::value::Value;
use crate::durations;

pub const OVERLOADS: &[Overload] = &[
    function("timestamp", &[Text], Timestamp, timestamp),
    function("timestamp", &[Int], Timestamp, timestamp),
    function("timestamp", &[Timestamp], Timestamp, timestamp),
    function("duration", &[Text], Duration, duration),
    function("duration", &[Int], Duration, duration),
    function("duration", &[Duration], Duration, duration),
    method("getFullYear", &[Timestamp], Int, |_, arguments| part(arguments, |at| i64::from(at.year()))),
    method("getFullYear", &[Timestamp, Text], Int, |_, arguments| part(arguments, |at| i64::from(at.year()))),
    method("getMonth", &[Timestamp], Int, |_, arguments| part(arguments, month)),
    method("getMonth", &[Timestamp, Text], Int, |_, arguments| part(arguments, month)),
    method("getDate", &[Timestamp], Int, |_, arguments| part(arguments, |at| i64::from(at.day()))),
    method("getDate", &[Timestamp, Text], Int, |_, arguments| part(arguments, |at| i64::from(at.day()))),
    method("getDayOfMonth", &[Timestamp], Int, |_, arguments| part(arguments, |at| i64::from(at.day()) - 1)),
    method("getDayOfMonth", &[Timestamp, Text], Int, |_, arguments| part(arguments, |at| i64::from(at.day()) - 1)),
    method("getDayOfWeek", &[Timestamp], Int, |_, arguments| part(arguments, weekday)),
    method("getDayOfWeek", &[Timestamp, Text], Int, |_, arguments| part(arguments, weekday)),
    method("getDayOfYear", &[Timestamp], Int, |_, arguments| part(arguments, |at| i64::from(at.ordinal()) - 1)),
    method("getDayOfYear", &[Timestamp, Text], Int, |_, arguments| part(arguments, |at| i64::from(at.ordinal()) - 1)),
    method("getHours", &[Timestamp], Int, |_, arguments| part(arguments, |at| i64::from(at.hour()))),
    method("getHours", &[Timestamp, Text], Int, |_, arguments| part(arguments, |at| i64::from(at.hour()))),
    method("getHours", &[Duration], Int, |_, arguments| span(arguments, Span::whole_hours)),
    method("getMinutes", &[Timestamp], Int, |_, arguments| part(arguments, |at| i64::from(at.minute()))),
    method("getMinutes", &[Timestamp, Text], Int, |_, arguments| part(arguments, |at| i64::from(at.minute()))),
    method("getMinutes", &[Duration], Int, |_, arguments| span(arguments, Span::whole_minutes)),
    method("getSeconds", &[Timestamp], Int, |_, arguments| part(arguments, |at| i64::from(at.second()))),
    method("getSeconds", &[Timestamp, Text], Int, |_, arguments| part(arguments, |at| i64::from(at.second()))),
    method("getSeconds", &[Duration], Int, |_, arguments| span(arguments, Span::whole_seconds)),
    method("getMilliseconds", &[Timestamp], Int, |_, arguments| part(arguments, |at| i64::from(at.millisecond()))),
    method("getMilliseconds", &[Duration], Int, |_, arguments| {
        span(arguments, |span| i64::from(span.subsec_milliseconds()))
    }),
];

fn timestamp<'a>(_: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let found = match arguments {
        [Value::Timestamp(at)] => Some(*at),
        [Value::Text(text)] => OffsetDateTime::parse(text, &Rfc3339).ok(),
        [Value::Int(seconds)] => OffsetDateTime::from_unix_timestamp(*seconds).ok(),
        _ => None,
    };
    // At the ends of the calendar, a time cannot be written in another zone.
    let found = found.and_then(|at| at.checked_to_offset(UtcOffset::UTC)).map(Value::Timestamp);
    found.ok_or_else(|| Failure::error("cannot convert to timestamp"))
}

fn duration<'a>(_: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let found = match arguments {
        [Value::Duration(duration)] => Some(*duration),
        [Value::Text(text)] => durations::read(text),
        // At most as many seconds as Go's nanoseconds can hold.
        [Value::Int(seconds)] => seconds.checked_mul(1_000_000_000).map(Span::nanoseconds),
        _ => None,
    };
    found.map(Value::Duration).ok_or_else(|| Failure::error("cannot convert to duration"))
}

fn part<'a>(arguments: &[Value<'a>], of: impl Fn(OffsetDateTime) -> i64) -> Answer<'a> {
    let (at, zone) = match arguments {
        [Value::Timestamp(at)] => (*at, UtcOffset::UTC),
        [Value::Timestamp(at), Value::Text(zone)] => {
            let unknown = || Failure::error(format!("unknown time zone {}", &**zone));
            (*at, offset(zone).ok_or_else(unknown)?)
        }
        _ => return Err(Failure::no_overload()),
    };
    let at = at.checked_to_offset(zone).ok_or_else(|| Failure::error("no such time"))?;
    Ok(Value::Int(of(at)))
}

/// `None` for an unknown zone.
pub fn offset(zone: &str) -> Option<UtcOffset> {
    if matches!(zone, "UTC" | "Z" | "") {
        return Some(UtcOffset::UTC);
    }
    let (hours, minutes) = zone.trim_start_matches(['+', '-']).split_once(':')?;
    let number = |text: &str| text.parse::<i8>().ok().filter(|_| text.len() == 2);
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    UtcOffset::from_hms(sign * hours, sign * minutes, 0).ok()
}

fn month(at: OffsetDateTime) -> i64 {
    i64::from(u8::from(at.month())) - 1
}

fn weekday(at: OffsetDateTime) -> i64 {
    i64::from(at.weekday().number_days_from_sunday())
}

fn span<'a>(arguments: &[Value<'a>], of: impl Fn(Span) -> i64) -> Answer<'a> {
    match arguments {
        [Value::Duration(span)] => Ok(Value::Int(of(*span))),
        _ => Err(Failure::no_overload()),
    }
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds, refused};

    #[test]
    fn times_have_parts_and_differences() {
        holds(&[
            "timestamp('2026-03-01T12:30:45.5Z').getFullYear() == 2026",
            "timestamp('2026-03-01T12:30:45.5Z').getMonth() == 2 && timestamp(0).getDayOfWeek() == 4",
            "timestamp('2026-03-01T23:30:00Z').getHours('+01:00') == 0 && timestamp(0).getHours('-02:30') == 21",
            "timestamp('2026-03-01T00:00:00Z').getDate() == 1 && timestamp('2026-03-01T00:00:00Z').getDayOfYear() == 59",
            "timestamp('2026-03-01T12:30:45.5Z').getMilliseconds() == 500",
            "timestamp('2026-03-01T01:00:00+01:00') == timestamp('2026-03-01T00:00:00Z')",
            "timestamp('2026-03-01T00:00:00Z') - timestamp('2026-02-28T00:00:00Z') == duration('24h')",
            "timestamp('2026-03-01T00:00:00Z') + duration('1s') > timestamp('2026-03-01T00:00:00Z')",
        ]);
    }

    #[test]
    fn durations_are_read_as_go_does() {
        holds(&[
            "duration('1h30m') == duration('5400s') && duration('-1.5s') == duration('-1500ms')",
            "duration('1.5h').getMinutes() == 90 && duration('90s').getSeconds() == 90",
            "string(duration('1500ms')) == '1.5s' && string(duration('-2h')) == '-7200s' && duration('0') == duration('0s')",
        ]);
        fails(&[
            "duration('1') == duration('0s')",
            "duration('') == duration('0s')",
            "duration('1d') == duration('24h')",
            "timestamp('yesterday') == timestamp(0)",
            "timestamp(0).getHours(managedCluster.metadata.name) == 1",
        ]);
    }

    /// A bad zone in the text of an object is an error of the evaluation; one in the text of the
    /// expression is a fault of the expression.
    #[test]
    fn a_zone_that_is_written_there_is_one() {
        refused(&[
            "timestamp(0).getHours('Europe/Berlin') == 1",
            "timestamp(managedCluster.metadata.at).getDayOfWeek('Local') == 1",
            "managedCluster.metadata.at.getFullYear('+1:00') == 1970",
            "false && timestamp(0).getMinutes('CET') == 0",
        ]);
        holds(&["timestamp(0).getHours('UTC') == 0 && timestamp(0).getHours('') == 0", "'a'.indexOf('CET') == -1"]);
    }
}
