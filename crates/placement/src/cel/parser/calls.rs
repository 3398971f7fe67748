//! Calls: macros with a variable of their own, and functions.

use super::{Parsed, Parser};
use crate::cel::library;
use crate::cel::patterns;
use crate::cel::syntax::{Constant, Expr, Fault, Fold, Limits, Node, Rule};
use crate::cel::token::Kind;
use crate::cel::types::Type;

/// Functions whose second argument is a regular expression.
const MATCHING: [&str; 3] = ["matches", "find", "findAll"];

impl Parser<'_> {
    /// A call `name(`, whose bracket is already read.
    pub(super) fn function(&mut self, name: &str, at: usize) -> Parsed {
        if name == "has" {
            return self.has(at);
        }
        let arguments = self.arguments()?;
        // `dyn` only hides a type.
        if let ("dyn", [_]) = (name, &arguments[..]) {
            let mut hidden = arguments;
            return hidden.pop().map(|inside| Expr { kind: Type::Dyn, ..inside }).ok_or_else(|| self.unexpected("')'"));
        }
        self.call(name, false, arguments, at)
    }

    /// A call `of.name(`, whose bracket is already read.
    pub(super) fn method(&mut self, of: Expr, name: &str, at: usize) -> Parsed {
        if let Some(rule) = rule(name)
            && self.is_variable()
        {
            return self.fold(rule, of, at);
        }
        let mut arguments = vec![of];
        arguments.extend(self.arguments()?);
        self.call(name, true, arguments, at)
    }

    fn arguments(&mut self) -> Result<Vec<Expr>, Fault> {
        let mut arguments = Vec::new();
        while !self.takes(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.expression()?);
        }
        Ok(arguments)
    }

    fn call(&mut self, name: &str, is_member: bool, arguments: Vec<Expr>, at: usize) -> Parsed {
        let kinds: Vec<Type> = arguments.iter().map(|argument| argument.kind).collect();
        let overloads = library::overloads(self.purpose, name, is_member, &kinds).map_err(|why| Fault::new(at, why))?;
        let kind = overloads.iter().map(|overload| overload.result).reduce(Type::joined).unwrap_or(Type::Dyn);
        let pattern = arguments.get(1).filter(|_| MATCHING.contains(&name));
        if let (true, [_, Expr { node: Node::Constant(Constant::Text(zone)), .. }]) = (is_member, &arguments[..]) {
            library::check_zone(&overloads, zone).map_err(|why| Fault::new(at, why))?;
        }
        let regex = match pattern.map(|pattern| &pattern.node) {
            Some(Node::Constant(Constant::Text(pattern))) => {
                self.patterns += 1;
                if self.patterns > Limits::PATTERNS {
                    return Err(Fault::new(at, format!("there are more than {} patterns", Limits::PATTERNS)));
                }
                Some(patterns::compiled(pattern).map_err(|why| Fault::new(at, why))?)
            }
            _ => None,
        };
        self.built(Node::Call { overloads, arguments, regex }, kind)
    }

    fn has(&mut self, at: usize) -> Parsed {
        let inside = self.expression()?;
        self.expect(")")?;
        match inside.node {
            Node::Select { of, field, is_optional: false } => self.built(Node::Has { of, field }, Type::Bool),
            _ => Err(Fault::new(at, "invalid argument to has() macro")),
        }
    }

    /// Whether a name and a comma follow: a macro's variable.
    fn is_variable(&self) -> bool {
        let after = self.tokens.get(self.next + 1).map(|token| &token.kind);
        matches!((self.peek(), after), (Kind::Name(_), Some(Kind::Mark(","))))
    }

    fn fold(&mut self, rule: Rule, over: Expr, at: usize) -> Parsed {
        if !matches!(over.kind, Type::Dyn | Type::List | Type::Map | Type::Optional) {
            let why = format!("expression of type '{}' cannot be range of a comprehension", over.kind);
            return Err(Fault::new(at, why));
        }
        let local = self.locals.len();
        if local >= Limits::FOLDS {
            return Err(Fault::new(at, format!("comprehensions nest more than {} levels", Limits::FOLDS)));
        }
        let name = self.name()?;
        self.expect(",")?;
        self.locals.push(name);
        let first = self.expression()?;
        let second = if rule == Rule::Map && self.takes(",") { Some(self.expression()?) } else { None };
        self.locals.pop();
        self.expect(")")?;
        let (condition, body) = match second {
            Some(body) => (Some(first), body),
            None => (None, first),
        };
        let is_predicate = !matches!(rule, Rule::Map | Rule::Optional { .. });
        let asked = if is_predicate { Some(&body) } else { condition.as_ref() };
        if let Some(wrong) = asked.filter(|asked| !Type::Bool.accepts(asked.kind)) {
            return Err(Fault::new(at, format!("expected type 'bool' but found '{}'", wrong.kind)));
        }
        let kind = match rule {
            Rule::All | Rule::Exists | Rule::ExistsOne => Type::Bool,
            Rule::Filter | Rule::Map => Type::List,
            Rule::Optional { .. } => Type::Optional,
        };
        self.built(Node::Fold(Box::new(Fold { rule, over, local, condition, body })), kind)
    }
}

fn rule(name: &str) -> Option<Rule> {
    match name {
        "all" => Some(Rule::All),
        "exists" => Some(Rule::Exists),
        "exists_one" | "existsOne" => Some(Rule::ExistsOne),
        "filter" => Some(Rule::Filter),
        "map" => Some(Rule::Map),
        "optMap" => Some(Rule::Optional { is_flat: false }),
        "optFlatMap" => Some(Rule::Optional { is_flat: true }),
        _ => None,
    }
}
