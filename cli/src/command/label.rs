//! `label` and `alias`: change the labels that selectors use, and the name that people see.

use std::process::ExitCode;

use api::secret::ALIAS_ANNOTATION;
use api::selector::label::{is_key, is_value};
use serde_json::{Map, Value, json};

use crate::registration::Registrations;
use crate::session::Session;
use crate::trouble::{Result, Trouble};
use crate::{output, selection};

/// Set or remove labels of a cluster.
///
/// Sets or removes labels of a cluster, for selectors.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters label berlin env=prod tier=web
  kubectl clusters label berlin tier-              # removes it")]
pub struct Label {
    /// The cluster
    name: String,
    /// KEY=VALUE to set, KEY- to remove
    #[arg(required = true, value_name = "LABEL")]
    labels: Vec<String>,
}

/// Set or remove the display name of a cluster.
///
/// Sets or removes the display name of a cluster.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kubectl clusters alias berlin \"Berlin, customers\"
  kubectl clusters alias berlin --remove")]
pub struct Alias {
    /// The cluster
    name: String,
    #[arg(required_unless_present = "remove", value_name = "TEXT")]
    text: Option<String>,
    /// Remove the alias
    #[arg(long, conflicts_with = "text")]
    remove: bool,
}

// === impl Label ===

impl Label {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        let labels = changes(&self.labels)?;
        let count = labels.len();
        patch(session, &self.name, &json!({"metadata": {"labels": labels}})).await?;
        output::print(&format!("cluster {}: {} changed\n", self.name, output::count(count, "label")))?;
        Ok(ExitCode::SUCCESS)
    }
}

// === impl Alias ===

impl Alias {
    pub async fn run(&self, session: &Session) -> Result<ExitCode> {
        patch(session, &self.name, &json!({"metadata": {"annotations": {ALIAS_ANNOTATION: self.text}}})).await?;
        output::print(&match &self.text {
            Some(alias) => format!("cluster {} is now also {alias:?}\n", self.name),
            None => format!("cluster {} has no alias\n", self.name),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn patch(session: &Session, name: &str, patch: &Value) -> Result<()> {
    let name = selection::name(name)?;
    let registrations = Registrations::of(session).await?;
    registrations.get(&name).await?;
    registrations.patch(&name, patch).await.map(drop)
}

/// Parses `KEY=VALUE`.
pub fn pair(text: &str) -> std::result::Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    if key.starts_with(api::GROUP) {
        return Err(format!("labels of {} are reserved for the gateway", api::GROUP));
    }
    if !is_key(key) {
        return Err(format!("{key:?} is not a label key: write NAME or example.com/NAME"));
    }
    if !is_value(value) {
        return Err(format!("{value:?} is not a label value: at most 63 letters, digits, '-', '_' or '.'"));
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// A merge patch of labels. `null` removes one.
fn changes(words: &[String]) -> Result<Map<String, Value>> {
    let wrong = |word: &str, why: &str| {
        Trouble::usage(format!("label {word:?}: {why}"), "write KEY=VALUE to set, KEY- to remove")
    };
    words
        .iter()
        .map(|word| match word.strip_suffix('-').filter(|key| !key.contains('=')) {
            Some(key) => pair(&format!("{key}=")).map(|(key, _)| (key, Value::Null)).map_err(|why| wrong(word, &why)),
            None => pair(word).map(|(key, value)| (key, Value::from(value))).map_err(|why| wrong(word, &why)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_set_and_removed_as_kubectl_does() {
        let words = ["env=prod", "tier-", "odd="].map(str::to_owned);
        assert_eq!(Value::from(changes(&words).unwrap()), json!({"env": "prod", "tier": null, "odd": ""}));
        for wrong in [
            "env",
            "=x",
            "a b=c",
            "a/b/c=d",
            "env=p,q",
            "odd=x-",
            "env=-x",
            "cluster.core.oam.dev/cluster-endpoint-type=Const",
            "cluster.core.oam.dev/x-",
        ] {
            assert!(changes(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }
}
