//! Absolute URLs, or absolute paths (Go's `url.ParseRequestURI`).

#[derive(Debug, PartialEq, Eq)]
pub struct Url {
    pub scheme: String,
    pub host: String,
    pub path: String,
    /// As in the URL, without `?`.
    pub query: String,
}

// === impl Url ===

impl Url {
    /// Bytes of all its parts.
    pub fn len(&self) -> usize {
        self.scheme.len() + self.host.len() + self.path.len() + self.query.len()
    }

    /// `None` if `text` is not a URL.
    pub fn read(text: &str) -> Option<Self> {
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
    pub fn split_host(&self) -> (&str, &str) {
        if let Some(inside) = self.host.strip_prefix('[') {
            let (name, rest) = inside.split_once(']').unwrap_or((inside, ""));
            return (name, rest.strip_prefix(':').unwrap_or_default());
        }
        self.host.rsplit_once(':').unwrap_or((&self.host, ""))
    }
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

/// Escapes what may not be in a path; existing escapes stay.
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
