//! Series with which each alert fires, and series with which it does not, evaluated by promtool.

use std::collections::{BTreeMap, BTreeSet};

use hub_tests::helm::Chart;
use hub_tests::prelude::*;
use hub_tests::promtool;
use serde::Deserialize;

/// Series and their samples, in promtool's notation.
type Series = BTreeMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    fires: Series,
    silent: Series,
    /// Another way to make it fire.
    #[serde(default)]
    fires_too: Series,
    #[serde(default)]
    silent_too: Series,
}

pub(super) fn hold() -> Result<()> {
    let examples: BTreeMap<String, Example> = serde_saphyr::from_str(include_str!("examples.yaml"))?;
    let alerts: BTreeSet<_> = promtool::alerts()?.iter().map(|alert| alert.name().to_owned()).collect();
    let shown: BTreeSet<_> = examples.keys().cloned().collect();
    ensure!(alerts == shown, "alerts without example, or the other way round: {:?}", &alerts ^ &shown);

    let tests: Vec<_> = examples
        .iter()
        .flat_map(|(alert, example)| {
            let (fires, silent) = ([&example.fires, &example.fires_too], [&example.silent, &example.silent_too]);
            let given = |series: &&Series| !series.is_empty();
            let firing = fires.into_iter().filter(given).map(|series| case(alert, series, true));
            let silent = silent.into_iter().filter(given).map(|series| case(alert, series, false));
            firing.chain(silent).collect::<Vec<_>>()
        })
        .collect();
    let rules = Chart::Gateway.directory().canonicalize()?.join("files/alerts.yaml");
    promtool::test(&[rules.as_path()], &tests)
}

fn case(alert: &str, series: &Series, fires: bool) -> Value {
    let series: Vec<_> = series.iter().map(|(series, values)| json!({"series": series, "values": values})).collect();
    let firing = format!("count(ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}})");
    let samples = if fires { json!([{"labels": "{}", "value": 1}]) } else { json!([]) };
    let name = format!("{alert} {}", if fires { "fires" } else { "is silent" });
    json!({"name": name, "interval": "1m", "input_series": series,
        "promql_expr_test": [{"expr": firing, "eval_time": "2h", "exp_samples": samples}]})
}
