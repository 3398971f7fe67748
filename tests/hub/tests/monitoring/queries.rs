//! The queries of the chart's files.

use hub_tests::helm::Chart;
use hub_tests::prelude::*;
use hub_tests::promtool;

/// A query, and where it comes from.
pub(super) struct Query {
    pub(super) of: String,
    pub(super) text: String,
}

/// The queries of the alerts, without their comparisons, and those of the dashboard.
pub(super) fn all() -> Result<Vec<Query>> {
    let mut queries = Vec::new();
    for alert in promtool::alerts()? {
        queries.push(Query { of: alert.name().to_owned(), text: alert.series()?.to_owned() });
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
