//! How much memory the values of a text take: its writer chooses that, and 3 MiB of fields without
//! names become 289 MiB.

/// Bytes that an object takes with its first field: `serde_json` keeps fields in nodes of eleven.
const OBJECT: usize = 640;
/// One more element or field, and a text. A list has room for four from the first one on, and nodes
/// whose fields came in order are half full.
const ELEMENT: usize = 128;
const TEXT: usize = 16;

/// Bytes that the values of a JSON text take at most: without reading it.
pub fn weight(text: &[u8]) -> usize {
    let (mut objects, mut elements, mut quotes) = (0, 0, 0);
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            // An empty one has no node: managedFields are full of them.
            b'{' => objects += usize::from(bytes.peek() != Some(&b'}')),
            b'[' | b',' => elements += 1,
            b'"' => {
                quotes += 1;
                skip_text(&mut bytes);
            }
            _ => {}
        }
    }
    text.len() + OBJECT * objects + ELEMENT * elements + TEXT * quotes
}

fn skip_text(bytes: &mut impl Iterator<Item = u8>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            // An escaped character ends no text.
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_is_in_a_text_is_no_structure() {
        let text = json!({"a": "{[,\"{[,\\", "b": [1, 2]}).to_string();
        assert_eq!(weight(text.as_bytes()), text.len() + OBJECT + 3 * ELEMENT + 3 * TEXT);
        assert_eq!(weight(b"\"\\"), 2 + TEXT);
    }

    /// A large object is far from the limit, and one that is nothing but structure is beyond it.
    #[test]
    fn an_object_that_anybody_would_write_is_not_too_heavy() {
        let field = |number: usize| {
            let description = "What this field is for, in a sentence or two, as definitions have it. ".repeat(2);
            (format!("field{number}"), json!({"type": "string", "description": description}))
        };
        let definition = Value::Object((0..5000).map(field).collect()).to_string();
        assert!(definition.len() > 900_000);
        let weighed = weight(definition.as_bytes());
        assert!(weighed < super::super::HEAVIEST / 2, "{weighed}");
        for empty in ["{\"\":0}", "[0]", "0", "{}", "{\"\":{}}", "\"\""] {
            let text = format!("[{}]", vec![empty; (3 << 20) / (empty.len() + 1)].join(","));
            let weighed = weight(text.as_bytes());
            assert!(weighed > super::super::HEAVIEST, "{empty}: {weighed}");
        }
    }
}
