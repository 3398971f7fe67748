//! Text to an expression.

use placement::cel::{Pattern, compiled_small};
use serde_json::Value as Json;

use super::functions::{FUNCTIONS, STREAMS};
use super::{JqError, NESTING};

#[derive(Debug)]
pub enum Expr {
    Identity,
    /// `..`
    Recurse,
    /// With `?`: where it cannot be, it leads nowhere.
    Access(Box<Expr>, Access, bool),
    Pipe(Box<Expr>, Box<Expr>),
    Comma(Box<Expr>, Box<Expr>),
    /// `//`
    Or(Box<Expr>, Box<Expr>),
    /// `if … then … else … end`
    If(Box<[Expr; 3]>),
    /// `[…]`
    List(Option<Box<Expr>>),
    /// `{…}`: keys and values.
    Map(Vec<(Expr, Expr)>),
    Literal(Json),
    Compare(&'static str, Box<Expr>, Box<Expr>),
    /// `and`, or else `or`.
    Both(bool, Box<Expr>, Box<Expr>),
    /// A function of values.
    Call(&'static str, Option<Box<Expr>>),
    /// One that is given expressions.
    Stream(&'static str, Vec<Expr>),
    /// `test("…")`
    Test(Box<Pattern>),
}

#[derive(Debug)]
pub enum Access {
    Field(String),
    Index(i64),
    /// `[]`
    Each,
    /// `[…]`, by what that comes to.
    By(Box<Expr>),
}

const COMPARISONS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];
/// Words that are no functions.
const WORDS: [&str; 6] = ["and", "or", "then", "elif", "else", "end"];
/// Regular expressions in one: each takes its time to be compiled.
const PATTERNS: usize = 8;

struct Parser<'t> {
    rest: &'t str,
    depth: usize,
    patterns: usize,
}

type Read<T> = Result<T, JqError>;

pub fn read(text: &str) -> Read<Expr> {
    let mut parser = Parser { rest: text, depth: 0, patterns: 0 };
    let expression = parser.pipe()?;
    if parser.rest.is_empty() { Ok(expression) } else { parser.unexpected() }
}

fn boxed(a: Expr, b: Expr) -> (Box<Expr>, Box<Expr>) {
    (Box::new(a), Box::new(b))
}

// === impl Parser ===

impl<'t> Parser<'t> {
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

    /// A word that is no part of a longer one.
    fn takes_word(&mut self, word: &str) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(word).filter(|after| !after.starts_with(is_of_name));
        self.rest = after.map_or(self.rest, str::trim_start);
        after.is_some()
    }

    fn pipe(&mut self) -> Read<Expr> {
        self.deeper()?;
        let mut left = self.comma()?;
        while self.takes("|") {
            self.deeper()?;
            let (a, b) = boxed(left, self.comma()?);
            left = Expr::Pipe(a, b);
        }
        Ok(left)
    }

    fn comma(&mut self) -> Read<Expr> {
        let mut left = self.alternative()?;
        while self.takes(",") {
            self.deeper()?;
            let (a, b) = boxed(left, self.alternative()?);
            left = Expr::Comma(a, b);
        }
        Ok(left)
    }

    /// From the right: `a // b // c` is `a // (b // c)`.
    fn alternative(&mut self) -> Read<Expr> {
        let left = self.or()?;
        if !self.takes("//") {
            return Ok(left);
        }
        self.deeper()?;
        let (a, b) = boxed(left, self.alternative()?);
        Ok(Expr::Or(a, b))
    }

    fn or(&mut self) -> Read<Expr> {
        let mut left = self.and()?;
        while self.takes_word("or") {
            self.deeper()?;
            let (a, b) = boxed(left, self.and()?);
            left = Expr::Both(false, a, b);
        }
        Ok(left)
    }

    fn and(&mut self) -> Read<Expr> {
        let mut left = self.comparison()?;
        while self.takes_word("and") {
            self.deeper()?;
            let (a, b) = boxed(left, self.comparison()?);
            left = Expr::Both(true, a, b);
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Read<Expr> {
        let left = self.term()?;
        let Some(mark) = COMPARISONS.into_iter().find(|mark| self.takes(mark)) else { return Ok(left) };
        let (a, b) = boxed(left, self.term()?);
        Ok(Expr::Compare(mark, a, b))
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
        if self.takes("(") {
            return self.inside(")");
        }
        if self.takes("[") {
            let is_empty = self.takes("]");
            return Ok(Expr::List(if is_empty { None } else { Some(Box::new(self.inside("]")?)) }));
        }
        if self.takes("{") {
            return self.map();
        }
        if let Some(after) = self.rest.strip_prefix('.') {
            self.rest = after;
            let is_named = after.starts_with('"') || after.starts_with(is_first_of_name);
            return if is_named { self.name(Expr::Identity) } else { Ok(Expr::Identity) };
        }
        if self.takes_word("if") {
            return self.condition();
        }
        match self.literal() {
            Err(JqError::Syntax(_)) if self.rest.starts_with(is_first_of_name) => self.called(),
            literal => literal.map(Expr::Literal),
        }
    }

    fn inside(&mut self, end: &str) -> Read<Expr> {
        let inside = self.pipe()?;
        self.expect(end)?;
        Ok(inside)
    }

    /// After `if`, or `elif`.
    fn condition(&mut self) -> Read<Expr> {
        self.deeper()?;
        let condition = self.until("then")?;
        let then = self.pipe()?;
        let otherwise = if self.takes_word("elif") {
            self.condition()?
        } else if self.takes_word("else") {
            self.until("end")?
        } else if self.takes_word("end") {
            Expr::Identity
        } else {
            return self.unexpected();
        };
        Ok(Expr::If(Box::new([condition, then, otherwise])))
    }

    fn until(&mut self, word: &str) -> Read<Expr> {
        let before = self.pipe()?;
        if self.takes_word(word) { Ok(before) } else { self.unexpected() }
    }

    /// After `{`.
    fn map(&mut self) -> Read<Expr> {
        let mut entries = Vec::new();
        while !self.takes("}") {
            if !entries.is_empty() {
                self.expect(",")?;
            }
            self.deeper()?;
            let is_made = self.takes("(");
            let key = if is_made { self.inside(")")? } else { Expr::Literal(Json::String(self.key()?)) };
            let value = match &key {
                _ if self.takes(":") => self.term()?,
                Expr::Literal(Json::String(name)) if !is_made => {
                    Expr::Access(Box::new(Expr::Identity), Access::Field(name.clone()), false)
                }
                _ => return self.unexpected(),
            };
            entries.push((key, value));
        }
        Ok(Expr::Map(entries))
    }

    /// A function by its name, and what it is given.
    fn called(&mut self) -> Read<Expr> {
        let whole = self.rest;
        let name = self.word();
        if name == "test" && self.takes("(") {
            return self.test();
        }
        let mut arguments = Vec::new();
        if !WORDS.contains(&name) && self.takes("(") {
            arguments.push(self.pipe()?);
            while self.takes(";") {
                arguments.push(self.pipe()?);
            }
            self.expect(")")?;
        }
        let is_it = |known: &(&'static str, usize)| *known == (name, arguments.len());
        if let Some((name, _)) = STREAMS.into_iter().find(is_it) {
            return Ok(Expr::Stream(name, arguments));
        }
        let Some((name, _)) = FUNCTIONS.into_iter().find(is_it) else {
            self.rest = whole;
            return self.unexpected();
        };
        Ok(Expr::Call(name, arguments.pop().map(Box::new)))
    }

    /// After `test(`: a pattern as it is, and flags. None is made while an expression runs.
    fn test(&mut self) -> Read<Expr> {
        self.patterns += 1;
        if self.patterns > PATTERNS {
            return Err(JqError::Syntax(format!("there are more than {PATTERNS} regular expressions")));
        }
        let pattern = self.text()?;
        let flags = if self.takes(";") { self.text()? } else { String::new() };
        self.expect(")")?;
        let is_known = flags.chars().all(|flag| matches!(flag, 'g' | 'i' | 's'));
        if !is_known {
            return Err(JqError::Syntax(format!(
                "of the flags of test, g, i and s are supported here, and not {flags:?}"
            )));
        }
        let flags: String = flags.chars().filter(|flag| *flag != 'g').collect();
        let pattern = if flags.is_empty() { pattern } else { format!("(?{flags}){pattern}") };
        compiled_small(&pattern).map(|pattern| Expr::Test(Box::new(pattern))).map_err(JqError::Syntax)
    }

    /// A name, and what is after it.
    fn word(&mut self) -> &'t str {
        let length = self.rest.find(|c| !is_of_name(c)).unwrap_or(self.rest.len());
        let (name, after) = self.rest.split_at(length);
        self.rest = after.trim_start();
        name
    }

    /// Of an entry, as it is written.
    fn key(&mut self) -> Read<String> {
        if self.rest.starts_with('"') {
            return self.text().inspect(|_| self.rest = self.rest.trim_start());
        }
        if !self.rest.starts_with(is_first_of_name) {
            return self.unexpected();
        }
        Ok(self.word().to_owned())
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

    /// `"…"`, as JSON has it. jq's `\(…)` is refused with it.
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
        let access = match self.inside("]")? {
            Expr::Literal(Json::String(key)) => Access::Field(key),
            Expr::Literal(Json::Number(number)) if number.is_i64() => Access::Index(number.as_i64().unwrap_or(0)),
            by => Access::By(Box::new(by)),
        };
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
