//! Which clusters belong to a `ManagedClusterSet`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::fields::field;

/// Label that names a cluster's set.
pub const LABEL: &str = "cluster.open-cluster-management.io/clusterset";
/// The set of clusters without that label.
pub const DEFAULT: &str = "default";

/// The sets that every hub has, and their selectors.
pub fn of_every_hub() -> [(&'static str, Value); 2] {
    [
        (DEFAULT, json!({"selectorType": "ExclusiveClusterSetLabel"})),
        ("global", json!({"selectorType": "LabelSelector", "labelSelector": {}})),
    ]
}

/// Whether a cluster with `labels` is in `set`. An unknown type of selector selects none.
pub fn has(set: &Value, labels: &BTreeMap<String, String>) -> bool {
    match field(set, "spec.clusterSelector.selectorType").and_then(Value::as_str) {
        None | Some("ExclusiveClusterSetLabel") => {
            labels.get(LABEL).map(String::as_str) == set["metadata"]["name"].as_str()
        }
        // Without a selector it selects nothing, as in Kubernetes.
        Some("LabelSelector") => {
            field(set, "spec.clusterSelector.labelSelector").is_some_and(|selector| is_selected(selector, labels))
        }
        Some(_) => false,
    }
}

fn is_selected(selector: &Value, labels: &BTreeMap<String, String>) -> bool {
    let mut pairs = selector["matchLabels"].as_object().into_iter().flatten();
    let mut expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    pairs.all(|(key, value)| labels.get(key).map(String::as_str) == value.as_str())
        && expressions.all(|expression| is_met(expression, labels))
}

fn is_met(expression: &Value, labels: &BTreeMap<String, String>) -> bool {
    let label = expression["key"].as_str().and_then(|key| labels.get(key));
    let is_among = |label: &String| expression["values"].as_array().is_some_and(|all| all.iter().any(|it| it == label));
    match expression["operator"].as_str() {
        Some("In") => label.is_some_and(is_among),
        Some("NotIn") => !label.is_some_and(is_among),
        Some("Exists") => label.is_some(),
        Some("DoesNotExist") => label.is_none(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_those_that_name_it_or_that_it_selects() {
        let labels = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let set = |selector: Value| json!({"metadata": {"name": "gold"}, "spec": {"clusterSelector": selector}});
        let by_labels = |selector: Value| set(json!({"selectorType": "LabelSelector", "labelSelector": selector}));
        let expression = |operator: &str| {
            json!({"matchExpressions": [{"key": "env", "operator": operator,
            "values": ["prod", "test"]}]})
        };
        let [gold, prod] = [labels(&[(LABEL, "gold")]), labels(&[("env", "prod")])];
        for (set, has_gold, has_prod) in [
            (set(json!({})), true, false),
            (set(json!({"selectorType": "ExclusiveClusterSetLabel"})), true, false),
            (set(json!({"selectorType": "Other"})), false, false),
            (set(json!({"selectorType": "LabelSelector"})), false, false),
            (by_labels(json!({})), true, true),
            (by_labels(json!({"matchLabels": {"env": "prod"}})), false, true),
            (by_labels(json!({"matchLabels": {"env": "test"}})), false, false),
            (by_labels(expression("In")), false, true),
            (by_labels(expression("NotIn")), true, false),
            (by_labels(expression("Exists")), false, true),
            (by_labels(expression("DoesNotExist")), true, false),
            (by_labels(expression("Gt")), false, false),
        ] {
            assert_eq!((has(&set, &gold), has(&set, &prod)), (has_gold, has_prod), "{set}");
        }
        assert!(!has(&json!({"metadata": {"name": null}}), &gold));
    }
}
