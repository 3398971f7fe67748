//! Parses text into nodes, character by character like client-go.

mod node;

use self::node::COMPARISONS;
use super::{Error, NESTING};

pub use self::node::{Comparison, Filter, Node, Slice};

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

type Read<T> = Result<T, Error>;

/// Parses what is between braces.
pub fn read(text: &str, depth: usize) -> Read<Vec<Node>> {
    if depth > NESTING {
        return Err(Error::TooDeep);
    }
    let mut parser = Parser { text, at: 0, depth };
    let mut nodes = Vec::new();
    while let Some(c) = parser.peek() {
        parser.node(c, &mut nodes)?;
    }
    Ok(nodes)
}

/// `left == right`, or `left` to test that it is there. The first operator splits it, wherever it
/// is, as in client-go.
fn filter(text: &str, depth: usize) -> Read<Node> {
    if depth > NESTING {
        return Err(Error::TooDeep);
    }
    let is_mark = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let parted = text.find(is_mark).filter(|at| *at > 0).and_then(|at| {
        let (left, rest) = text.split_at_checked(at)?;
        let end = rest.find(|c| !is_mark(c))?;
        let (marks, right) = rest.split_at_checked(end)?;
        Some((left, marks, right))
    });
    let (left, comparison) = match parted {
        None => (text, None),
        Some((left, marks, right)) => {
            let known = COMPARISONS.iter().find(|(known, _)| *known == marks);
            let (_, comparison) =
                known.ok_or_else(|| Error::Syntax(format!("unrecognized filter operator {marks}")))?;
            (left, Some((*comparison, read(right, depth)?)))
        }
    };
    Ok(Node::Filter(Box::new(Filter { left: read(left, depth)?, comparison })))
}

fn wrong<T>(why: impl Into<String>) -> Read<T> {
    Err(Error::Syntax(why.into()))
}

fn is_end_of_word(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

// === impl Parser ===

impl<'t> Parser<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn node(&mut self, c: char, nodes: &mut Vec<Node>) -> Read<()> {
        let rest = self.rest();
        if rest.starts_with("[?(") {
            nodes.push(filter(self.bracketed_filter()?, self.depth + 1)?);
            return Ok(());
        }
        if rest.starts_with("..") {
            return self.recursive(nodes);
        }
        match c {
            ' ' | '@' | '$' => self.at += 1,
            '[' => self.brackets(nodes)?,
            '"' | '\'' => nodes.push(Node::Text(self.quoted(c)?)),
            '.' => {
                self.at += 1;
                nodes.push(self.field());
            }
            '+' | '-' | '0'..='9' => nodes.push(self.number()?),
            _ if c == '_' || c.is_alphanumeric() => nodes.push(self.word()?),
            '\r' | '\n' => return wrong("unclosed action"),
            _ => return wrong(format!("unrecognized character in action: {c:?}")),
        }
        Ok(())
    }

    fn recursive(&mut self, nodes: &mut Vec<Node>) -> Read<()> {
        if nodes.last() == Some(&Node::Recursive) {
            return wrong("invalid multiple recursive descent");
        }
        self.at += 2;
        nodes.push(Node::Recursive);
        if self.peek().is_some_and(|c| c == '_' || c.is_alphanumeric()) {
            nodes.push(self.field());
        }
        Ok(())
    }

    /// A name up to the next character that ends words, unless that follows a backslash.
    fn field(&mut self) -> Node {
        let mut name = String::new();
        let mut chars = self.rest().chars();
        while let Some(c) = chars.next() {
            if c == '\\' {
                name.extend(chars.next());
            } else if is_end_of_word(c) {
                break;
            } else {
                name.push(c);
                self.at += c.len_utf8();
                continue;
            }
            self.at = self.text.len() - chars.as_str().len();
        }
        if name == "*" { Node::Wildcard } else { Node::Field(name) }
    }

    fn number(&mut self) -> Read<Node> {
        let rest = self.rest();
        let sign = usize::from(rest.starts_with(['+', '-']));
        let digits = rest[sign..].find(|c: char| c != '.' && !c.is_ascii_digit()).unwrap_or(rest.len() - sign);
        let text = &rest[..sign + digits];
        self.at += text.len();
        if let Ok(whole) = text.parse() {
            return Ok(Node::Int(whole));
        }
        let float: Option<f64> = text.parse().ok().filter(|float: &f64| float.is_finite());
        float.map_or_else(|| wrong(format!("cannot parse number {text}")), |float| Ok(Node::Float(float)))
    }

    fn word(&mut self) -> Read<Node> {
        let rest = self.rest();
        let word = &rest[..rest.find(is_end_of_word).unwrap_or(rest.len())];
        self.at += word.len();
        match word {
            "true" => Ok(Node::Bool(true)),
            "false" => Ok(Node::Bool(false)),
            _ => wrong(format!("unrecognized identifier {word}: fields begin with a dot")),
        }
    }

    /// `'text'`, without its quotes.
    fn quoted(&mut self, quote: char) -> Read<String> {
        let mut text = String::new();
        let mut chars = self.rest().chars();
        chars.next();
        while let Some(c) = chars.next() {
            match c {
                '\\' => text.push(escaped(chars.next())?),
                '\n' => break,
                _ if c == quote => {
                    self.at = self.text.len() - chars.as_str().len();
                    return Ok(text);
                }
                _ => text.push(c),
            }
        }
        wrong("unterminated quoted string")
    }

    fn brackets(&mut self, nodes: &mut Vec<Node>) -> Read<()> {
        let rest = self.rest();
        let end = rest.find([']', '\n']).filter(|end| rest[*end..].starts_with(']'));
        let Some(end) = end else { return wrong("unterminated array") };
        let inside = &rest[1..end];
        self.at += end + 1;
        if inside.contains(',') {
            let parts = inside.split(',').map(|part| read(&format!("[{}]", part.trim_matches(' ')), self.depth + 1));
            nodes.push(Node::Union(parts.collect::<Read<_>>()?));
        } else if let Some(key) = key(inside) {
            nodes.extend(read(&format!(".{key}"), self.depth + 1)?);
        } else {
            nodes.push(Node::Slice(slice(inside)?));
        }
        Ok(())
    }

    /// The text between `[?(` and `)]`.
    fn bracketed_filter(&mut self) -> Read<&'t str> {
        self.at += 3;
        let rest = self.rest();
        let (mut quote, mut is_closed, mut before) = (None, false, ' ');
        for (at, c) in rest.char_indices() {
            match c {
                '\n' => break,
                '"' | '\'' if quote.is_none() => quote = Some(c),
                _ if quote == Some(c) && before != '\\' => is_closed = true,
                ')' if quote.is_none() || is_closed => {
                    self.at += at + 1;
                    if self.peek() != Some(']') {
                        return wrong("unclosed array expect ]");
                    }
                    self.at += 1;
                    return Ok(&rest[..at]);
                }
                _ => {}
            }
            before = c;
        }
        wrong("unterminated filter")
    }
}

fn escaped(letter: Option<char>) -> Read<char> {
    match letter {
        Some(c @ ('\\' | '"' | '\'')) => Ok(c),
        Some('n') => Ok('\n'),
        Some('t') => Ok('\t'),
        Some('r') => Ok('\r'),
        _ => wrong("unquote string: invalid syntax"),
    }
}

/// `'key'`, without its quotes.
fn key(inside: &str) -> Option<&str> {
    inside.strip_prefix('\'')?.strip_suffix('\'').filter(|key| !key.contains('\''))
}

fn slice(inside: &str) -> Read<Slice> {
    let inside = if inside == "*" { ":" } else { inside };
    let parts: Vec<&str> = inside.split(':').collect();
    let is_part = |part: &&str| part.strip_prefix('-').unwrap_or(part).bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() > 3 || !parts.iter().all(is_part) {
        return wrong(format!("invalid array index {inside}"));
    }
    let number = |at: usize| match parts.get(at) {
        None | Some(&"") => Ok(None),
        Some(text) => text.parse().map(Some).or_else(|_| wrong(format!("array index {text} is not a number"))),
    };
    let is_index = parts.len() == 1;
    let start: Option<i64> = number(0)?;
    let end = if is_index { Some(start.unwrap_or(0).saturating_add(1)) } else { number(1)? };
    Ok(Slice { start, end, is_index, step: number(2)? })
}
