//! One cluster's part of a table.

use serde_json::Value;

use super::{Column, Metadata, Object, Page, Row};
use crate::text_table;

/// The rows of one cluster.
#[derive(Debug, Default)]
pub struct Part {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<(String, Vec<String>)>,
}

// === impl Part ===

impl Part {
    /// Adds a page.
    pub fn add(&mut self, page: Page) {
        if page.kind == "Table" {
            if self.columns.is_empty() {
                let tame = |column: Column| Column { name: text_table::tame(&column.name), ..column };
                self.columns = page.column_definitions.into_iter().map(tame).collect();
            }
            let row = |row: Row| {
                let metadata = row.object.unwrap_or(Object { metadata: Metadata::default() }).metadata;
                (text_table::tame(&metadata.namespace), row.cells)
            };
            self.rows.extend(
                page.rows.into_iter().map(row).map(|(namespace, cells)| (namespace, cells.iter().map(cell).collect())),
            );
            return;
        }
        self.columns = vec![Column { name: "Name".to_owned(), priority: 0 }];
        let mut objects = page.items;
        if !page.metadata.name.is_empty() {
            objects.push(Object { metadata: page.metadata });
        }
        let row = |Object { metadata }: Object| {
            (text_table::tame(&metadata.namespace), vec![text_table::tame(&metadata.name)])
        };
        self.rows.extend(objects.into_iter().map(row));
    }

    /// Whether any row is in a namespace.
    pub fn has_namespaces(&self) -> bool {
        self.rows.iter().any(|(namespace, _)| !namespace.is_empty())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
}

/// As kubectl writes a cell: the first line of a text.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text_table::tame(text.lines().next().unwrap_or_default()),
        other => other.to_string(),
    }
}
