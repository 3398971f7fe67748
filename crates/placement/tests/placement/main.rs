//! Whole runs: results of upstream's scheduler (`tests/vectors`, as data), bad input, and
//! properties of any input.
//!
//! Of the vectors, `*-table-*` are the tables of upstream's unit tests; `*-random-*` are random
//! inputs with which its controller was run.

mod allocations;
mod bad_input;
mod explain;
mod properties;
mod random;
mod tables;
mod world;

use serde_json::Value as Json;

/// Every case of `table` in a file of tables; asserts that there are any.
fn cases(file: &str, table: &str) -> Vec<(String, Json, Json)> {
    let tables: Vec<Json> = serde_json::from_str(file).expect("JSON");
    let table = tables.iter().find(|known| known["table"] == *table).unwrap_or_else(|| panic!("no table {table}"));
    let cases = world::list(table, "cases");
    assert!(!cases.is_empty());
    let case = |case: &Json| (world::text(&case["id"]).to_owned(), case["in"].clone(), case["expect"].clone());
    cases.iter().map(case).collect()
}
