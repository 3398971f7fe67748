//! Where a browser on the hub goes, as the WHATWG URL Standard has it for an `https` base (basic
//! URL parser; its states are the steps below). By the standard, and not by the gateway's code.

/// Authority and path that `location` leads to from a page below `prefix`.
pub(super) fn followed(location: &str, prefix: &str) -> (String, String) {
    let text: String = location.trim_matches(|c: char| c <= ' ').chars().filter(|c| !"\t\n\r".contains(*c)).collect();
    let slash = |c: char| c == '/' || c == '\\';
    let scheme = text.split_once(':').filter(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    let (authority, rest) = match scheme {
        // `https:x` is relative to the base, as `x` is; another scheme leads away in any case.
        Some((scheme, rest)) if !scheme.eq_ignore_ascii_case("https") => return (scheme.into(), rest.into()),
        Some((_, rest)) if rest.chars().take_while(|c| slash(*c)).count() >= 2 => authority_of(rest),
        Some((_, rest)) => ("hub".into(), rest.to_owned()),
        None if text.chars().take_while(|c| slash(*c)).count() >= 2 => authority_of(&text),
        None => ("hub".into(), text),
    };
    let path = rest.split(['?', '#']).next().unwrap_or_default();
    let base = if authority == "hub" { format!("{prefix}/dir/page") } else { "/".to_owned() };
    let mut segments: Vec<&str> = if path.starts_with(slash) { Vec::new() } else { base[1..].split('/').collect() };
    segments.pop();
    let path = path.strip_prefix(slash).unwrap_or(path);
    let mut parts = path.split(slash).peekable();
    while let Some(part) = parts.next() {
        match part.to_ascii_lowercase().replace("%2e", ".").as_str() {
            ".." => {
                segments.pop();
                if parts.peek().is_none() {
                    segments.push("");
                }
            }
            "." if parts.peek().is_none() => segments.push(""),
            "." => {}
            _ => segments.push(part),
        }
    }
    (authority, format!("/{}", segments.join("/")))
}

fn authority_of(rest: &str) -> (String, String) {
    let rest = rest.trim_start_matches(['/', '\\']);
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    (rest[..end].into(), rest[end..].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/c1/proxy";

    #[test]
    fn the_tests_browser_goes_where_browsers_go() {
        for (location, authority, path) in [
            ("/a", "hub", "/a"),
            ("/\t/evil/x", "evil", "/x"),
            (" \\/evil\\x", "evil", "/x"),
            ("/a/.\t./%2e/b", "hub", "/b"),
            ("https:\\\\evil", "evil", "/"),
            ("/a/..", "hub", "/"),
        ] {
            assert_eq!(followed(location, PREFIX), (authority.to_owned(), path.to_owned()), "{location:?}");
        }
    }
}
