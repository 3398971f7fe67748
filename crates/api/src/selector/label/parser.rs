//! Parses label selectors by recursive descent over the tokens of `labels.Lexer`.

use super::{InvalidLabelSelector as Error, Requirement, Test};
use crate::cluster_name::ClusterName;

/// A symbol or a run of other characters. `in` and `notin` are plain words until the parser expects
/// an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
}

pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, Error> {
    let mut tokens = Tokens { rest: text };
    let mut requirements = Vec::new();
    if tokens.peek().is_none() {
        return Ok(requirements);
    }
    loop {
        requirements.push(requirement(&mut tokens)?);
        match tokens.next() {
            None => return Ok(requirements),
            Some(Token::Symbol(",")) => {}
            Some(_) => return Err(Error::Syntax),
        }
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, Error> {
    let absent = tokens.peek() == Some(Token::Symbol("!"));
    if absent {
        tokens.next();
    }
    let Some(Token::Word(key)) = tokens.next() else { return Err(Error::Syntax) };
    let key = label_key(key)?;
    let test = match tokens.peek() {
        _ if absent => Test::Absent,
        None | Some(Token::Symbol(",")) => Test::Exists,
        Some(operator) => {
            tokens.next();
            comparison(operator, tokens)?
        }
    };
    Ok(Requirement { key, test })
}

fn comparison(operator: Token<'_>, tokens: &mut Tokens<'_>) -> Result<Test, Error> {
    Ok(match operator {
        Token::Symbol("=" | "==") => Test::In(vec![label_value(exact_value(tokens)?)?]),
        Token::Symbol("!=") => Test::NotIn(vec![label_value(exact_value(tokens)?)?]),
        Token::Symbol(">") => Test::Above(number(exact_value(tokens)?)?),
        Token::Symbol("<") => Test::Below(number(exact_value(tokens)?)?),
        Token::Word("in") => Test::In(values(tokens)?),
        Token::Word("notin") => Test::NotIn(values(tokens)?),
        _ => return Err(Error::Syntax),
    })
}

/// `parseExactValue`: an empty text before a comma or the end is the empty value.
fn exact_value<'a>(tokens: &mut Tokens<'a>) -> Result<&'a str, Error> {
    match tokens.peek() {
        None | Some(Token::Symbol(",")) => Ok(""),
        Some(Token::Word(value)) => {
            tokens.next();
            Ok(value)
        }
        Some(Token::Symbol(_)) => Err(Error::Syntax),
    }
}

/// `parseValues`: a list in parentheses. An empty text between two commas, or an empty list, is the
/// empty value.
fn values(tokens: &mut Tokens<'_>) -> Result<Vec<String>, Error> {
    if tokens.next() != Some(Token::Symbol("(")) {
        return Err(Error::Syntax);
    }
    let mut values = Vec::new();
    loop {
        let value = match tokens.peek() {
            Some(Token::Word(value)) => {
                tokens.next();
                value
            }
            _ => "",
        };
        values.push(label_value(value)?);
        match tokens.next() {
            Some(Token::Symbol(",")) => {}
            Some(Token::Symbol(")")) => return Ok(values),
            _ => return Err(Error::Syntax),
        }
    }
}

fn label_key(text: &str) -> Result<String, Error> {
    if is_key(text) { Ok(text.to_owned()) } else { Err(Error::Key) }
}

fn label_value(text: &str) -> Result<String, Error> {
    if is_value(text) { Ok(text.to_owned()) } else { Err(Error::Value) }
}

/// Whether `text` is a valid label key (`validation.IsQualifiedName` of `k8s.io/apimachinery`).
pub fn is_key(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    prefix.is_none_or(|prefix| ClusterName::parse(prefix).is_ok()) && !name.is_empty() && is_value(name)
}

fn number(text: &str) -> Result<i64, Error> {
    text.parse().map_err(|_| Error::Number)
}

/// Whether `text` is a valid label value (`validation.IsValidLabelValue`): empty, or up to 63
/// characters that start and end with a letter or digit.
pub fn is_value(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && bytes.iter().copied().all(inner) && edge(bytes.first()) && edge(bytes.last())
}

struct Tokens<'a> {
    rest: &'a str,
}

// === impl Tokens ===

impl<'a> Tokens<'a> {
    const SYMBOLS: [char; 7] = ['=', '!', '(', ')', ',', '>', '<'];
    /// Go's lexer skips only these characters.
    const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

    fn peek(&self) -> Option<Token<'a>> {
        Tokens { rest: self.rest }.next()
    }

    fn next(&mut self) -> Option<Token<'a>> {
        let rest = self.rest.trim_start_matches(Self::SPACE);
        let length = match rest.as_bytes() {
            [] => return None,
            [b'=' | b'!', b'=', ..] => 2,
            [first, ..] if Self::SYMBOLS.contains(&char::from(*first)) => 1,
            _ => rest.find(|one| Self::SYMBOLS.contains(&one) || Self::SPACE.contains(&one)).unwrap_or(rest.len()),
        };
        let symbol = rest.starts_with(Self::SYMBOLS);
        let (token, rest) = rest.split_at(length);
        self.rest = rest;
        Some(if symbol { Token::Symbol(token) } else { Token::Word(token) })
    }
}
