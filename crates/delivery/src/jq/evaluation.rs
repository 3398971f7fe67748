//! Paths and values that an expression leads to.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Value as Json, json};

use super::parser::{Access, Expr};
use super::{JqError, Step, VISITS};
use crate::fields::weight;

/// A value, and where it is; no place, if it was made.
#[derive(Debug, Clone)]
struct Item<'j> {
    path: Option<Vec<Step>>,
    value: Cow<'j, Json>,
}

type Items<'j> = Result<Vec<Item<'j>>, JqError>;

pub fn paths(expression: &Expr, object: &Json) -> Result<Vec<Vec<Step>>, JqError> {
    let start = Item { path: Some(Vec::new()), value: Cow::Borrowed(object) };
    let found = Walk { left: VISITS }.items(expression, &start)?;
    let path = |item: Item<'_>| item.path.ok_or_else(|| JqError::Value("invalid path expression".to_owned()));
    found.into_iter().map(path).collect()
}

struct Walk {
    left: usize,
}

fn wrong<T>(why: impl Into<String>) -> Result<T, JqError> {
    Err(JqError::Value(why.into()))
}

// === impl Walk ===

impl Walk {
    fn items<'j>(&mut self, expression: &Expr, input: &Item<'j>) -> Items<'j> {
        let length = input.path.as_ref().map_or(0, Vec::len);
        self.left = self.left.checked_sub(1 + length / 8).ok_or(JqError::TooMuch)?;
        match expression {
            Expr::Identity => Ok(vec![input.clone()]),
            Expr::Recurse => {
                let mut found = Vec::new();
                self.recurse(input, &mut found)?;
                Ok(found)
            }
            Expr::Access(of, access, is_optional) => {
                let mut found = Vec::new();
                for item in self.items(of, input)? {
                    let next = match item.access(access) {
                        Err(JqError::Value(_)) if *is_optional => continue,
                        next => next?,
                    };
                    self.left = self.left.checked_sub(next.len()).ok_or(JqError::TooMuch)?;
                    found.extend(next);
                }
                Ok(found)
            }
            Expr::Pipe(first, second) => {
                let mut found = Vec::new();
                for item in self.items(first, input)? {
                    found.extend(self.items(second, &item)?);
                }
                Ok(found)
            }
            Expr::Comma(first, second) => {
                let mut found = self.items(first, input)?;
                found.extend(self.items(second, input)?);
                Ok(found)
            }
            Expr::Select(condition) => {
                let found = self.items(condition, input)?;
                Ok(found.iter().filter(|one| is_true(&one.value)).map(|_| input.clone()).collect())
            }
            Expr::Literal(value) => Ok(vec![Item::made(value.clone())]),
            Expr::Compare(mark, left, right) => {
                let (left, right) = (self.one(left, input)?, self.one(right, input)?);
                self.weigh(&left.value)?;
                self.weigh(&right.value)?;
                Ok(vec![Item::made(compare(mark, &left.value, &right.value).into())])
            }
            Expr::Both(is_and, left, right) => {
                let first = is_true(&self.one(left, input)?.value);
                let is_decided = first != *is_and;
                let result = if is_decided { first } else { is_true(&self.one(right, input)?.value) };
                Ok(vec![Item::made(result.into())])
            }
            Expr::Call(name, argument) => {
                let argument = argument.as_ref().map(|argument| self.one(argument, input)).transpose()?;
                self.weigh(argument.as_ref().map_or(&Json::Null, |one| &*one.value))?;
                call(name, &input.value, argument.as_ref().map(|one| &*one.value)).map(|value| vec![Item::made(value)])
            }
        }
    }

    /// For going through a value that is compared.
    fn weigh(&mut self, value: &Json) -> Result<(), JqError> {
        self.left = self.left.checked_sub(weight(value)).ok_or(JqError::TooMuch)?;
        Ok(())
    }

    fn recurse<'j>(&mut self, item: &Item<'j>, found: &mut Vec<Item<'j>>) -> Result<(), JqError> {
        self.left = self.left.checked_sub(1).ok_or(JqError::TooMuch)?;
        found.push(item.clone());
        for child in item.children().unwrap_or_default() {
            self.recurse(&child, found)?;
        }
        Ok(())
    }

    /// The only value: several would make several answers, which nothing here has a use for.
    fn one<'j>(&mut self, expression: &Expr, input: &Item<'j>) -> Result<Item<'j>, JqError> {
        let mut found = self.items(expression, input)?;
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => wrong("a condition needs one value on each side"),
        }
    }
}

// === impl Item ===

impl<'j> Item<'j> {
    fn made(value: Json) -> Self {
        Self { path: None, value: Cow::Owned(value) }
    }

    fn at(&self, step: Step, value: Cow<'j, Json>) -> Self {
        let path = self.path.clone().map(|mut path| {
            path.push(step);
            path
        });
        Self { path, value }
    }

    fn access(&self, access: &Access) -> Items<'j> {
        match access {
            Access::Field(name) => self.field(name).map(|one| vec![one]),
            Access::Index(at) => self.index(*at).map(|one| vec![one]),
            Access::Each => {
                let none = || JqError::Value(format!("cannot iterate over: {}", type_of(&self.value)));
                self.children().ok_or_else(none)
            }
        }
    }

    /// Null has every field, which is null.
    fn field(&self, name: &str) -> Result<Self, JqError> {
        let step = Step::Key(name.to_owned());
        let of = |entries: &'_ serde_json::Map<String, Json>| entries.get(name).cloned().unwrap_or_default();
        match &self.value {
            Cow::Borrowed(Json::Object(entries)) => {
                Ok(self.at(step, entries.get(name).map_or(Cow::Owned(Json::Null), Cow::Borrowed)))
            }
            Cow::Owned(Json::Object(entries)) => Ok(self.at(step, Cow::Owned(of(entries)))),
            value if value.is_null() => Ok(self.at(step, Cow::Owned(Json::Null))),
            value => wrong(format!("expected an object but got: {}", type_of(value))),
        }
    }

    fn index(&self, at: i64) -> Result<Self, JqError> {
        let null = || Cow::Owned(Json::Null);
        let values = match &self.value {
            Cow::Borrowed(Json::Array(values)) => values,
            value if value.is_null() => return Ok(self.at(Step::At(usize::try_from(at).unwrap_or(0)), null())),
            value => return wrong(format!("expected an array but got: {}", type_of(value))),
        };
        let from_end = i64::try_from(values.len()).unwrap_or(i64::MAX).saturating_add(at);
        let place = usize::try_from(if at < 0 { from_end } else { at });
        // Before the first there is nothing, not even a place.
        let Ok(place) = place else { return Ok(self.at(Step::At(usize::MAX), null())) };
        Ok(self.at(Step::At(place), values.get(place).map_or_else(null, Cow::Borrowed)))
    }

    /// None of what has none.
    fn children(&self) -> Option<Vec<Self>> {
        match &self.value {
            Cow::Borrowed(Json::Array(values)) => {
                let each = values.iter().enumerate();
                Some(each.map(|(at, value)| self.at(Step::At(at), Cow::Borrowed(value))).collect())
            }
            Cow::Borrowed(Json::Object(entries)) => {
                let each = entries.iter();
                Some(each.map(|(key, value)| self.at(Step::Key(key.clone()), Cow::Borrowed(value))).collect())
            }
            _ => None,
        }
    }
}

fn is_true(value: &Json) -> bool {
    !matches!(value, Json::Null | Json::Bool(false))
}

fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn compare(mark: &str, left: &Json, right: &Json) -> bool {
    let order = order(left, right);
    match mark {
        "==" => order == Ordering::Equal,
        "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    }
}

/// jq's: null, false, true, numbers, strings, lists, objects. Lists and objects are told apart
/// here, not ordered.
fn order(left: &Json, right: &Json) -> Ordering {
    let rank = |value: &Json| match value {
        Json::Null => 0,
        Json::Bool(false) => 1,
        Json::Bool(true) => 2,
        Json::Number(_) => 3,
        Json::String(_) => 4,
        Json::Array(_) => 5,
        Json::Object(_) => 6,
    };
    match (left, right) {
        (Json::Number(a), Json::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Less),
        },
        (Json::String(a), Json::String(b)) => a.cmp(b),
        _ if left == right => Ordering::Equal,
        _ => rank(left).cmp(&rank(right)).then(Ordering::Less),
    }
}

fn call(name: &str, input: &Json, argument: Option<&Json>) -> Result<Json, JqError> {
    let cannot = || wrong(format!("{name} cannot be applied to: {}", type_of(input)));
    match (name, input, argument) {
        ("not", ..) => Ok((!is_true(input)).into()),
        ("type", ..) => Ok(type_of(input).into()),
        ("length", Json::Null, _) => Ok(json!(0)),
        ("length", Json::String(text), _) => Ok(text.chars().count().into()),
        ("length", Json::Array(values), _) => Ok(values.len().into()),
        ("length", Json::Object(entries), _) => Ok(entries.len().into()),
        ("startswith", Json::String(text), Some(Json::String(part))) => Ok(text.starts_with(part.as_str()).into()),
        ("endswith", Json::String(text), Some(Json::String(part))) => Ok(text.ends_with(part.as_str()).into()),
        ("has", Json::Object(entries), Some(Json::String(key))) => Ok(entries.contains_key(key).into()),
        ("has", Json::Array(values), Some(Json::Number(at))) => {
            Ok(at.as_u64().and_then(|at| usize::try_from(at).ok()).is_some_and(|at| at < values.len()).into())
        }
        _ => cannot(),
    }
}
