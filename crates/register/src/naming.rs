//! Names of clusters: one template per source (`--name-template=SOURCE=TEMPLATE`).

use api::cluster_name::ClusterName;

/// The one name that clients use for the hub itself (`api::cluster_name` allows it, KubeVela calls
/// its hub so).
const HUB: &str = "local";
/// Prefix of the Secrets that hold helm's releases: a cluster's Secret with such a name would stop
/// an upgrade.
const HELM: &str = "sh.helm.release.";
const NAMESPACE: &str = "namespace";
const NAME: &str = "name";

/// Makes a cluster's name from an object's namespace and name, and excludes reserved names.
/// [`Default`] takes the name alone, and reserves none.
///
/// Names of namespaces contain no dot, so `{namespace}.{name}` makes different names for different
/// objects. With another template, two objects may get one name; the first keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
    /// These names, and names that begin with one of them and a `-`, belong to other Secrets.
    reserved: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Namespace,
    Name,
}

/// Why a text is no template. The texts follow the flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTemplate {
    #[error("the template has an unmatched brace: write {{name}} or {{namespace}}")]
    Brace,
    #[error("the template has a placeholder other than {{namespace}} and {{name}}")]
    Placeholder,
    #[error("the template has neither {{name}} nor {{namespace}}: all clusters would have one name")]
    Constant,
    #[error(
        "the template has characters that are invalid in a cluster's name: use lower-case letters, digits, '-' \
             and '.'"
    )]
    Characters,
}

/// Why an object has no name for a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidClusterName {
    #[error("its name according to --name-template is not a cluster name: {0}")]
    Name(#[from] api::cluster_name::InvalidClusterName),
    #[error("no cluster can have the name {HUB}, which is the hub's own: rename the object, or set --name-template")]
    Hub,
    #[error("no cluster can be called {HELM}…, as helm's releases are: rename the object, or set --name-template")]
    Helm,
    #[error(
        "no cluster can have one of --reserved-names, or a name that begins with one and a '-': Secrets of the gateway itself \
         have such; rename the object, or set --name-template"
    )]
    Reserved,
    #[error("--name-template has {{namespace}}, but the object is in no namespace: omit it for this source")]
    NoNamespace,
}

// === impl Template ===

impl Default for Template {
    fn default() -> Self {
        Self { parts: vec![Part::Name], reserved: Vec::new() }
    }
}

impl Template {
    /// Reads a text with the placeholders `{namespace}` and `{name}`.
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        let (mut parts, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let (placeholder, after) = after.split_once('}').ok_or(InvalidTemplate::Brace)?;
            parts.extend(Part::text(before)?);
            parts.push(match placeholder {
                NAMESPACE => Part::Namespace,
                NAME => Part::Name,
                _ => return Err(InvalidTemplate::Placeholder),
            });
            rest = after;
        }
        let is_constant = parts.is_empty();
        parts.extend(Part::text(rest)?);
        if is_constant {
            return Err(InvalidTemplate::Constant);
        }
        Ok(Self { parts, reserved: Vec::new() })
    }

    /// The same template without these names, and names that begin with one of them and a `-`. Pods
    /// mount a Secret with such a name, or a chart trusts it: a cluster's Secret in its place would
    /// be trusted, too.
    #[must_use]
    pub fn without(mut self, prefixes: &[String]) -> Self {
        self.reserved = prefixes.to_vec();
        self
    }

    /// Whether objects must have a namespace, which those of cluster-scoped kinds do not have.
    pub fn has_namespace(&self) -> bool {
        self.parts.contains(&Part::Namespace)
    }

    /// The name of an object's cluster.
    pub fn name(&self, namespace: Option<&str>, name: &str) -> Result<ClusterName, InvalidClusterName> {
        let mut made = String::new();
        for part in &self.parts {
            made.push_str(match part {
                Part::Text(text) => text,
                Part::Namespace => namespace.ok_or(InvalidClusterName::NoNamespace)?,
                Part::Name => name,
            });
        }
        if made == HUB {
            return Err(InvalidClusterName::Hub);
        }
        if made.starts_with(HELM) {
            return Err(InvalidClusterName::Helm);
        }
        let is_of = |prefix: &String| {
            made.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        if self.reserved.iter().any(is_of) {
            return Err(InvalidClusterName::Reserved);
        }
        Ok(ClusterName::parse(&made)?)
    }
}

// === impl Part ===

impl Part {
    fn text(text: &str) -> Result<Option<Self>, InvalidTemplate> {
        let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
        match text {
            "" => Ok(None),
            _ if text.contains('}') => Err(InvalidTemplate::Brace),
            _ if text.bytes().all(is_valid) => Ok(Some(Self::Text(text.to_owned()))),
            _ => Err(InvalidTemplate::Characters),
        }
    }
}

#[cfg(test)]
mod tests;
