//! The queries of the chart's files.

use hub_tests::helm::Chart;
use hub_tests::prelude::*;

/// A query, and where it stands.
pub(super) struct Query {
    pub(super) of: String,
    pub(super) text: String,
}

/// A rule.
pub(super) struct Alert(pub(super) Value);

/// Those of alerts, without what they compare with, and those of the dashboard.
pub(super) fn all() -> Result<Vec<Query>> {
    let mut queries = Vec::new();
    for alert in alerts()? {
        let text = series(alert.query()).with_context(|| format!("{}: no comparison", alert.name()))?;
        queries.push(Query { of: alert.name().to_owned(), text: text.to_owned() });
    }
    let text = std::fs::read_to_string(Chart::Gateway.directory().join("files/dashboard.json"))?;
    let dashboard: Value = serde_json::from_str(&text)?;
    for panel in dashboard["panels"].as_array().context("no panels")? {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let text = target["expr"].as_str().context("a target without a query")?;
            let text = text.replace("$__rate_interval", "1m").replace("$cluster", ".+");
            queries.push(Query { of: format!("panel {}", panel["title"]), text });
        }
    }
    ensure!(queries.len() > 50, "only {} queries were found", queries.len());
    Ok(queries)
}

/// Every rule of the file.
pub(super) fn alerts() -> Result<Vec<Alert>> {
    let text = std::fs::read_to_string(Chart::Gateway.directory().join("files/alerts.yaml"))?;
    let file: Value = serde_saphyr::from_str(&text)?;
    let groups = file["groups"].as_array().context("no groups")?;
    Ok(groups.iter().filter_map(|group| group["rules"].as_array()).flatten().cloned().map(Alert).collect())
}

/// What is there whether the alert fires or not.
fn series(query: &str) -> Option<&str> {
    if let Some(inner) = query.strip_prefix("absent(") {
        return inner.strip_suffix(')');
    }
    let (series, limit) = query.rsplit_once(" > ").or_else(|| query.rsplit_once(" < "))?;
    limit.chars().all(|character| character.is_ascii_digit() || ". *".contains(character)).then_some(series)
}

// === impl Alert ===

impl Alert {
    pub(super) fn name(&self) -> &str {
        self.0["alert"].as_str().unwrap_or_default()
    }

    pub(super) fn query(&self) -> &str {
        self.0["expr"].as_str().unwrap_or_default()
    }
}
