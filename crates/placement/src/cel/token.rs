//! The tokens of an expression's text. Literals (numbers, strings, bytes) have a syntax of their
//! own (CEL's language definition, "Lexical analysis").

use super::syntax::Fault;

/// A token and where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// Position in the text, in bytes.
    pub at: usize,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Name(Box<str>),
    /// Without a sign, so that the least integer can be written.
    Int(u64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    /// An operator or a bracket.
    Mark(&'static str),
    End,
}

/// Longer ones first: the first that matches is taken.
pub const MARKS: [&str; 27] = [
    "&&", "||", "==", "!=", "<=", ">=", "[?", ".?", "{?", "(", ")", "[", "]", "{", "}", "<", ">", "!", "?", ":", ",",
    ".", "+", "-", "*", "/", "%",
];

type Read = Result<(Kind, usize), Fault>;

/// A number at the start of `rest`, which is at `at`, and where it ends.
pub fn number(rest: &str, at: usize) -> Read {
    let fault = || Fault::syntax(at, "invalid number");
    if let Some(digits) = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X")) {
        let length = span(digits, |c| c.is_ascii_hexdigit());
        let value = u64::from_str_radix(&digits[..length], 16).map_err(|_| fault())?;
        return Ok(whole(value, &digits[length..], at + 2 + length));
    }
    let whole_part = span(rest, |c| c.is_ascii_digit());
    let mut length = whole_part;
    if let Some(fraction) =
        rest[length..].strip_prefix('.').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    {
        length += 1 + span(fraction, |c| c.is_ascii_digit());
    }
    length += exponent(&rest[length..]);
    if length == whole_part {
        let value = rest[..length].parse().map_err(|_| fault())?;
        return Ok(whole(value, &rest[length..], at + length));
    }
    let value = rest[..length].parse().map_err(|_| fault())?;
    Ok((Kind::Double(value), at + length))
}

fn whole(value: u64, rest: &str, end: usize) -> (Kind, usize) {
    if rest.starts_with(['u', 'U']) { (Kind::Uint(value), end + 1) } else { (Kind::Int(value), end) }
}

/// The length of `e+12`, if that is what `rest` begins with.
fn exponent(rest: &str) -> usize {
    let Some(after) = rest.strip_prefix(['e', 'E']) else { return 0 };
    let digits = after.strip_prefix(['+', '-']).unwrap_or(after);
    match span(digits, |c| c.is_ascii_digit()) {
        0 => 0,
        length => rest.len() - digits.len() + length,
    }
}

fn span(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

/// A string or bytes, with its prefixes, if `rest` begins with one.
pub fn quoted(rest: &str, at: usize) -> Result<Option<(Kind, usize)>, Fault> {
    let prefix = span(rest, |c| matches!(c, 'r' | 'R' | 'b' | 'B'));
    let body = &rest[prefix..];
    if prefix > 2 || !body.starts_with(['"', '\'']) {
        return Ok(None);
    }
    let has = |letters: [char; 2]| rest[..prefix].contains(letters);
    let quote = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| body.starts_with(quote)).unwrap_or("\"");
    let content = &body[quote.len()..];
    let fault = || Fault::syntax(at, "unterminated string");
    let length = content_length(content, quote, has(['r', 'R'])).ok_or_else(fault)?;
    let content = &content[..length];
    let end = at + prefix + 2 * quote.len() + length;
    let (is_raw, is_bytes) = (has(['r', 'R']), has(['b', 'B']));
    let bytes = if is_raw { content.as_bytes().to_vec() } else { unescaped(content, is_bytes, at)? };
    if is_bytes {
        return Ok(Some((Kind::Bytes(bytes.into()), end)));
    }
    let text = String::from_utf8(bytes).map_err(|_| Fault::syntax(at, "invalid string"))?;
    Ok(Some((Kind::Text(text.into()), end)))
}

/// Length of the content before the closing quote, in bytes. Only triple quotes may contain a line
/// break.
fn content_length(content: &str, quote: &str, is_raw: bool) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in content.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' && !is_raw {
            is_escaped = true;
        } else if content[at..].starts_with(quote) {
            return Some(at);
        } else if quote.len() == 1 && matches!(c, '\n' | '\r') {
            return None;
        }
    }
    None
}

fn unescaped(content: &str, is_bytes: bool, at: usize) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '\\' {
            rest = escape(rest, is_bytes, &mut out).ok_or_else(|| Fault::syntax(at, "invalid escape"))?;
        } else {
            out.extend(c.encode_utf8(&mut [0; 4]).bytes());
        }
    }
    Ok(out)
}

/// Writes the meaning of the escape at the start of `rest`; returns the text after it.
fn escape<'t>(rest: &'t str, is_bytes: bool, out: &mut Vec<u8>) -> Option<&'t str> {
    let letter = rest.chars().next()?;
    let after = &rest[letter.len_utf8()..];
    let (digits, radix) = match letter {
        'x' | 'X' => (2, 16),
        'u' if !is_bytes => (4, 16),
        'U' if !is_bytes => (8, 16),
        '0'..='3' => (3, 8),
        _ => {
            let position = "abfnrtv\\?\"'`".find(letter)?;
            out.push(*b"\x07\x08\x0c\n\r\t\x0b\\?\"'`".get(position)?);
            return Some(after);
        }
    };
    let from = if radix == 8 { rest } else { after };
    let code = from.get(..digits).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
    let code = u32::from_str_radix(code, radix).ok()?;
    match u8::try_from(code) {
        Ok(byte) if is_bytes => out.push(byte),
        _ if is_bytes => return None,
        _ => out.extend(char::from_u32(code)?.encode_utf8(&mut [0; 4]).bytes()),
    }
    from.get(digits..)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(literal: &str) -> Option<String> {
        match quoted(literal, 0).ok()?? {
            (Kind::Text(text), end) if end == literal.len() => Some(text.into()),
            _ => None,
        }
    }

    #[test]
    fn strings_and_their_escapes() {
        for (literal, value) in [
            (r#""a""#, "a"),
            ("'it\"s'", "it\"s"),
            (r"'\x41\u00e4\U0001F600\101'", "Aä😀A"),
            (r"'\n\t\\\''", "\n\t\\'"),
            (r"r'\d'", r"\d"),
            ("'''a\n'b'''", "a\n'b"),
            ("''", ""),
        ] {
            assert_eq!(text(literal).as_deref(), Some(value), "{literal}");
        }
        for wrong in ["'a", "'a\nb'", r"'\q'", r"'\ud800'", r"'\x4'", "'''a''"] {
            assert_eq!(text(wrong), None, "{wrong}");
        }
        assert_eq!(quoted(r"b'\xff\101'", 0).unwrap(), Some((Kind::Bytes([255, 65].into()), 11)));
    }

    #[test]
    fn numbers() {
        for (literal, kind) in [
            ("9223372036854775808", Kind::Int(1 << 63)),
            ("0xffu", Kind::Uint(255)),
            ("1e3", Kind::Double(1000.0)),
            ("1.5E-1", Kind::Double(0.15)),
        ] {
            assert_eq!(number(literal, 0).unwrap(), (kind, literal.len()), "{literal}");
        }
        assert_eq!(number("1.e", 0).unwrap(), (Kind::Int(1), 1), "a member of a number is the parser's");
        assert!(number("99999999999999999999", 0).is_err() && number("0x", 0).is_err());
    }
}
