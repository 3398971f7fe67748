//! Kubernetes' named formats of strings: `format.dns1123Label().validate("a")`.

use crate::cel::function::{Answer, Overload, Run, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Format as Kind, Optional, Text};
use crate::cel::value::{Format, Url, Value};
use crate::names;

static FORMATS: [Format; 13] = [
    known(
        "dns1123Label",
        |text| names::is_label(text, 63),
        "must be lower case letters, digits or '-' (RFC 1123 label)",
    ),
    known("dns1123Subdomain", names::is_subdomain, "must be labels joined by '.' (RFC 1123 subdomain)"),
    known("dns1035Label", |text| names::is_dns1035(text, 63), "must begin with a letter (RFC 1035 label)"),
    known("qualifiedName", names::is_qualified, "must be a name, with a subdomain and '/' before it or not"),
    known(
        "dns1123LabelPrefix",
        |text| is_prefix(text, |text| names::is_label(text, 63)),
        "must begin a RFC 1123 label",
    ),
    known("dns1123SubdomainPrefix", |text| is_prefix(text, names::is_subdomain), "must begin a RFC 1123 subdomain"),
    known(
        "dns1035LabelPrefix",
        |text| is_prefix(text, |text| names::is_dns1035(text, 63)),
        "must begin a RFC 1035 label",
    ),
    known("labelValue", names::is_label_value, "must be empty, or letters, digits, '-', '_' and '.'"),
    known("uri", |text| Url::read(text).is_some(), "must be an absolute URI or an absolute path"),
    known("uuid", is_uuid, "must be a UUID"),
    known("byte", is_base64, "must be base64"),
    known("date", is_date, "must be a date (RFC 3339)"),
    known("datetime", is_datetime, "must be a date and a time (RFC 3339)"),
];

pub const OVERLOADS: &[Overload] = &[
    function("format.named", &[Text], Optional, named),
    function("format.dns1123Label", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[0]))),
    function("format.dns1123Subdomain", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[1]))),
    function("format.dns1035Label", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[2]))),
    function("format.qualifiedName", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[3]))),
    function("format.dns1123LabelPrefix", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[4]))),
    function("format.dns1123SubdomainPrefix", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[5]))),
    function("format.dns1035LabelPrefix", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[6]))),
    function("format.labelValue", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[7]))),
    function("format.uri", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[8]))),
    function("format.uuid", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[9]))),
    function("format.byte", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[10]))),
    function("format.date", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[11]))),
    function("format.datetime", &[], Kind, |_, _| Ok(Value::Format(&FORMATS[12]))),
    method("validate", &[Kind, Text], Optional, validate),
];

const fn known(name: &'static str, is_valid: fn(&str) -> bool, why: &'static str) -> Format {
    Format { name, is_valid, why }
}

fn named<'a>(_: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Text(name)] = arguments else { return Err(Failure::no_overload()) };
    Ok(Value::optional(FORMATS.iter().find(|known| *known.name == **name).map(Value::Format)))
}

/// Empty if the text has the format, else a list of what is wrong.
fn validate<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Format(format), Value::Text(text)] = arguments else { return Err(Failure::no_overload()) };
    run.meter.charge(text.len())?;
    let wrong = (!(format.is_valid)(text)).then(|| Value::list(vec![Value::from(format.why)]));
    Ok(Value::optional(wrong))
}

/// Prefixes of generated names end in `-`: a suffix completes them.
fn is_prefix(text: &str, is_whole: impl Fn(&str) -> bool) -> bool {
    text.strip_suffix('-').map_or_else(|| is_whole(text), |start| is_whole(&format!("{start}a")))
}

fn is_uuid(text: &str) -> bool {
    let text = text.replace('-', "");
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_base64(text: &str) -> bool {
    let data = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    !text.is_empty() && text.len().is_multiple_of(4) && text.len() - data.len() <= 2 && data.bytes().all(is_digit)
}

fn is_date(text: &str) -> bool {
    is_datetime(&format!("{text}T00:00:00Z"))
}

fn is_datetime(text: &str) -> bool {
    time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).is_ok()
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn formats_say_what_is_wrong() {
        holds(&[
            "!format.dns1123Label().validate('my-label').hasValue() && format.dns1123Label().validate('My').hasValue()",
            "format.dns1123Label().validate('a.b').value().size() == 1 && !format.dns1123Subdomain().validate('a.b').hasValue()",
            "format.dns1035Label().validate('1a').hasValue() && !format.dns1123LabelPrefix().validate('a-').hasValue()",
            "!format.qualifiedName().validate('a.io/b_c').hasValue() && format.qualifiedName().validate('/b').hasValue()",
            "!format.labelValue().validate('').hasValue() && format.labelValue().validate('-a').hasValue()",
            "!format.uri().validate('https://a/').hasValue() && format.uri().validate('a').hasValue()",
            "!format.uuid().validate('123e4567-e89b-12d3-a456-426614174000').hasValue() && format.uuid().validate('1').hasValue()",
            "!format.byte().validate('aGVsbG8=').hasValue() && format.byte().validate('aGVsbG8').hasValue()",
            "!format.date().validate('2021-01-01').hasValue() && format.date().validate('2021-13-01').hasValue()",
            "!format.datetime().validate('2021-01-01T00:00:00Z').hasValue() && format.datetime().validate('2021').hasValue()",
            "!format.named('uri').value().validate('/a').hasValue() && !format.named('none').hasValue()",
        ]);
        fails(&["format.named('none').value().validate('a').hasValue()"]);
    }
}
