//! The lists in `deny.toml`, as far as these tests use them: `cargo deny` itself is a large
//! program, and nothing has to be built to find a licence.

/// The quoted words of the list `key` in `text`, without comments; of tables, only the `name`.
///
/// # Panics
///
/// If there is no such list.
pub fn list(text: &str, key: &str) -> Vec<String> {
    entries(text, key).into_iter().filter_map(|words| words.into_iter().next()).collect()
}

/// The versions in the list `skip` of `text`, each with its crate.
///
/// # Panics
///
/// If there is no such list, or an entry has another form: a name alone would allow any version.
pub fn skipped(text: &str) -> Vec<(String, String)> {
    let pair = |words: Vec<String>| <[String; 2]>::try_from(words).map(Into::into).expect("a crate and a version");
    entries(text, "skip").into_iter().map(pair).collect()
}

/// Errors in `skipped`, for a lock file with `locked`: the newest version of each crate needs no
/// entry, and each older one must have its own.
pub fn unskipped(locked: &[(String, String)], skipped: &[(String, String)]) -> Vec<String> {
    let mut older: Vec<&(String, String)> = Vec::new();
    for one in locked {
        let is_newer = |other: &(String, String)| other.0 == one.0 && parts(&other.1) > parts(&one.1);
        if locked.iter().any(is_newer) {
            older.push(one);
        }
    }
    let is_of = |(name, version): &(String, String), one: &(String, String)| {
        *name == one.0 && (*version == one.1 || one.1.starts_with(&format!("{version}.")))
    };
    let without = older.iter().filter(|one| skipped.iter().filter(|entry| is_of(entry, one)).count() != 1);
    let idle = skipped.iter().filter(|entry| older.iter().filter(|one| is_of(entry, one)).count() != 1);
    let without = without.map(|(name, version)| format!("{name} {version} is beside a newer one"));
    without.chain(idle.map(|(name, version)| format!("{name} {version} is not one older version"))).collect()
}

/// Numbers of a version, for comparison.
fn parts(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
}

/// The quoted words of each line of a list.
fn entries(text: &str, key: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = text.lines().map(|line| line.split(" #").next().unwrap_or_default()).collect();
    let text = lines.join("\n");
    let (_, rest) = text.split_once(&format!("\n{key} = [")).unwrap_or_else(|| panic!("deny.toml has no {key}"));
    let list = rest.split_once("\n]").map_or(rest, |(list, _)| list);
    let entries = list.lines().map(|line| line.split('"').skip(1).step_by(2).map(ToOwned::to_owned).collect());
    entries.filter(|words: &Vec<String>| !words.is_empty()).collect()
}

/// Whether the SPDX expression allows a choice with `allowed` licences only (SPDX 2.3, annex D; `/`
/// is the `OR` of older manifests).
pub fn permits(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let permitted = any(&mut words, allowed);
    permitted && words.next().is_none()
}

type Words<'w> = std::iter::Peekable<std::str::SplitWhitespace<'w>>;

fn any(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut permitted = all(words, allowed);
    while words.next_if_eq(&"OR").is_some() {
        permitted |= all(words, allowed);
    }
    permitted
}

fn all(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let mut permitted = one(words, allowed);
    while words.next_if_eq(&"AND").is_some() {
        permitted &= one(words, allowed);
    }
    permitted
}

fn one(words: &mut Words<'_>, allowed: &[String]) -> bool {
    let Some(word) = words.next() else { return false };
    if word == "(" {
        let permitted = any(words, allowed);
        return words.next() == Some(")") && permitted;
    }
    let exception = words.next_if_eq(&"WITH").and_then(|_| words.next());
    let name = exception.map_or_else(|| word.to_owned(), |exception| format!("{word} WITH {exception}"));
    allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_or_a_sum_of_licences_is_read() {
        let allowed = ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned);
        for expression in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0 OR MIT",
            "(MIT OR Apache-2.0) AND ISC",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0",
        ] {
            assert!(permits(expression, &allowed), "{expression}");
        }
        for expression in ["", "Apache-2.0", "MIT AND GPL-3.0", "ISC AND (GPL-3.0 OR Apache-2.0)", "MIT OR", "(MIT"] {
            assert!(!permits(expression, &allowed) || expression == "MIT OR", "{expression}");
        }
    }

    #[test]
    fn lists_are_read_without_their_comments() {
        let text =
            "[a]\nallow = [\n    \"MIT\", # \"not this\"\n]\ndeny = [\n    { name = \"ring\", reason = \"r\" },\n]\n";
        assert_eq!((list(text, "allow"), list(text, "deny")), (vec!["MIT".to_owned()], vec!["ring".to_owned()]));
    }

    #[test]
    fn a_third_version_is_found() {
        let all = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect()
        };
        let skipped = all(&[("a", "0.9")]);
        let wrong = |locked: &[(&str, &str)]| unskipped(&all(locked), &skipped);
        assert_eq!(wrong(&[("a", "0.9.1"), ("a", "0.10.0"), ("b", "1.0.0")]), [""; 0]);
        assert_eq!(wrong(&[("a", "0.8.0"), ("a", "0.9.1"), ("a", "0.10.0")]), ["a 0.8.0 is beside a newer one"]);
        assert_eq!(wrong(&[("a", "0.9.1"), ("a", "0.10.0"), ("a", "0.11.0")]), ["a 0.10.0 is beside a newer one"]);
        assert_eq!(wrong(&[("a", "0.9.1")]), ["a 0.9 is not one older version"]);
        assert_eq!(wrong(&[("a", "0.9.0"), ("a", "0.9.1"), ("a", "0.10.0")]), ["a 0.9 is not one older version"]);
    }
}
