//! What Open Cluster Management adds: `scores` and `parseJSON`; elsewhere, `hasConditions`.

use serde_json::Value as Json;

use crate::cel::function::{Answer, Overload, Run, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Bool, Dyn, List, Text};
use crate::cel::value::Value;

pub const PLACEMENT: &[Overload] = &[
    method("scores", &[Dyn, Text], List, scores),
    // Upstream declares it a method, and documents it as a function.
    method("parseJSON", &[Text], Dyn, parse),
    function("parseJSON", &[Text], Dyn, parse),
];

pub const CONDITIONS: &[Overload] = &[function("hasConditions", &[Dyn], Bool, has_conditions)];

/// Whether a status has a list `conditions` that is not empty. A value other than a map has none.
fn has_conditions<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Map(status)] = arguments else { return Ok(Value::Bool(false)) };
    let conditions = status.field("conditions", run.meter)?;
    Ok(Value::Bool(matches!(conditions, Some(Value::List(list)) if list.len() > 0)))
}

/// `managedCluster.scores("resource")`: a list of `{name, value}`. A missing resource is an error,
/// as upstream.
fn scores<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Map(cluster), Value::Text(resource)] = arguments else { return Err(Failure::no_overload()) };
    let no_name = || Failure::error("failed to get cluster name");
    let Some(Value::Map(metadata)) = cluster.field("metadata", run.meter)? else { return Err(no_name()) };
    let Some(Value::Text(name)) = metadata.field("name", run.meter)? else { return Err(no_name()) };
    let found = run.host.scores(&name, resource).ok_or_else(|| Failure::error("failed to get score"))?;
    run.meter.charge(3 * found.len())?;
    let item = |(name, value): (&'a str, i64)| {
        Value::map(vec![(Value::from("name"), Value::from(name)), (Value::from("value"), Value::Int(value))])
    };
    Ok(Value::list(found.into_iter().map(item).collect()))
}

/// Numbers become doubles, as in Go's `encoding/json`.
fn parse<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [Value::Text(text)] = arguments else { return Err(Failure::no_overload()) };
    run.meter.charge(text.len())?;
    let json = serde_json::from_str(text);
    json.map(owned).map_err(|error| Failure::error(format!("failed to parse json: {error}")))
}

fn owned<'a>(json: Json) -> Value<'a> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(is_true) => Value::Bool(is_true),
        Json::Number(number) => Value::Double(number.as_f64().unwrap_or_default()),
        Json::String(text) => Value::text(text),
        Json::Array(values) => Value::list(values.into_iter().map(owned).collect()),
        Json::Object(entries) => {
            Value::map(entries.into_iter().map(|(key, value)| (Value::text(key), owned(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn json_is_read_with_doubles() {
        holds(&[
            r#"parseJSON("{\"a\": {\"b\": [1, true, null]}}").a.b == [1.0, true, null]"#,
            r#""3".parseJSON() == 3 && type(parseJSON("3")) == double && parseJSON("\"x\"") == "x""#,
        ]);
        fails(&[r#"parseJSON("{") == {}"#, r#"parseJSON("3") + 1 == 4"#]);
    }

    #[test]
    fn scores_of_the_cluster_are_seen() {
        holds(&[
            r#"managedCluster.scores("load").filter(s, s.name == "a").all(s, s.value > 0)"#,
            r#"managedCluster.scores("load").size() == 2 && managedCluster.scores("load")[1].value == -3"#,
        ]);
        fails(&[r#"managedCluster.scores("none").size() == 0"#, r#"{"metadata": {}}.scores("load").size() == 2"#]);
    }
}
