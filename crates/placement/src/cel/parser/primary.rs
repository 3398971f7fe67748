//! The beginnings of expressions: literals, names, brackets.

use super::{Parsed, Parser};
use crate::cel::library;
use crate::cel::syntax::{Constant, Element, Expr, Fault, Node};
use crate::cel::token::Kind;
use crate::cel::types::Type;
use crate::cel::value::Value;

/// Words that are reserved for languages that embed CEL.
const RESERVED: [&str; 16] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "while",
];

impl Parser<'_> {
    pub(super) fn primary(&mut self) -> Parsed {
        let at = self.at();
        let constant = match self.peek().clone() {
            Kind::Name(name) => return self.named(&name, at),
            Kind::Mark("-") => {
                self.next += 1;
                negative(self.peek()).ok_or_else(|| Fault::syntax(at, "invalid number"))?
            }
            Kind::Mark(mark) => return self.bracket(mark),
            Kind::Int(value) => {
                Constant::Int(i64::try_from(value).map_err(|_| Fault::syntax(at, "invalid int literal"))?)
            }
            Kind::Uint(value) => Constant::Uint(value),
            Kind::Double(value) => Constant::Double(value),
            Kind::Text(text) => Constant::Text(text),
            Kind::Bytes(bytes) => Constant::Bytes(bytes),
            Kind::End => return Err(self.unexpected("an expression")),
        };
        self.next += 1;
        let kind = Value::from(&constant).kind();
        self.built(Node::Constant(constant), kind)
    }

    fn bracket(&mut self, mark: &str) -> Parsed {
        match mark {
            "(" => {
                self.next += 1;
                let inside = self.expression()?;
                self.expect(")")?;
                Ok(inside)
            }
            "[" | "[?" => self.list(),
            "{" | "{?" => self.map(),
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn list(&mut self) -> Parsed {
        let mut is_optional = self.is_at("[?");
        self.next += 1;
        let mut elements = Vec::new();
        while !self.takes("]") {
            is_optional |= self.takes("?");
            elements.push(Element { value: self.expression()?, is_optional });
            is_optional = false;
            if !self.takes(",") {
                self.expect("]")?;
                break;
            }
        }
        self.built(Node::List(elements), Type::List)
    }

    fn map(&mut self) -> Parsed {
        let mut is_optional = self.is_at("{?");
        self.next += 1;
        let mut entries = Vec::new();
        while !self.takes("}") {
            is_optional |= self.takes("?");
            let key = self.expression()?;
            self.expect(":")?;
            entries.push((key, Element { value: self.expression()?, is_optional }));
            is_optional = false;
            if !self.takes(",") {
                self.expect("}")?;
                break;
            }
        }
        self.built(Node::Map(entries), Type::Map)
    }

    fn named(&mut self, name: &str, at: usize) -> Parsed {
        if RESERVED.contains(&name) || name == "in" {
            return Err(Fault::syntax(at, format!("reserved identifier: {name}")));
        }
        self.next += 1;
        if let Some(value) = word(name) {
            let kind = Value::from(&value).kind();
            return self.built(Node::Constant(value), kind);
        }
        if self.takes("(") {
            return self.function(name, at);
        }
        if let Some(known) = self.variable(name) {
            return Ok(known);
        }
        if let Some(whole) = self.qualified(name) {
            self.next += 3;
            return self.function(&whole, at);
        }
        if let Some(kind) = Type::named(name) {
            return self.built(Node::Constant(Constant::Type(kind)), Type::Type);
        }
        Err(Fault::new(at, format!("undeclared reference to '{name}' (in container '')")))
    }

    fn variable(&self, name: &str) -> Option<Expr> {
        let local = self.locals.iter().rposition(|local| **local == *name);
        let (node, kind) = if let Some(local) = local {
            (Node::Local(local), Type::Dyn)
        } else {
            let at = self.variables.iter().position(|(known, _)| *known == name)?;
            (Node::Variable(at), self.variables.get(at)?.1)
        };
        Some(Expr { node, kind, depth: 1 })
    }

    /// The name of a function with a dot, if `name` begins one here.
    fn qualified(&self, name: &str) -> Option<String> {
        let kind = |ahead: usize| self.tokens.get(self.next + ahead).map(|token| &token.kind);
        let (Some(Kind::Mark(".")), Some(Kind::Name(last)), Some(Kind::Mark("("))) = (kind(0), kind(1), kind(2)) else {
            return None;
        };
        let whole = format!("{name}.{last}");
        library::is_function(self.purpose, &whole).then_some(whole)
    }
}

/// The negative of a number that was read without its sign.
fn negative(kind: &Kind) -> Option<Constant> {
    match kind {
        Kind::Int(value) => i64::try_from(-i128::from(*value)).ok().map(Constant::Int),
        Kind::Double(value) => Some(Constant::Double(-value)),
        _ => None,
    }
}

fn word(name: &str) -> Option<Constant> {
    match name {
        "true" => Some(Constant::Bool(true)),
        "false" => Some(Constant::Bool(false)),
        "null" => Some(Constant::Null),
        _ => None,
    }
}
