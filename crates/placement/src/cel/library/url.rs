//! Kubernetes' URLs: absolute ones, or absolute paths (Go's `url.ParseRequestURI`).

use std::rc::Rc;

use super::{Overload, function, method};
use crate::cel::eval::{Answer, Run};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Bool, Map, Text, Url as Kind};
use crate::cel::value::Value;

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

#[derive(Debug, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    host: String,
    path: String,
    /// As it stands in the URL, without `?`.
    query: String,
}

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

/// Names and the lists of their values, in the order in which names come first.
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

// === impl Url ===

impl Url {
    /// Bytes of all its parts.
    pub fn len(&self) -> usize {
        self.scheme.len() + self.host.len() + self.path.len() + self.query.len()
    }

    fn read(text: &str) -> Option<Self> {
        if text.bytes().any(|byte| byte.is_ascii_control()) {
            return None;
        }
        let (before, query) = text.split_once('?').unwrap_or((text, ""));
        let (scheme, rest) = if before.starts_with('/') { ("", before) } else { before.split_once(':')? };
        let is_scheme = scheme.is_empty() || is_scheme(scheme);
        if !is_scheme || !rest.starts_with('/') {
            return None;
        }
        let authority = rest.strip_prefix("//").filter(|_| !scheme.is_empty());
        let (authority, path) = match authority {
            Some(authority) => authority.split_at(authority.find('/').unwrap_or(authority.len())),
            None => ("", rest),
        };
        let host = authority.rsplit('@').next().unwrap_or_default();
        if !is_host(host) || !are_escapes(path) {
            return None;
        }
        let path = escaped(path);
        Some(Self { scheme: scheme.to_ascii_lowercase(), host: host.to_owned(), path, query: query.to_owned() })
    }

    /// Name without brackets, and port.
    fn split_host(&self) -> (&str, &str) {
        if let Some(inside) = self.host.strip_prefix('[') {
            let (name, rest) = inside.split_once(']').unwrap_or((inside, ""));
            return (name, rest.strip_prefix(':').unwrap_or_default());
        }
        self.host.rsplit_once(':').unwrap_or((&self.host, ""))
    }
}

/// Whether `text` is what `url()` takes.
pub fn is_url(text: &str) -> bool {
    Url::read(text).is_some()
}

fn is_scheme(scheme: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_part)
}

fn is_host(host: &str) -> bool {
    let after = match host.strip_prefix('[') {
        Some(inside) => inside.split_once(']').map(|(_, after)| after),
        None => Some(host.find(':').map_or("", |at| &host[at..])),
    };
    let is_port = |port: &str| port.is_empty() || port.strip_prefix(':').is_some_and(is_digits);
    let is_part = |c: char| !c.is_whitespace() && !matches!(c, '"' | '<' | '>' | '\\' | '^' | '`' | '{' | '|' | '}');
    after.is_some_and(is_port) && host.chars().all(is_part) && are_escapes(host)
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn are_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

/// What may not stand in a path is escaped; what is already stays.
fn escaped(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        let c = char::from(byte);
        if c.is_ascii_alphanumeric() || "-_.~$&+,/:;=@!'()*[]%".contains(c) {
            out.push(c);
        } else {
            out.push('%');
            out.extend([byte >> 4, byte & 15].map(|half| char::from(b"0123456789ABCDEF"[usize::from(half)])));
        }
    }
    out
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
