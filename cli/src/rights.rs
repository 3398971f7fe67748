//! What a hub may do on a member: the rights of the ServiceAccount that a join creates.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::trouble::{Result, Trouble};

/// Roles that every cluster has (<https://kubernetes.io/docs/reference/access-authn-authz/rbac/>),
/// from the least to the most.
pub const ROLES: [&str; 4] = ["view", "edit", "admin", "cluster-admin"];
/// Longest file of rules, in bytes.
const LONGEST: u64 = 1 << 20;

/// The rights.
#[derive(Debug, Clone, PartialEq)]
pub enum Rights {
    /// One of [`ROLES`].
    Role(&'static str),
    /// RBAC rules of a custom role.
    Rules(Vec<Value>),
}

#[derive(Deserialize)]
struct Role {
    #[serde(default)]
    kind: String,
    rules: Option<Vec<Value>>,
}

// === impl Rights ===

impl Rights {
    /// Reads the name of a role, or else a file with a `ClusterRole`.
    pub fn read(text: &str) -> Result<Self> {
        if let Some(role) = ROLES.into_iter().find(|role| *role == text) {
            return Ok(Self::Role(role));
        }
        let wrong = |what: String| {
            Trouble::usage(
                format!("--rights={text}: {what}"),
                format!("give {}, or a file with a ClusterRole", ROLES.join(", ")),
            )
        };
        let length = std::fs::metadata(Path::new(text))
            .map_err(|error| wrong(format!("no such role, and as a file: {error}")))?;
        if length.len() > LONGEST {
            return Err(wrong(format!("the file is longer than {LONGEST} bytes")));
        }
        let yaml = std::fs::read_to_string(text).map_err(|error| wrong(error.to_string()))?;
        Self::parse(&yaml).map_err(|what| wrong(what.to_owned()))
    }

    fn parse(yaml: &str) -> std::result::Result<Self, &'static str> {
        let role: Role = serde_saphyr::from_str(yaml).map_err(|_| "the file is not the YAML of one ClusterRole")?;
        match role.rules {
            Some(rules) if role.kind == "ClusterRole" && !rules.is_empty() => Ok(Self::Rules(rules)),
            _ => Err("the file holds no ClusterRole with rules"),
        }
    }

    /// A short description.
    pub fn describe(&self) -> String {
        match self {
            Self::Role(role) => format!("the rights of the ClusterRole {role}"),
            Self::Rules(rules) => format!("{} custom rules", rules.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_a_role_or_a_file_with_one() {
        assert_eq!(Rights::read("view").unwrap(), Rights::Role("view"));
        let trouble = Rights::read("root").unwrap_err();
        assert!(trouble.what.contains("root") && trouble.remedy.contains("cluster-admin"), "{trouble}");
        let role = "kind: ClusterRole\nrules:\n- {apiGroups: [''], resources: [pods], verbs: [get]}\n";
        assert!(matches!(Rights::parse(role), Ok(Rights::Rules(rules)) if rules.len() == 1));
        for wrong in
            ["kind: ClusterRole\n", "kind: Role\nrules: [{}]\n", "- a\n", "kind: ClusterRole\nrules: []\n", "{"]
        {
            assert!(Rights::parse(wrong).is_err(), "{wrong}");
        }
    }
}
