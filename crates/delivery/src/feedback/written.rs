//! Writes values as JSON, within the length that reports allow.

use std::io::{Error, Write};

use serde::{Serialize, Serializer};

use super::{RAW, Value};
use crate::json_path::{Basic, Found};

/// Characters that Go escapes in JSON, because they have a meaning in HTML or JavaScript.
const ESCAPED: [(char, &str); 5] =
    [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];

/// Takes at most `most` bytes, and fails at the next, which ends the writing.
struct Bounded {
    bytes: Vec<u8>,
    most: usize,
}

/// Writes JSON as Go does.
///
/// # Errors
///
/// Fails if it would be longer than `most` bytes, or [`RAW`]. No more than that is written before
/// it ends.
pub fn json(value: &impl Serialize, name: &str, most: usize) -> Result<Value, String> {
    let most = most.min(RAW);
    let long =
        || format!("the length of returned json raw string for name {name} is larger than the maximum length {most}");
    let mut bounded = Bounded { bytes: Vec::new(), most };
    serde_json::to_writer(&mut bounded, value).map_err(|_| long())?;
    let mut text = String::new();
    for c in String::from_utf8_lossy(&bounded.bytes).chars() {
        match ESCAPED.iter().find(|(escaped, _)| *escaped == c) {
            Some((_, escape)) => text.push_str(escape),
            None => text.push(c),
        }
    }
    if text.len() > most { Err(long()) } else { Ok(Value::JsonRaw(text)) }
}

// === impl Bounded ===

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            return Err(Error::other("it is longer"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// === impl Found ===

impl Serialize for Found<'_> {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match (self.json(), self.basic()) {
            (Some(json), _) => json.serialize(out),
            (None, Some(Basic::Bool(value))) => value.serialize(out),
            (None, Some(Basic::Int(value))) => value.serialize(out),
            (None, Some(Basic::Float(value))) => value.serialize(out),
            (None, Some(Basic::Text(text))) => text.serialize(out),
            (None, None) => out.serialize_unit(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde::ser::SerializeSeq;

    use super::*;

    /// An endless list, which counts the elements written.
    struct Endless(Cell<usize>);

    impl Serialize for Endless {
        fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
            let mut list = out.serialize_seq(None)?;
            loop {
                self.0.set(self.0.get() + 1);
                list.serialize_element(&1)?;
            }
        }
    }

    #[test]
    fn nothing_is_written_beyond_what_is_told() {
        let endless = Endless(Cell::new(0));
        assert!(json(&endless, "v", 100).is_err());
        assert!(endless.0.get() <= 100);
    }
}
