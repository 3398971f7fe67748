//! Merges the tables of many clusters (`meta.k8s.io/v1 Table`) into one.

mod part;

use api::cluster_name::ClusterName;
use serde::Deserialize;
use serde_json::Value;

use crate::text_table;

pub use self::part::Part;

/// Asks for a Table. Objects that cannot become one come as they are.
pub const ACCEPT: &str = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json";

/// A page of a table, as a server sends it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Page {
    kind: String,
    metadata: Metadata,
    column_definitions: Vec<Column>,
    rows: Vec<Row>,
    /// Objects of a list that is not a table.
    items: Vec<Object>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    r#continue: String,
    name: String,
    namespace: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Column {
    name: String,
    #[serde(default)]
    priority: i32,
}

#[derive(Debug, Deserialize)]
struct Row {
    #[serde(default)]
    cells: Vec<Value>,
    object: Option<Object>,
}

#[derive(Debug, Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
}

// === impl Page ===

impl Page {
    /// The token for the next page. Empty: this is the last page.
    pub fn next(&self) -> &str {
        &self.metadata.r#continue
    }
}

/// Merges all parts into one table, sorted by cluster, namespace and name. Servers of different
/// versions have different columns: each column appears once, in the order of first appearance.
pub fn merged(mut parts: Vec<(ClusterName, Part)>, wide: bool, namespaces: bool) -> String {
    parts.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut columns: Vec<String> = Vec::new();
    for column in parts.iter().flat_map(|(_, part)| &part.columns).filter(|column| wide || column.priority == 0) {
        if !columns.contains(&column.name) {
            columns.push(column.name.clone());
        }
    }
    let mut rows = Vec::with_capacity(parts.iter().map(|(_, part)| part.rows.len()).sum());
    for (cluster, mut part) in parts {
        part.rows.sort_by(|(one, cells), (other, others)| (one, cells.first()).cmp(&(other, others.first())));
        let place = |name: &String| part.columns.iter().position(|column| column.name == *name);
        let places: Vec<_> = columns.iter().map(place).collect();
        for (namespace, mut cells) in part.rows {
            let mut row = vec![cluster.to_string()];
            row.extend(Some(namespace).filter(|_| namespaces));
            let taken = places.iter().map(|place| place.and_then(|place| cells.get_mut(place)).map(std::mem::take));
            row.extend(taken.map(Option::unwrap_or_default));
            rows.push(row);
        }
    }
    let heads: Vec<_> = columns.iter().map(|name| name.to_uppercase()).collect();
    let first = ["CLUSTER", "NAMESPACE"].into_iter().take(if namespaces { 2 } else { 1 });
    text_table::lay_out(&first.chain(heads.iter().map(String::as_str)).collect::<Vec<_>>(), &rows)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::part::cell;
    use super::*;

    fn part(pages: &[Value]) -> Part {
        let mut part = Part::default();
        for page in pages {
            part.add(serde_json::from_value(page.clone()).unwrap());
        }
        part
    }

    fn table(columns: &[(&str, i32)], rows: &[(&str, &[&str])]) -> Value {
        let columns: Vec<_> = columns
            .iter()
            .map(|(name, priority)| json!({"name": name, "type": "string", "priority": priority}))
            .collect();
        let rows: Vec<_> = rows
            .iter()
            .map(|(namespace, cells)| json!({"cells": cells, "object": {"metadata": {"namespace": namespace}}}))
            .collect();
        json!({"kind": "Table", "metadata": {}, "columnDefinitions": columns, "rows": rows})
    }

    fn name(text: &str) -> ClusterName {
        ClusterName::parse(text).unwrap()
    }

    #[test]
    fn rows_are_sorted_by_cluster_namespace_and_name() {
        let columns = [("Name", 0), ("Status", 0), ("IP", 1)];
        let munich = part(&[
            table(&columns, &[("b", &["x", "Up", "1"]), ("a", &["y", "Up", "2"])]),
            table(&columns, &[("a", &["w", "Down", "3"])]),
        ]);
        let berlin = part(&[table(&columns, &[("z", &["only", "Up", "4"])])]);
        let text = merged(vec![(name("munich"), munich), (name("berlin"), berlin)], false, true);
        let expected = "\
CLUSTER   NAMESPACE   NAME   STATUS
berlin    z           only   Up
munich    a           w      Down
munich    a           y      Up
munich    b           x      Up
";
        assert_eq!(text, expected);
    }

    #[test]
    fn columns_of_any_server_are_there_once() {
        let new = part(&[table(&[("Name", 0), ("Ready", 0), ("Gates", 1)], &[("", &["n", "1/1", "g"])])]);
        let old = part(&[table(&[("Ready", 0), ("Name", 0)], &[("", &["0/1", "o"])])]);
        let bare = part(&[json!({"kind": "PodList", "items": [{"metadata": {"name": "b"}}]})]);
        let text = merged(vec![(name("c"), bare), (name("a"), new), (name("b"), old)], true, false);
        assert_eq!(
            text,
            "CLUSTER   NAME   READY   GATES\na         n      1/1     g\nb         o      0/1\nc         b\n"
        );
    }

    #[test]
    fn no_word_of_a_server_is_a_command_for_a_terminal() {
        let table = table(&[("\x1b[2JName", 0)], &[("n\ns", &["x"])]);
        let listed = json!({"kind": "PodList", "items": [{"metadata": {"name": "\x1b[1m", "namespace": "\x07"}}]});
        for page in [table, listed] {
            let text = merged(vec![(name("c"), part(&[page]))], false, true);
            assert!(text.lines().count() == 2 && !text.contains(['\x1b', '\x07']), "{text:?}");
        }
    }

    #[test]
    fn a_cell_is_one_line() {
        assert_eq!(
            [json!("a\nb"), json!(3), json!(null), json!(true)].map(|value| cell(&value)),
            ["a", "3", "", "true"]
        );
    }
}
