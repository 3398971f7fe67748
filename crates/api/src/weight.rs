//! How much memory labels take, whose writer chooses their number.

use std::collections::BTreeMap;

/// Bytes of an entry of a map besides its texts. Nodes whose entries came in order are half full.
const ENTRY: usize = 128;

/// Bytes of one entry.
pub fn of_text(key: &str, value: &str) -> usize {
    ENTRY + key.len() + value.len()
}

/// Bytes of all entries.
pub fn of_texts(texts: &BTreeMap<String, String>) -> usize {
    texts.iter().map(|(key, value)| of_text(key, value)).sum()
}
