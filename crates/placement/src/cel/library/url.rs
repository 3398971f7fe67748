//! Kubernetes' URLs.

use std::rc::Rc;

use crate::cel::function::{Answer, Overload, Run, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Bool, Map, Text, Url as Kind};
use crate::cel::value::{Url, Value};

pub const OVERLOADS: &[Overload] = &[
    function("url", &[Text], Kind, |run, arguments| {
        let url =
            read(run, arguments)?.ok_or_else(|| Failure::error("URL parse error during conversion from string"))?;
        Ok(Value::Url(Rc::new(url)))
    }),
    function("isURL", &[Text], Bool, |run, arguments| Ok(Value::Bool(read(run, arguments)?.is_some()))),
    method("getScheme", &[Kind], Text, |run, arguments| part(run, arguments, |url| &url.scheme)),
    method("getHost", &[Kind], Text, |run, arguments| part(run, arguments, |url| &url.host)),
    method("getHostname", &[Kind], Text, |run, arguments| part(run, arguments, |url| url.split_host().0)),
    method("getPort", &[Kind], Text, |run, arguments| part(run, arguments, |url| url.split_host().1)),
    method("getEscapedPath", &[Kind], Text, |run, arguments| part(run, arguments, |url| &url.path)),
    method("getQuery", &[Kind], Map, query),
];

fn read(run: &mut Run<'_, '_>, arguments: &[Value<'_>]) -> Result<Option<Url>, Failure> {
    let [Value::Text(text)] = arguments else { return Err(Failure::no_overload()) };
    run.meter.traverse(4 * text.len())?;
    Ok(Url::read(text))
}

fn part<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>], of: fn(&Url) -> &str) -> Answer<'a> {
    let [Value::Url(url)] = arguments else { return Err(Failure::no_overload()) };
    let text = of(url);
    run.meter.traverse(text.len())?;
    Ok(Value::text(text))
}

/// Names and the lists of their values, in the order in which the names first occur.
fn query<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Url(url)] = arguments else { return Err(Failure::no_overload()) };
    let mut found: Vec<(String, Vec<Value<'a>>)> = Vec::new();
    for pair in url.query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')) {
        run.meter.charge(found.len() + 1)?;
        run.meter.traverse(pair.len())?;
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (Some(name), Some(value)) = (unescaped(name), unescaped(value)) else { continue };
        match found.iter_mut().find(|(known, _)| *known == name) {
            Some((_, values)) => values.push(Value::text(value)),
            None => found.push((name, vec![Value::text(value)])),
        }
    }
    Ok(Value::map(found.into_iter().map(|(name, values)| (Value::text(name), Value::list(values))).collect()))
}

fn unescaped(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => hex(rest.next()?)? * 16 + hex(rest.next()?)?,
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn urls_have_parts() {
        holds(&[
            "isURL('https://user:pass@example.com:80/query') && isURL('/absolute-path') && !isURL('../relative')",
            "!isURL('https://a:b:c/') && !isURL('example.com') && !isURL('https://a b/') && !isURL('') && !isURL('/a%2')",
            "url('https://example.com:80/').getHost() == 'example.com:80' && url('/path').getHost() == ''",
            "url('https://example.com:80/').getHostname() == 'example.com' && url('https://[::1]:80/').getHostname() == '::1'",
            "url('https://[::1]:80/').getPort() == '80' && url('https://example.com/').getPort() == ''",
            "url('HTTPS://e/path with spaces/').getScheme() == 'https' && url('/p').getScheme() == ''",
            "url('https://e/path with spaces/').getEscapedPath() == '/path%20with%20spaces/' && url('https://e').getEscapedPath() == ''",
            "url('https://e/?a=1&b=x%20y&a=2&c').getQuery() == {'a': ['1', '2'], 'b': ['x y'], 'c': ['']}",
            "url('https://e/').getQuery() == {} && url('https://e/a') == url('https://e/a')",
        ]);
        fails(&["url('x').getHost() == ''"]);
    }
}
