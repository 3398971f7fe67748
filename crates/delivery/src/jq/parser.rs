//! Parses text into an expression.

use std::ops::Range;

use serde_json::Value as Json;

use super::{JqError, NESTING};

#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Identity,
    /// `..`
    Recurse,
    /// True with `?`: where the access is not possible, it leads nowhere.
    Access(Box<Expr>, Access, bool),
    Pipe(Box<Expr>, Box<Expr>),
    Comma(Box<Expr>, Box<Expr>),
    Select(Box<Expr>),
    Literal(Json),
    Compare(&'static str, Box<Expr>, Box<Expr>),
    /// `and` if true, else `or`.
    Both(bool, Box<Expr>, Box<Expr>),
    Call(&'static str, Option<Box<Expr>>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    Field(String),
    Index(i64),
    /// `[]`
    Each,
}

/// Operators, the loosest first. Those of a row bind alike.
const OPERATORS: [&[&str]; 5] = [&["|"], &[","], &["or"], &["and"], &["==", "!=", "<=", ">=", "<", ">"]];
const COMPARISONS: usize = OPERATORS.len() - 1;
/// Functions without an argument, and with one.
const PLAIN: [&str; 3] = ["not", "type", "length"];
const WITH_ONE: [&str; 3] = ["startswith", "endswith", "has"];

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
}

type Read<T> = Result<T, JqError>;

pub fn read(text: &str) -> Read<Expr> {
    let mut parser = Parser { rest: text, depth: 0 };
    let expression = parser.expression()?;
    if parser.rest.is_empty() { Ok(expression) } else { parser.unexpected() }
}

fn join(mark: &'static str, left: Expr, right: Expr) -> Expr {
    let (left, right) = (Box::new(left), Box::new(right));
    match mark {
        "|" => Expr::Pipe(left, right),
        "," => Expr::Comma(left, right),
        "or" => Expr::Both(false, left, right),
        "and" => Expr::Both(true, left, right),
        _ => Expr::Compare(mark, left, right),
    }
}

// === impl Parser ===

impl Parser<'_> {
    fn unexpected<T>(&self) -> Read<T> {
        let at: String = self.rest.chars().take(20).collect();
        let told = if at.is_empty() { "its end".to_owned() } else { format!("{at:?}") };
        Err(JqError::Syntax(format!("unexpected {told}, or more than is supported here")))
    }

    fn deeper(&mut self) -> Read<()> {
        self.depth += 1;
        if self.depth > NESTING { Err(JqError::TooDeep) } else { Ok(()) }
    }

    fn takes(&mut self, mark: &str) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(mark);
        self.rest = after.map_or(self.rest, str::trim_start);
        after.is_some()
    }

    fn expect(&mut self, mark: &str) -> Read<()> {
        if self.takes(mark) { Ok(()) } else { self.unexpected() }
    }

    /// Takes `word`, unless it is part of a longer one.
    fn takes_word(&mut self, word: &str) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(word).filter(|after| !after.starts_with(is_of_name));
        self.rest = after.map_or(self.rest, str::trim_start);
        after.is_some()
    }

    fn expression(&mut self) -> Read<Expr> {
        self.deeper()?;
        self.joined(0)
    }

    /// Terms, and what operators of the row `loosest` or a tighter one join. One function for all
    /// of them: brackets nest, and each level takes the stack of every function between.
    fn joined(&mut self, loosest: usize) -> Read<Expr> {
        let mut left = self.term()?;
        let mut rows = loosest..OPERATORS.len();
        while let Some((row, mark)) = self.operator(rows.clone()) {
            if row == COMPARISONS {
                // A comparison is compared with nothing.
                rows.end = COMPARISONS;
            } else {
                self.deeper()?;
            }
            left = join(mark, left, self.joined(row + 1)?);
        }
        Ok(left)
    }

    /// Takes an operator of one of these rows.
    fn operator(&mut self, rows: Range<usize>) -> Option<(usize, &'static str)> {
        let mut rows = OPERATORS.into_iter().enumerate().take(rows.end).skip(rows.start);
        rows.find_map(|(row, marks)| {
            let take =
                |mark: &&str| if mark.starts_with(is_of_name) { self.takes_word(mark) } else { self.takes(mark) };
            marks.iter().copied().find(take).map(|mark| (row, mark))
        })
    }

    fn term(&mut self) -> Read<Expr> {
        let mut term = self.first()?;
        loop {
            self.deeper()?;
            term = if self.rest.starts_with('[') {
                self.brackets(term)?
            } else if self.rest.starts_with(".[") {
                self.rest = &self.rest[1..];
                self.brackets(term)?
            } else if let Some(after) = self.rest.strip_prefix('.').filter(|after| !after.starts_with('.')) {
                self.rest = after;
                self.name(term)?
            } else {
                return Ok(term);
            };
        }
    }

    fn first(&mut self) -> Read<Expr> {
        if self.takes("..") {
            return Ok(Expr::Recurse);
        }
        if self.rest.starts_with('(') {
            return self.inside();
        }
        if let Some(after) = self.rest.strip_prefix('.') {
            self.rest = after;
            let is_named = after.starts_with('"') || after.starts_with(is_first_of_name);
            return if is_named { self.name(Expr::Identity) } else { Ok(Expr::Identity) };
        }
        if self.takes_word("select") {
            return self.inside().map(|inside| Expr::Select(Box::new(inside)));
        }
        if let Some(name) = PLAIN.into_iter().find(|name| self.takes_word(name)) {
            return Ok(Expr::Call(name, None));
        }
        if let Some(name) = WITH_ONE.into_iter().find(|name| self.takes_word(name)) {
            return self.inside().map(|inside| Expr::Call(name, Some(Box::new(inside))));
        }
        self.literal().map(Expr::Literal)
    }

    /// What is in brackets.
    fn inside(&mut self) -> Read<Expr> {
        self.expect("(")?;
        let inside = self.expression()?;
        self.expect(")")?;
        Ok(inside)
    }

    fn literal(&mut self) -> Read<Json> {
        for (word, value) in [("true", Json::Bool(true)), ("false", Json::Bool(false)), ("null", Json::Null)] {
            if self.takes_word(word) {
                return Ok(value);
            }
        }
        if self.rest.starts_with('"') {
            return self.text().map(Json::String);
        }
        let length = self.rest.find(|c: char| c != '-' && c != '.' && !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (number, after) = self.rest.split_at(length);
        let Ok(value @ Json::Number(_)) = serde_json::from_str(number) else { return self.unexpected() };
        self.rest = after.trim_start();
        Ok(value)
    }

    /// Parses `"…"` as JSON does, which refuses jq's `\(…)`.
    fn text(&mut self) -> Read<String> {
        let mut is_escaped = false;
        let end = self.rest.char_indices().skip(1).find(|(_, c)| {
            let is_end = *c == '"' && !is_escaped;
            is_escaped = *c == '\\' && !is_escaped;
            is_end
        });
        let Some((end, _)) = end else { return self.unexpected() };
        let (text, after) = self.rest.split_at(end + 1);
        let Ok(text) = serde_json::from_str(text) else { return self.unexpected() };
        self.rest = after;
        Ok(text)
    }

    fn name(&mut self, of: Expr) -> Read<Expr> {
        if self.rest.starts_with('"') {
            let name = self.text()?;
            return Ok(self.access(of, Access::Field(name)));
        }
        let length = self.rest.find(|c| !is_of_name(c)).unwrap_or(self.rest.len());
        let (name, after) = self.rest.split_at(length);
        if !name.starts_with(is_first_of_name) {
            return self.unexpected();
        }
        self.rest = after;
        Ok(self.access(of, Access::Field(name.to_owned())))
    }

    fn brackets(&mut self, of: Expr) -> Read<Expr> {
        self.expect("[")?;
        if self.takes("]") {
            return Ok(self.access(of, Access::Each));
        }
        let access = match self.literal()? {
            Json::String(key) => Access::Field(key),
            Json::Number(number) if number.is_i64() => Access::Index(number.as_i64().unwrap_or(0)),
            _ => return self.unexpected(),
        };
        self.expect("]")?;
        Ok(self.access(of, access))
    }

    fn access(&mut self, of: Expr, access: Access) -> Expr {
        Expr::Access(Box::new(of), access, self.takes("?"))
    }
}

fn is_first_of_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
