//! Table columns and cells, as the real server prints them (`kubernetes/pkg/printers/internalversion`).
//!
//! Columns of priority 1 are the ones `kubectl get -o wide` adds.

mod node;
mod pod;

use serde_json::{Value, json};
use time::OffsetDateTime;

use super::{clock, kind::Kind};

struct Column {
    name: &'static str,
    format: &'static str,
    priority: u8,
}

/// `columnDefinitions` of a kind.
pub(crate) fn columns(kind: Kind) -> Value {
    layout(kind)
        .iter()
        .map(|column| {
            json!({
                "name": column.name,
                "type": "string",
                "format": column.format,
                "description": "",
                "priority": column.priority,
            })
        })
        .collect()
}

/// The cells of an object's row, in the order of [`columns`].
pub(crate) fn cells(kind: Kind, body: &Value, now: OffsetDateTime) -> Vec<Value> {
    let name = body["metadata"]["name"].clone();
    let age = Value::from(age_of(&body["metadata"]["creationTimestamp"], now));
    match kind {
        Kind::Event => Vec::new(),
        Kind::Lease => vec![name, or_none(&body["spec"]["holderIdentity"]), age],
        Kind::Namespace => vec![name, body["status"]["phase"].clone(), age],
        Kind::Node => node::cells(body, name, age),
        Kind::Pod => pod::cells(body, name, age, now),
    }
}

fn layout(kind: Kind) -> &'static [Column] {
    match kind {
        Kind::Event => &EVENT,
        Kind::Lease => &LEASE,
        Kind::Namespace => &NAMESPACE,
        Kind::Node => &node::COLUMNS,
        Kind::Pod => &pod::COLUMNS,
    }
}

const fn shown(name: &'static str) -> Column {
    Column { name, format: "", priority: 0 }
}

const fn wide(name: &'static str) -> Column {
    Column { name, format: "", priority: 1 }
}

/// The name column: its format tells kubectl which cell to prefix with the resource in mixed output.
const NAME: Column = Column { name: "Name", format: "name", priority: 0 };

const LEASE: [Column; 3] = [NAME, shown("Holder"), shown("Age")];
const NAMESPACE: [Column; 3] = [NAME, shown("Status"), shown("Age")];
const EVENT: [Column; 5] = [shown("Last Seen"), shown("Type"), shown("Reason"), shown("Object"), shown("Message")];

/// The age of a timestamp; unknown when there is none.
fn age_of(timestamp: &Value, now: OffsetDateTime) -> String {
    let moment = timestamp.as_str().and_then(clock::parse_timestamp);
    moment.map_or_else(|| "<unknown>".to_owned(), |moment| clock::age(now - moment))
}

/// A text cell; `<none>` when the field is absent or empty.
fn or_none(field: &Value) -> Value {
    Value::from(field.as_str().filter(|text| !text.is_empty()).unwrap_or("<none>"))
}

/// The elements of an array field; none when it is absent.
fn elements(field: &Value) -> &[Value] {
    field.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests;
