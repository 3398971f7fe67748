//! Splits the text of an expression into tokens.

use super::syntax::{Fault, Limits};
use super::token::{Kind, MARKS, Token, number, quoted};

/// All tokens of `text`, the last of which is [`Kind::End`].
pub fn tokens(text: &str) -> Result<Vec<Token>, Fault> {
    if text.len() > Limits::TEXT {
        return Err(Fault::new(0, format!("the expression is longer than {} bytes", Limits::TEXT)));
    }
    let mut found = Vec::new();
    let mut at = skipped(text, 0);
    while at < text.len() {
        let (kind, end) = token(text, at)?;
        found.push(Token { at, kind });
        at = skipped(text, end);
    }
    found.push(Token { at: text.len(), kind: Kind::End });
    Ok(found)
}

/// The position after spaces and comments.
fn skipped(text: &str, mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let spaces = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\x0c']).len();
        at += spaces;
        let Some(comment) = rest.get(spaces..).and_then(|rest| rest.strip_prefix("//")) else { return at };
        at += 2 + comment.find('\n').unwrap_or(comment.len());
    }
}

fn token(text: &str, at: usize) -> Result<(Kind, usize), Fault> {
    let rest = text.get(at..).unwrap_or_default();
    if let Some(read) = quoted(rest, at)? {
        return Ok(read);
    }
    let first = rest.chars().next().unwrap_or_default();
    if first.is_ascii_alphabetic() || first == '_' {
        let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        return Ok((Kind::Name(rest[..length].into()), at + length));
    }
    let is_fraction = rest.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if first.is_ascii_digit() || is_fraction {
        return number(rest, at);
    }
    let mark = MARKS.iter().find(|mark| rest.starts_with(**mark));
    let mark = mark.ok_or_else(|| Fault::syntax(at, format!("token recognition error at: '{first}'")))?;
    Ok((Kind::Mark(mark), at + mark.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn names_numbers_and_marks_are_told_apart() {
        let read = kinds("a.b_1 >= 0x1F && 2u ? 1.5e3 : .5 // the end");
        let name = |text: &str| Kind::Name(text.into());
        assert_eq!(
            read,
            [
                name("a"),
                Kind::Mark("."),
                name("b_1"),
                Kind::Mark(">="),
                Kind::Int(31),
                Kind::Mark("&&"),
                Kind::Uint(2),
                Kind::Mark("?"),
                Kind::Double(1500.0),
                Kind::Mark(":"),
                Kind::Double(0.5),
                Kind::End
            ]
        );
    }

    #[test]
    fn what_is_no_token_is_a_fault_with_its_place() {
        assert_eq!(tokens("a # b").unwrap_err().at, 2);
        assert_eq!(tokens("a == ü").unwrap_err().at, 5);
        assert_eq!(tokens("'open").unwrap_err().at, 0);
        assert!(tokens(&"a".repeat(Limits::TEXT + 1)).is_err());
    }
}
