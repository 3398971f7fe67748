//! Any text: its values take no more memory than is estimated without parsing it.
//!
//! Input: the text.

use controllers::edges::weight;
use serde_json::Value;

pub const WORDS: &[&str] = &[
    "{\"a\":",
    "{\"\":",
    "{ ",
    "{}",
    "}",
    "[",
    "[]",
    "[[",
    "]]",
    "[0]",
    ",[",
    ",{\"b\":0}",
    ",\"c\":[0]",
    ",0",
    ",null",
    ",\"\"",
    "\"\\\"\"",
    "\"\\\\\"",
    "\"{[,\"",
    "\"\\u00e9\"",
    "1e9",
    "\n",
];

/// Bytes of a map's node with eleven entries, and of one that has others below.
const LEAF: usize = 640;
const INNER: usize = 768;
const MOST: usize = 11;
/// A full node becomes two, of five and six, with an entry in the node above: in the worst order,
/// there is one more with each six entries.
const SPLIT: usize = 6;

pub fn check(input: &[u8]) {
    let weighed = weight(input);
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    let taken = taken(&value);
    assert!(taken <= weighed, "{taken} bytes, and {weighed} are reckoned");
}

/// What an allocator gives for a value's parts.
pub fn taken(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len().next_multiple_of(16),
        Value::Array(values) => list(values.len()) + values.iter().map(taken).sum::<usize>(),
        Value::Object(entries) => {
            let parts = entries.iter().map(|(key, value)| key.len().next_multiple_of(16) + taken(value));
            map(entries.len()) + parts.sum::<usize>()
        }
    }
}

/// It grows by doubling, from four.
fn list(length: usize) -> usize {
    if length == 0 { 0 } else { length.next_power_of_two().max(4) * size_of::<Value>() }
}

fn map(length: usize) -> usize {
    if length == 0 {
        return 0;
    }
    let mut count = nodes(length);
    let mut bytes = count * LEAF;
    while count > 1 {
        count = nodes(count - 1);
        bytes += count * INNER;
    }
    bytes
}

/// Most nodes that so many entries fill.
fn nodes(entries: usize) -> usize {
    if entries <= MOST { 1 } else { entries / SPLIT }
}
