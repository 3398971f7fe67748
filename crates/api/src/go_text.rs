//! Writes text exactly as Go does: `%q`, `encoding/json` with HTML escaping, and apiserver's
//! message sanitizer.
//!
//! Our messages must equal those of Kubernetes byte for byte. Escaping `&`, `<` and `>` prevents
//! that a user name becomes markup in a browser that ignores the content type.

use std::fmt::Write as _;

use bytes::Bytes;
use serde::Serialize;

/// `json.Encoder.Encode`: compact, HTML-escaped, one newline at the end.
pub(crate) fn json(document: &impl Serialize) -> Bytes {
    let plain = serde_json::to_vec(document).expect("documents have string keys and no fallible fields");
    let mut escaped = Vec::with_capacity(plain.len() + 1);
    let mut rest = plain.as_slice();
    // These bytes only occur in JSON strings, so the finished text can be escaped without parsing
    // it.
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'&' | b'<' | b'>' | 0xe2)) {
        escaped.extend_from_slice(&rest[..at]);
        let (text, length): (&[u8], usize) = match rest[at..] {
            [b'&', ..] => (b"\\u0026", 1),
            [b'<', ..] => (b"\\u003c", 1),
            [b'>', ..] => (b"\\u003e", 1),
            [0xe2, 0x80, 0xa8, ..] => (b"\\u2028", 3),
            [0xe2, 0x80, 0xa9, ..] => (b"\\u2029", 3),
            _ => (&rest[at..=at], 1),
        };
        escaped.extend_from_slice(text);
        rest = &rest[at + length..];
    }
    escaped.extend_from_slice(rest);
    escaped.push(b'\n');
    Bytes::from(escaped)
}

/// `strconv.Quote`, which `%q` prints.
///
/// "Printable" has Rust's meaning where that differs from Go's: Rust escapes a combining mark, Go
/// does not.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        push_quoted(&mut quoted, character);
    }
    quoted.push('"');
    quoted
}

fn push_quoted(quoted: &mut String, character: char) {
    let code = u32::from(character);
    let written = match character {
        '"' => quoted.write_str("\\\""),
        '\\' => quoted.write_str("\\\\"),
        '\'' => quoted.write_str("'"),
        '\x07' => quoted.write_str("\\a"),
        '\x08' => quoted.write_str("\\b"),
        '\x0c' => quoted.write_str("\\f"),
        '\n' => quoted.write_str("\\n"),
        '\r' => quoted.write_str("\\r"),
        '\t' => quoted.write_str("\\t"),
        '\x0b' => quoted.write_str("\\v"),
        _ if character.escape_debug().len() == 1 => quoted.write_char(character),
        _ if code < 0x20 || code == 0x7f => write!(quoted, "\\x{code:02x}"),
        _ if code > 0xffff => write!(quoted, "\\U{code:08x}"),
        _ => write!(quoted, "\\u{code:04x}"),
    };
    written.expect("writing to a String cannot fail");
}

/// The `sanitizer` of `responsewriters/errors.go`.
pub(crate) fn html_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            other => escaped.push(other),
        }
    }
    escaped
}
