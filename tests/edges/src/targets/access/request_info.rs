//! `RequestInfoFactory.NewRequestInfo` (`k8s.io/apiserver/pkg/endpoints/request/requestinfo.go`),
//! line by line, on a request's target as Go's `net/http` parses it.

/// Kubernetes' reading of a request.
#[derive(Debug, Default)]
pub struct Info {
    pub is_resource: bool,
    /// Decoded.
    pub path: String,
    pub verb: String,
    pub group: String,
    pub version: String,
    pub namespace: String,
    pub resource: String,
    pub subresource: String,
    /// Name in the path alone.
    pub name: String,
    pub field_selector: String,
    pub label_selector: String,
    selecting: Vec<String>,
}

/// `net/url.unescape(path, encodePath)`, and bytes that are no text as Go's JSON has them. `None`:
/// an invalid escape.
pub fn decoded(path: &str) -> Option<String> {
    unescape(path, false)
}

/// `None` where `NewRequestInfo` fails. `path` is decoded, `query` is not.
pub fn read(method: &str, path: &str, query: Option<&str>) -> Option<Info> {
    let mut info = Info { path: path.to_owned(), verb: method.to_lowercase(), ..Info::default() };
    let trimmed = path.trim_matches('/');
    let mut parts: Vec<&str> = if trimmed.is_empty() { Vec::new() } else { trimmed.split('/').collect() };
    if parts.len() < 3 || !["api", "apis"].contains(&parts[0]) {
        return Some(info);
    }
    if parts.remove(0) == "apis" {
        if parts.len() < 3 {
            return Some(info);
        }
        info.group = String::from(parts.remove(0));
    }
    info.is_resource = true;
    info.version = String::from(parts.remove(0));
    let by_path = ["watch", "proxy"].contains(&parts[0]);
    info.verb = if by_path {
        if parts.len() < 2 {
            return None;
        }
        parts.remove(0).to_owned()
    } else {
        verb(method).to_owned()
    };
    if parts[0] == "namespaces" && parts.len() > 1 {
        info.namespace = String::from(parts[1]);
        if parts.len() > 2 && !["status", "finalize"].contains(&parts[2]) {
            parts.drain(..2);
        }
    }
    if parts.len() >= 3 && info.verb != "proxy" {
        info.subresource = String::from(parts[2]);
    }
    info.name = String::from(parts.get(1).copied().unwrap_or_default());
    info.resource = String::from(parts[0]);
    info.read_query(&values(query.unwrap_or_default()), by_path);
    Some(info)
}

fn verb(method: &str) -> &'static str {
    match method {
        "POST" => "create",
        "GET" | "HEAD" => "get",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "",
    }
}

/// `net/url.ParseQuery`, without the pairs for which it returns an error.
fn values(query: &str) -> Vec<(String, String)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.filter_map(|(key, value)| Some((unescape(key, true)?, unescape(value, true)?))).collect()
}

fn unescape(text: &str, in_query: bool) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [] => return Some(String::from_utf8_lossy(&bytes).into_owned()),
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let digits = [*high, *low].map(char::from).iter().collect::<String>();
                bytes.push(u8::from_str_radix(&digits, 16).ok()?);
                rest
            }
            [b'%', ..] => return None,
            [b'+', rest @ ..] if in_query => {
                bytes.push(b' ');
                rest
            }
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        }
    }
}

// === impl Info ===

impl Info {
    /// Whether `fieldSelector` may select the one object `name`: a bound, since
    /// `k8s.io/apimachinery` decodes the options, which another test compares with the real one.
    pub fn may_select(&self, name: &str) -> bool {
        self.selecting.iter().any(|term| {
            term.strip_prefix("metadata.name").is_some_and(|rest| unescaped(rest.trim_start_matches('=')) == name)
        })
    }

    /// Whether `other` asks for the same operation on the same object.
    pub fn same_object(&self, other: &Self) -> bool {
        let about = |info: &Self| {
            [&info.verb, &info.group, &info.version, &info.namespace, &info.resource, &info.subresource, &info.name]
                .map(Clone::clone)
        };
        self.is_resource == other.is_resource && about(self) == about(other)
    }

    fn read_query(&mut self, values: &[(String, String)], by_path: bool) {
        let first = |wanted: &str| values.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str());
        if self.name.is_empty() && self.verb == "get" {
            // `runtime.Convert_Slice_string_To_bool`.
            let watches = first("watch").is_some_and(|value| !["0", "false"].contains(&&*value.to_lowercase()));
            self.verb = String::from(if watches { "watch" } else { "list" });
            let selector = first("fieldSelector").unwrap_or_default();
            self.selecting = terms(selector);
        }
        if self.name.is_empty() && self.verb == "delete" {
            self.verb = String::from("deletecollection");
        }
        if !by_path && ["list", "watch", "deletecollection"].contains(&&*self.verb) {
            self.field_selector = String::from(first("fieldSelector").unwrap_or_default());
            self.label_selector = String::from(first("labelSelector").unwrap_or_default());
        }
    }
}

/// The terms of a field selector, which commas separate (`fields.splitTerms`).
fn terms(selector: &str) -> Vec<String> {
    let (mut terms, mut is_escaped) = (vec![String::new()], false);
    for character in selector.chars() {
        if character == ',' && !is_escaped {
            terms.push(String::new());
            continue;
        }
        is_escaped = character == '\\' && !is_escaped;
        terms.last_mut().expect("there is one").push(character);
    }
    terms
}

/// `fields.UnescapeValue`, for the values that it accepts.
fn unescaped(value: &str) -> String {
    let mut characters = value.chars();
    std::iter::from_fn(|| {
        characters.next().and_then(|first| if first == '\\' { characters.next() } else { Some(first) })
    })
    .collect()
}
