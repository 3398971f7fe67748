//! Parses tokens into an expression, and resolves names on the way: an unknown name is a fault.

mod calls;
mod primary;

use super::check;
use super::lexer::tokens;
use super::library::Purpose;
use super::syntax::{Element, Expr, Fault, Limits, Node, Operator};
use super::token::{Kind, Token};
use super::types::Type;

/// A variable that the caller gives, and its type.
pub type Variable = (&'static str, Type);

pub struct Parser<'t> {
    purpose: Purpose,
    tokens: Vec<Token>,
    next: usize,
    variables: &'t [Variable],
    /// Variables of the enclosing comprehensions, outermost first.
    locals: Vec<Box<str>>,
    depth: usize,
    /// Number of constant patterns so far.
    patterns: usize,
}

type Parsed = Result<Expr, Fault>;

/// Operators between two operands, weakest binding first.
const BINARY: [&[(&str, Operator)]; 3] = [
    &[
        ("<", Operator::Less),
        ("<=", Operator::LessOrEqual),
        (">", Operator::Greater),
        (">=", Operator::GreaterOrEqual),
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("in", Operator::In),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)],
];

/// Parses all of `text` as one expression.
pub fn parse(purpose: Purpose, text: &str, variables: &[Variable]) -> Parsed {
    let tokens = tokens(text)?;
    let mut parser = Parser { purpose, tokens, next: 0, variables, locals: Vec::new(), depth: 0, patterns: 0 };
    let expression = parser.expression()?;
    match parser.peek() {
        Kind::End => Ok(expression),
        _ => Err(parser.unexpected("the end")),
    }
}

// === impl Parser ===

impl Parser<'_> {
    fn expression(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > Limits::NESTING {
            return Err(self.too_deep(Limits::NESTING));
        }
        let condition = self.or()?;
        let whole = if self.takes("?") {
            let yes = self.or()?;
            self.expect(":")?;
            let no = self.expression()?;
            let at = self.at();
            check::condition(&condition).map_err(|why| Fault::new(at, why))?;
            let kind = yes.kind.joined(no.kind);
            self.built(Node::If(Box::new([condition, yes, no])), kind)?
        } else {
            condition
        };
        self.depth -= 1;
        Ok(whole)
    }

    fn or(&mut self) -> Parsed {
        self.chain("||", Self::and, Node::Or)
    }

    fn and(&mut self) -> Parsed {
        self.chain("&&", |parser| parser.binary(0), Node::And)
    }

    fn chain(&mut self, mark: &str, inner: impl Fn(&mut Self) -> Parsed, node: fn(Vec<Expr>) -> Node) -> Parsed {
        let first = inner(self)?;
        if !self.is_at(mark) {
            return Ok(first);
        }
        let at = self.at();
        let mut parts = vec![first];
        while self.takes(mark) {
            parts.push(inner(self)?);
        }
        for part in &parts {
            check::logical(mark, part).map_err(|why| Fault::new(at, why))?;
        }
        self.built(node(parts), Type::Bool)
    }

    fn binary(&mut self, level: usize) -> Parsed {
        let Some(operators) = BINARY.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(operators) {
            let at = self.at();
            self.next += 1;
            let right = self.binary(level + 1)?;
            let kind = check::binary(operator, &left, &right).map_err(|why| Fault::new(at, why))?;
            left = self.built(Node::Binary { operator, sides: Box::new([left, right]) }, kind)?;
        }
        Ok(left)
    }

    fn operator(&self, operators: &[(&str, Operator)]) -> Option<Operator> {
        let is_it = |mark: &str| match self.peek() {
            Kind::Mark(found) => *found == mark,
            Kind::Name(name) => &**name == "in" && mark == "in",
            _ => false,
        };
        operators.iter().find(|(mark, _)| is_it(mark)).map(|(_, operator)| *operator)
    }

    fn unary(&mut self) -> Parsed {
        let at = self.at();
        let mark = if self.is_at("!") { "!" } else { "-" };
        let mut count = 0;
        while self.is_at(mark) && !(mark == "-" && self.is_negative_number()) {
            self.next += 1;
            count += 1;
        }
        let operand = self.member()?;
        if count == 0 {
            return Ok(operand);
        }
        let kind = check::unary(mark, operand.kind).map_err(|why| Fault::new(at, why))?;
        let node = |operand| if mark == "!" { Node::Not(operand) } else { Node::Negate(operand) };
        // Pairs cancel out.
        if count % 2 == 0 { Ok(operand) } else { self.built(node(Box::new(operand)), kind) }
    }

    /// Whether a sign and a number follow, which are one literal.
    fn is_negative_number(&self) -> bool {
        let next = self.tokens.get(self.next + 1).map(|token| &token.kind);
        self.is_at("-") && matches!(next, Some(Kind::Int(_) | Kind::Double(_)))
    }

    fn member(&mut self) -> Parsed {
        let mut whole = self.primary()?;
        loop {
            let at = self.at();
            if self.takes(".") {
                let name = self.name()?;
                whole =
                    if self.takes("(") { self.method(whole, &name, at)? } else { self.select(whole, name, false, at)? };
            } else if self.takes(".?") {
                let name = self.name()?;
                whole = self.select(whole, name, true, at)?;
            } else if self.is_at("[") || self.is_at("[?") {
                let is_optional = self.is_at("[?");
                self.next += 1;
                let index = self.expression()?;
                self.expect("]")?;
                check::indexed(whole.kind).map_err(|why| Fault::new(at, why))?;
                let kind = if is_optional { Type::Optional } else { Type::Dyn };
                let node = Node::Index { of: Box::new(whole), index: Box::new(index), is_optional };
                whole = self.built(node, kind)?;
            } else {
                return Ok(whole);
            }
        }
    }

    fn select(&self, of: Expr, field: Box<str>, is_optional: bool, at: usize) -> Parsed {
        check::selected(of.kind).map_err(|why| Fault::new(at, why))?;
        let kind = if is_optional { Type::Optional } else { Type::Dyn };
        self.built(Node::Select { of: Box::new(of), field, is_optional }, kind)
    }

    /// An expression of `node`, unless it is nested too deeply.
    fn built(&self, node: Node, kind: Type) -> Parsed {
        let depth = 1 + below(&node);
        if depth > Limits::DEPTH {
            return Err(self.too_deep(Limits::DEPTH));
        }
        Ok(Expr { node, kind, depth })
    }

    fn too_deep(&self, most: usize) -> Fault {
        Fault::new(self.at(), format!("the expression has more than {most} levels"))
    }

    fn peek(&self) -> &Kind {
        self.tokens.get(self.next).map_or(&Kind::End, |token| &token.kind)
    }

    fn at(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |token| token.at)
    }

    fn is_at(&self, mark: &str) -> bool {
        matches!(self.peek(), Kind::Mark(found) if *found == mark)
    }

    fn takes(&mut self, mark: &str) -> bool {
        let is_there = self.is_at(mark);
        self.next += usize::from(is_there);
        is_there
    }

    fn expect(&mut self, mark: &str) -> Result<(), Fault> {
        if self.takes(mark) { Ok(()) } else { Err(self.unexpected(&format!("'{mark}'"))) }
    }

    fn name(&mut self) -> Result<Box<str>, Fault> {
        let Kind::Name(name) = self.peek() else { return Err(self.unexpected("an identifier")) };
        let name = name.clone();
        self.next += 1;
        Ok(name)
    }

    fn unexpected(&self, expected: &str) -> Fault {
        let found = match self.peek() {
            Kind::End => "'<EOF>'".to_owned(),
            Kind::Mark(mark) => format!("'{mark}'"),
            Kind::Name(name) => format!("'{name}'"),
            Kind::Int(value) => format!("'{value}'"),
            Kind::Uint(value) => format!("'{value}u'"),
            Kind::Double(value) => format!("'{value}'"),
            Kind::Text(_) => "a string".to_owned(),
            Kind::Bytes(_) => "bytes".to_owned(),
        };
        Fault::syntax(self.at(), format!("mismatched input {found} expecting {expected}"))
    }
}

/// Number of levels below a node.
fn below(node: &Node) -> usize {
    let most = |parts: &[Expr]| parts.iter().map(|part| part.depth).max().unwrap_or(0);
    let element = |element: &Element| element.value.depth;
    match node {
        Node::Constant(_) | Node::Variable(_) | Node::Local(_) => 0,
        Node::Select { of, .. } | Node::Has { of, .. } | Node::Not(of) | Node::Negate(of) => of.depth,
        Node::Index { of, index, .. } => of.depth.max(index.depth),
        Node::List(elements) => elements.iter().map(element).max().unwrap_or(0),
        Node::Map(entries) => entries.iter().map(|(key, value)| key.depth.max(element(value))).max().unwrap_or(0),
        Node::Call { arguments: parts, .. } | Node::And(parts) | Node::Or(parts) => most(parts),
        Node::Binary { sides, .. } => most(&**sides),
        Node::If(parts) => most(&**parts),
        Node::Fold(fold) => {
            let condition = fold.condition.as_ref().map_or(0, |condition| condition.depth);
            fold.over.depth.max(fold.body.depth).max(condition)
        }
    }
}
