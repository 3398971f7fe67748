//! The queries of the chart's files.

use hub_tests::helm::Chart;
use hub_tests::prelude::*;
use hub_tests::promtool;

/// A query, and where it comes from.
pub(super) struct Query {
    pub(super) of: String,
    pub(super) text: String,
}

/// Those of alerts, without what they compare with, and those of the dashboard's variables and
/// panels.
pub(super) fn all() -> Result<Vec<Query>> {
    let mut queries = Vec::new();
    for alert in promtool::alerts()? {
        queries.push(Query { of: alert.name().to_owned(), text: alert.series()?.to_owned() });
    }
    let text = std::fs::read_to_string(Chart::Gateway.directory().join("files/dashboard.json"))?;
    let dashboard: Value = serde_json::from_str(&text)?;
    for variable in dashboard["templating"]["list"].as_array().context("no variables")? {
        if variable["type"] == "query" {
            let text = variable["query"]["query"].as_str().context("a variable without a query")?;
            queries.push(Query { of: format!("variable {}", variable["name"]), text: values(text)? });
        }
    }
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

/// What Grafana asks for `label_values(METRIC, LABEL)`, in Prometheus's own language, which has no
/// such function: a series for each value, and none where the metric has no such label.
fn values(text: &str) -> Result<String> {
    let words = text.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')'));
    let (metric, label) =
        words.and_then(|words| words.rsplit_once(", ")).with_context(|| format!("another function: {text}"))?;
    let metric = match metric.strip_suffix('}') {
        Some(matchers) => format!("{matchers}, {label}!=\"\"}}"),
        None => format!("{metric}{{{label}!=\"\"}}"),
    };
    Ok(format!("count by ({label}) ({metric})"))
}
