//! The chart's alerts, and promtool's results for their queries.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::helm::Chart;
use crate::scratch::Scratch;
use crate::tools::{Tool, provide};

/// The comment after an expression among the commands of an alert's section.
pub const EXPRESSION: &str = "# in Prometheus";

/// A rule.
pub struct Alert(pub Value);

/// Every rule of the chart's file.
pub fn alerts() -> Result<Vec<Alert>> {
    let text = std::fs::read_to_string(Chart::Gateway.directory().join("files/alerts.yaml"))?;
    let file: Value = serde_saphyr::from_str(&text)?;
    let groups = file["groups"].as_array().context("no groups")?;
    Ok(groups.iter().filter_map(|group| group["rules"].as_array()).flatten().cloned().map(Alert).collect())
}

/// An error unless the queries of these alerts, and those of their sections in the documentation,
/// find series with the labels that they group by in `metrics`, which a program exposed.
pub fn evaluated(metrics: &str, names: &[&str]) -> Result<()> {
    let alerts = alerts()?;
    let mut queries = Vec::new();
    for name in names {
        let alert = alerts.iter().find(|alert| alert.name() == *name).with_context(|| format!("no alert {name}"))?;
        queries.push(alert.series()?.to_owned());
        queries.extend(of_section(name)?);
    }
    let series: Vec<_> = metrics.lines().filter_map(sample).filter(|(series, _)| is_asked(series, &queries)).collect();
    for label in queries.iter().flat_map(|query| grouping(query)) {
        let has = |(series, _): &(&str, String)| series.contains(&format!("{label}=\""));
        ensure!(series.iter().any(has), "no label {label}: {series:?}");
    }
    let series = unchanged(&series);
    let is_there = |query: &String| {
        json!({"expr": format!("count({query}) > bool 0"), "eval_time": "2h",
            "exp_samples": [{"labels": "{}", "value": 1}]})
    };
    let asked: Vec<_> = queries.iter().map(is_there).collect();
    test(&[], &[json!({"interval": "1m", "input_series": series, "promql_expr_test": asked})])
        .with_context(|| format!("no series: {}", names.join(", ")))
}

/// An error unless the alert fires for `count` things while a program goes on to tell `metrics`.
pub fn fires(metrics: &str, name: &str, count: usize) -> Result<()> {
    let alert = alerts()?.into_iter().find(|alert| alert.name() == name).with_context(|| format!("no alert {name}"))?;
    let query = [alert.query().to_owned()];
    let series: Vec<_> = metrics.lines().filter_map(sample).filter(|(series, _)| is_asked(series, &query)).collect();
    let firing = format!("count(ALERTS{{alertname=\"{name}\",alertstate=\"firing\"}})");
    let asked = json!([{"expr": firing, "eval_time": "2h", "exp_samples": [{"labels": "{}", "value": count}]}]);
    let rules = Chart::Gateway.directory().canonicalize()?.join("files/alerts.yaml");
    test(&[&rules], &[json!({"interval": "1m", "input_series": unchanged(&series), "promql_expr_test": asked})])
        .with_context(|| format!("{name}: {series:?}"))
}

/// Series that stay as they are for two hours, in promtool's notation.
fn unchanged(series: &[(&str, String)]) -> Vec<Value> {
    let stays = |(series, value): &(&str, String)| json!({"series": series, "values": format!("{value}x120")});
    series.iter().map(stays).collect()
}

/// Runs promtool's tests; an error says what failed.
pub fn test(rules: &[&Path], tests: &[Value]) -> Result<()> {
    let scratch = Scratch::create()?;
    let file = scratch.path().join("tests.json");
    std::fs::write(&file, json!({"rule_files": rules, "evaluation_interval": "1m", "tests": tests}).to_string())?;
    let output = Command::new(provide(Tool::Promtool)?).args(["test", "rules"]).arg(&file).output()?;
    let said = [output.stdout, output.stderr].concat();
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&said));
    Ok(())
}

/// The expressions for Prometheus in an alert's section.
fn of_section(alert: &str) -> Result<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operations.md");
    let page = std::fs::read_to_string(page)?;
    let (_, section) = page.split_once(&format!("### {alert}\n")).with_context(|| format!("{alert}: no section"))?;
    let section = section.split("\n#").next().unwrap_or_default();
    let expression = |line: &str| Some(line.split_once(EXPRESSION)?.0.trim().to_owned());
    Ok(section.lines().filter_map(expression).collect())
}

/// A series and its value, in a form that promtool accepts: it takes no exponents.
fn sample(line: &str) -> Option<(&str, String)> {
    let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
    let value: f64 = value.parse().ok()?;
    value.is_finite().then(|| (series, value.to_string()))
}

/// The labels that a query groups by.
fn grouping(query: &str) -> Vec<&str> {
    let lists = query.split(" by (").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    lists.flat_map(|labels| labels.split(", ")).collect()
}

/// Whether a query names the metric.
fn is_asked(series: &str, queries: &[String]) -> bool {
    let name = series.split('{').next().unwrap_or_default();
    queries.iter().any(|query| query.contains(name))
}

// === impl Alert ===

impl Alert {
    pub fn name(&self) -> &str {
        self.0["alert"].as_str().unwrap_or_default()
    }

    pub fn query(&self) -> &str {
        self.0["expr"].as_str().unwrap_or_default()
    }

    /// The query without its comparison: the series that exist whether or not the alert fires.
    pub fn series(&self) -> Result<&str> {
        series(self.query()).with_context(|| format!("{}: no comparison", self.name()))
    }
}

fn series(query: &str) -> Option<&str> {
    if let Some(inner) = query.strip_prefix("absent(") {
        return inner.strip_suffix(')');
    }
    let (series, limit) = query.rsplit_once(" > ").or_else(|| query.rsplit_once(" < "))?;
    limit.chars().all(|character| character.is_ascii_digit() || ". *".contains(character)).then_some(series)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_told_without_exponents() {
        let line = "cluster_gateway_x{cluster=\"a b\",file=\"/c\"} 1.9e9";
        assert_eq!(sample(line), Some(("cluster_gateway_x{cluster=\"a b\",file=\"/c\"}", "1900000000".to_owned())));
        assert_eq!([sample("# EOF"), sample("# TYPE x gauge"), sample("x +Inf")], [None, None, None]);
    }

    #[test]
    fn a_comparison_is_taken_off_once() {
        assert_eq!(series("max(a) - time() < 7 * 86400"), Some("max(a) - time()"));
        assert_eq!(series("absent(a)"), Some("a"));
        assert_eq!(series("max(a)"), None);
    }
}
