//! The row of a pod: `printPod` of the real server, without the cases a sample pod cannot be in
//! (init containers, signals, evictions).

use serde_json::Value;
use time::OffsetDateTime;

use super::{Column, NAME, age_of, elements, or_none, shown, wide};

pub(super) const COLUMNS: [Column; 9] = [
    NAME,
    shown("Ready"),
    shown("Status"),
    shown("Restarts"),
    shown("Age"),
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
];

pub(super) fn cells(body: &Value, name: Value, age: Value, now: OffsetDateTime) -> Vec<Value> {
    let containers = elements(&body["status"]["containerStatuses"]);
    let ready = containers.iter().filter(|container| container["ready"] == true).count();
    vec![
        name,
        format!("{ready}/{}", elements(&body["spec"]["containers"]).len()).into(),
        status(body, containers).into(),
        restarts(containers, now).into(),
        age,
        or_none(&body["status"]["podIP"]),
        or_none(&body["spec"]["nodeName"]),
        "<none>".into(),
        "<none>".into(),
    ]
}

/// The phase, or the reason why a container is not running: the first container with a reason decides.
fn status<'a>(body: &'a Value, containers: &'a [Value]) -> &'a str {
    if body["metadata"].get("deletionTimestamp").is_some() {
        return "Terminating";
    }
    let reason = |container: &'a Value| {
        let state = &container["state"];
        state["waiting"]["reason"].as_str().or_else(|| state["terminated"]["reason"].as_str())
    };
    containers.iter().find_map(reason).or_else(|| body["status"]["phase"].as_str()).unwrap_or("Unknown")
}

/// `0`, or the count with the time since the last restart.
fn restarts(containers: &[Value], now: OffsetDateTime) -> String {
    let count: u64 = containers.iter().filter_map(|container| container["restartCount"].as_u64()).sum();
    let ended = containers.iter().map(|container| &container["lastState"]["terminated"]["finishedAt"]);
    match ended.filter(|moment| moment.is_string()).max_by_key(|moment| moment.as_str()) {
        Some(moment) if count > 0 => format!("{count} ({} ago)", age_of(moment, now)),
        _ => count.to_string(),
    }
}
