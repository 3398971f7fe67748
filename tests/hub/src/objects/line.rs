//! A line that names or selects objects, in kubectl's words.

use anyhow::{Context as _, Result, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Resource;

/// A flag with a value, for lines that change something.
pub(super) const MANAGER: &str = "--field-manager";

/// `KIND,… [NAME …] [KEY=VALUE|KEY- …] [-n NAMESPACE | -A] [-l SELECTOR]
/// [--field-selector SELECTOR] [FLAG …]`, as kubectl takes them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub kinds: Vec<&'a str>,
    pub names: Vec<&'a str>,
    /// Labels or annotations; `None` removes one.
    pub marks: Vec<(&'a str, Option<&'a str>)>,
    pub flags: Vec<&'a str>,
    /// The field manager, if not kubectl's default.
    pub manager: Option<&'a str>,
    namespace: Option<&'a str>,
    is_of_all_namespaces: bool,
    selector: Option<&'a str>,
    fields: Option<&'a str>,
}

// === impl Line ===

impl<'a> Line<'a> {
    /// Parses a line without flags.
    pub fn parse(line: &'a str) -> Result<Self> {
        Self::with_flags(line, &[])
    }

    /// Parses a line with any of these flags, which the caller interprets.
    pub fn with_flags(line: &'a str, flags: &[&str]) -> Result<Self> {
        let mut words = line.split_whitespace();
        let kinds = words.next().context("a kind")?.split(',').collect();
        let mut read = Self { kinds, ..Self::default() };
        while let Some(word) = words.next() {
            match word {
                "-n" => read.namespace = words.next(),
                "-A" => read.is_of_all_namespaces = true,
                "-l" => read.selector = words.next(),
                "--field-selector" => read.fields = words.next(),
                flag if flag.starts_with('-') => match flag.strip_prefix("--field-manager=") {
                    Some(manager) if flags.contains(&MANAGER) => read.manager = Some(manager),
                    _ => {
                        ensure!(flags.contains(&flag), "not understood: {line}");
                        read.flags.push(flag);
                    }
                },
                mark if mark.ends_with('-') => read.marks.push((mark.trim_end_matches('-'), None)),
                word => match word.split_once('=') {
                    Some((key, value)) => read.marks.push((key, Some(value))),
                    None => read.names.push(word),
                },
            }
        }
        Ok(read)
    }

    pub fn has(&self, flag: &str) -> bool {
        self.flags.contains(&flag)
    }

    /// Whether it selects some of many.
    pub fn has_selector(&self) -> bool {
        self.selector.is_some() || self.fields.is_some()
    }

    /// The path of one of its names, or of all that it selects.
    pub fn path(&self, resource: &Resource, name: Option<&str>) -> String {
        // Without a namespace, kubectl uses the kubeconfig's, which names none here.
        let namespace = if self.is_of_all_namespaces { None } else { Some(self.namespace.unwrap_or("default")) };
        let selectors = [("labelSelector", self.selector), ("fieldSelector", self.fields)];
        let given = selectors.iter().filter_map(|(name, selector)| {
            Some(format!("{name}={}", utf8_percent_encode((*selector)?, NON_ALPHANUMERIC)))
        });
        let query = given.collect::<Vec<_>>().join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        format!("{}{mark}{query}", resource.path(namespace, name))
    }
}

// === impl Resource ===

impl Resource {
    /// The path of an object, or of all objects in a namespace, or of all.
    pub(super) fn path(&self, namespace: Option<&str>, name: Option<&str>) -> String {
        let namespace = namespace.filter(|_| self.is_namespaced);
        let namespace = namespace.map(|namespace| format!("/namespaces/{namespace}")).unwrap_or_default();
        let name = name.map(|name| format!("/{name}")).unwrap_or_default();
        format!("/{}{namespace}/{}{name}", self.prefix, self.plural)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn things(is_namespaced: bool) -> Resource {
        Resource { prefix: "apis/g/v1".to_owned(), plural: "things".to_owned(), is_namespaced }
    }

    #[test]
    fn lines_are_read_as_kubectl_reads_them() {
        let line = Line::parse("things.g,others a c -n b").unwrap();
        assert_eq!((line.kinds.as_slice(), line.names.as_slice()), (&["things.g", "others"][..], &["a", "c"][..]));
        assert_eq!(line.path(&things(true), Some("a")), "/apis/g/v1/namespaces/b/things/a");
        assert_eq!(line.path(&things(false), Some("a")), "/apis/g/v1/things/a");
        let all = Line::parse("things -A").unwrap();
        assert_eq!(all.path(&things(true), None), "/apis/g/v1/things");
        assert_eq!(Line::parse("things").unwrap().path(&things(true), None), "/apis/g/v1/namespaces/default/things");
        let some = Line::parse("node -l a=b,c!=d --field-selector e=ö").unwrap();
        assert!(some.has_selector() && !all.has_selector());
        let query = "labelSelector=a%3Db%2Cc%21%3Dd&fieldSelector=e%3D%C3%B6";
        assert_eq!(some.path(&things(false), None), format!("/apis/g/v1/things?{query}"));
    }

    #[test]
    fn marks_are_set_or_taken_away() {
        let line = Line::parse("things a x.y/z=1=2 w-").unwrap();
        assert_eq!(
            (line.names.as_slice(), line.marks.as_slice()),
            (&["a"][..], &[("x.y/z", Some("1=2")), ("w", None)][..])
        );
    }

    #[test]
    fn a_flag_that_says_nothing_is_refused() {
        assert!(Line::with_flags("things --all", &["--all"]).is_ok_and(|line| line.has("--all")));
        let by = Line::with_flags("things a --field-manager=me", &[MANAGER]).unwrap();
        assert_eq!(by.manager, Some("me"));
        for line in ["", "things --all", "things a --watch", "things a --field-manager=me"] {
            assert!(Line::parse(line).is_err(), "{line}");
        }
    }
}
