//! Evaluates an expression to paths and values.

mod item;
mod operations;

use std::borrow::Cow;

use serde_json::Value as Json;

use self::item::{Item, Name, ValuePath};
use self::operations::{call, compare, is_true};
use super::parser::{Access, Expr};
use super::{JqError, Step, VISITS};
use crate::fields::{STRIDE, weight};

type Items<'j> = Result<Vec<Item<'j>>, JqError>;

pub fn paths(expression: &Expr, object: &Json) -> Result<Vec<Vec<Step>>, JqError> {
    let mut walk = Walk { left: VISITS };
    let start = Item { place: ValuePath::Root, value: Cow::Borrowed(object) };
    let found = walk.items(expression, &start)?;
    found.iter().map(|item| walk.path(&item.place)).collect()
}

struct Walk {
    left: usize,
}

fn wrong<T>(why: impl Into<String>) -> Result<T, JqError> {
    Err(JqError::Value(why.into()))
}

// === impl Walk ===

impl Walk {
    fn charge(&mut self, visits: usize) -> Result<(), JqError> {
        self.left = self.left.checked_sub(visits).ok_or(JqError::TooMuch)?;
        Ok(())
    }

    /// Calls itself for each level of an expression, so what needs much stack is in functions of
    /// its own.
    fn items<'j>(&mut self, expression: &'j Expr, input: &Item<'j>) -> Items<'j> {
        self.charge(1)?;
        match expression {
            Expr::Identity => Ok(vec![input.clone()]),
            Expr::Recurse => {
                let mut found = Vec::new();
                self.recurse(input, &mut found).map(|()| found)
            }
            Expr::Access(of, access, is_optional) => self.accessed(of, access, *is_optional, input),
            Expr::Pipe(first, second) => self.piped(first, second, input),
            Expr::Comma(first, second) => {
                let mut found = self.items(first, input)?;
                found.extend(self.items(second, input)?);
                Ok(found)
            }
            Expr::Select(condition) => {
                let found = self.items(condition, input)?;
                Ok(found.iter().filter(|one| is_true(&one.value)).map(|_| input.clone()).collect())
            }
            Expr::Literal(value) => Ok(vec![Item { place: ValuePath::Made, value: Cow::Borrowed(value) }]),
            Expr::Compare(mark, left, right) => self.compared(mark, left, right, input),
            Expr::Both(is_and, left, right) => self.both(*is_and, left, right, input),
            Expr::Call(name, argument) => self.called(name, argument.as_deref(), input),
        }
    }

    fn piped<'j>(&mut self, first: &'j Expr, second: &'j Expr, input: &Item<'j>) -> Items<'j> {
        let mut found = Vec::new();
        for item in self.items(first, input)? {
            found.extend(self.items(second, &item)?);
        }
        Ok(found)
    }

    fn compared<'j>(&mut self, mark: &str, left: &'j Expr, right: &'j Expr, input: &Item<'j>) -> Items<'j> {
        let (left, right) = (self.one(left, input)?, self.one(right, input)?);
        self.charge(weight(&left.value) + weight(&right.value))?;
        Ok(vec![Item::made(compare(mark, &left.value, &right.value)?.into())])
    }

    fn both<'j>(&mut self, is_and: bool, left: &'j Expr, right: &'j Expr, input: &Item<'j>) -> Items<'j> {
        let first = is_true(&self.one(left, input)?.value);
        let is_decided = first != is_and;
        let result = if is_decided { first } else { is_true(&self.one(right, input)?.value) };
        Ok(vec![Item::made(result.into())])
    }

    fn called<'j>(&mut self, name: &str, argument: Option<&'j Expr>, input: &Item<'j>) -> Items<'j> {
        let argument = argument.map(|argument| self.one(argument, input)).transpose()?;
        let texts = [Some(&*input.value), argument.as_ref().map(|one| &*one.value)];
        for text in texts.into_iter().flatten().filter(|value| value.is_string()) {
            self.charge(weight(text))?;
        }
        call(name, &input.value, argument.as_ref().map(|one| &*one.value)).map(|value| vec![Item::made(value)])
    }

    fn accessed<'j>(&mut self, of: &'j Expr, access: &'j Access, is_optional: bool, input: &Item<'j>) -> Items<'j> {
        let mut found = Vec::new();
        for item in self.items(of, input)? {
            let next = match access {
                Access::Field(name) => item.field(name),
                Access::Index(at) => item.index(*at),
                Access::Each => {
                    self.charge(item.size())?;
                    match item.children(&mut found) {
                        Err(JqError::Value(_)) if is_optional => continue,
                        done => done?,
                    }
                    continue;
                }
            };
            self.charge(1)?;
            match next {
                Err(JqError::Value(_)) if is_optional => {}
                next => found.push(next?),
            }
        }
        Ok(found)
    }

    fn recurse<'j>(&mut self, item: &Item<'j>, found: &mut Vec<Item<'j>>) -> Result<(), JqError> {
        // Charges each child for being held here, and later for being visited.
        self.charge(1 + item.size())?;
        found.push(item.clone());
        if item.size() > 0 {
            let mut children = Vec::new();
            item.children(&mut children)?;
            for child in children {
                self.recurse(&child, found)?;
            }
        }
        Ok(())
    }

    /// The only value: several values would give several results, for which nothing here has a use.
    fn one<'j>(&mut self, expression: &'j Expr, input: &Item<'j>) -> Result<Item<'j>, JqError> {
        let mut found = self.items(expression, input)?;
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => wrong("a condition needs one value on each side"),
        }
    }

    /// The steps to a place. Each is charged, since many places may be deep, and so are the bytes
    /// of the keys that are copied.
    fn path(&mut self, place: &ValuePath<'_>) -> Result<Vec<Step>, JqError> {
        let (mut steps, mut place) = (Vec::new(), place);
        loop {
            let (parent, name) = match place {
                ValuePath::Root => break,
                ValuePath::Made => return wrong("invalid path expression"),
                ValuePath::In(parent, name) => (parent, name),
            };
            self.charge(1)?;
            steps.push(match name {
                Name::At(at) => Step::At(*at),
                Name::Key(key) => {
                    self.charge(key.len() / STRIDE)?;
                    Step::Key((*key).to_owned())
                }
            });
            place = parent;
        }
        steps.reverse();
        Ok(steps)
    }
}
