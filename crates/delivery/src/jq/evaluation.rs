//! Evaluates an expression to paths and values.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::{Value as Json, json};

use super::parser::{Access, Expr};
use super::{JqError, Step};
use crate::fields::{STRIDE, weight};

/// A value, and where it is.
#[derive(Debug, Clone)]
struct Item<'j> {
    place: Place<'j>,
    value: Cow<'j, Json>,
}

/// Where a value is. Places share their common parts and borrow their keys: the children of a long
/// key do not each copy it.
#[derive(Debug, Clone)]
enum Place<'j> {
    /// The whole object.
    Root,
    In(Rc<Place<'j>>, Name<'j>),
    /// A computed value, which has no place.
    Made,
}

#[derive(Debug, Clone, Copy)]
enum Name<'j> {
    Key(&'j str),
    At(usize),
}

type Done = Result<(), JqError>;

/// What `expression` leads to, within so many `visits`.
pub fn paths(expression: &Expr, object: &Json, visits: usize) -> Result<Vec<Vec<Step>>, JqError> {
    let mut walk = Walk { left: visits };
    let start = Item { place: Place::Root, value: Cow::Borrowed(object) };
    let mut found = Vec::new();
    walk.items(expression, &start, &mut found)?;
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
    /// Once there is nothing left, there is nothing left for anything else either.
    fn charge(&mut self, visits: usize) -> Done {
        let rest = self.left.checked_sub(visits);
        self.left = rest.unwrap_or_default();
        if rest.is_some() { Ok(()) } else { Err(JqError::TooMuch) }
    }

    /// Puts what `expression` leads to behind what was `found`. What comes before a mistake is
    /// there too.
    fn items<'j>(&mut self, expression: &'j Expr, input: &Item<'j>, found: &mut Vec<Item<'j>>) -> Done {
        self.charge(1)?;
        match expression {
            Expr::Identity => found.push(input.clone()),
            Expr::Recurse => self.recurse(input, found)?,
            Expr::Access(of, access, is_optional) => {
                let (of, ended) = self.some(of, input)?;
                for item in of {
                    self.accessed(&item, access, *is_optional, found)?;
                }
                ended?;
            }
            Expr::Pipe(first, second) => {
                let (first, ended) = self.some(first, input)?;
                for item in first {
                    self.items(second, &item, found)?;
                }
                ended?;
            }
            Expr::Comma(first, second) => {
                self.items(first, input, found)?;
                self.items(second, input, found)?;
            }
            Expr::Alternative(first, second) => {
                let (mut first, _) = self.some(first, input)?;
                first.retain(|one| is_true(&one.value));
                if first.is_empty() {
                    self.items(second, input, found)?;
                }
                found.append(&mut first);
            }
            Expr::First(of) => {
                let (of, ended) = self.some(of, input)?;
                match of.into_iter().next() {
                    Some(one) => found.push(one),
                    None => ended?,
                }
            }
            Expr::Select(condition) => {
                let (conditions, ended) = self.some(condition, input)?;
                found.extend(conditions.iter().filter(|one| is_true(&one.value)).map(|_| input.clone()));
                ended?;
            }
            Expr::Literal(value) => found.push(Item { place: Place::Made, value: Cow::Borrowed(value) }),
            value => found.push(Item::made(self.value(value, input)?)),
        }
        Ok(())
    }

    /// What `expression` leads to, and the mistake after that, if any.
    ///
    /// # Errors
    ///
    /// Any other: nothing goes on after it.
    fn some<'j>(&mut self, expression: &'j Expr, input: &Item<'j>) -> Result<(Vec<Item<'j>>, Done), JqError> {
        let mut found = Vec::new();
        match self.items(expression, input, &mut found) {
            ended @ (Ok(()) | Err(JqError::Value(_))) => Ok((found, ended)),
            Err(error) => Err(error),
        }
    }

    /// What is made: a word or a number, no more.
    fn value<'j>(&mut self, expression: &'j Expr, input: &Item<'j>) -> Result<Json, JqError> {
        match expression {
            Expr::Compare(mark, left, right) => {
                let (left, right) = (self.one(left, input)?, self.one(right, input)?);
                self.charge(weight(&left.value) + weight(&right.value))?;
                Ok(compare(mark, &left.value, &right.value)?.into())
            }
            Expr::Both(is_and, left, right) => {
                let first = is_true(&self.one(left, input)?.value);
                let is_decided = first != *is_and;
                Ok((if is_decided { first } else { is_true(&self.one(right, input)?.value) }).into())
            }
            Expr::Test(pattern) => {
                let Json::String(text) = &*input.value else {
                    return wrong(format!("test cannot be applied to: {}", type_of(&input.value)));
                };
                self.charge(pattern.steps(text))?;
                Ok(pattern.regex.is_match(text).into())
            }
            Expr::Call("contains", Some(part)) => {
                let part = self.one(part, input)?;
                let (all, part) = (&*input.value, &*part.value);
                let cannot = || format!("contains cannot be applied to: {} and {}", type_of(all), type_of(part));
                self.contains(all, part)?.map_or_else(|| wrong(cannot()), |is_in| Ok(is_in.into()))
            }
            Expr::Call(name, argument) => {
                let argument = argument.as_ref().map(|argument| self.one(argument, input)).transpose()?;
                let texts = [Some(&*input.value), argument.as_ref().map(|one| &*one.value)];
                for text in texts.into_iter().flatten().filter(|value| value.is_string()) {
                    self.charge(weight(text))?;
                }
                call(name, &input.value, argument.as_ref().map(|one| &*one.value))
            }
            _ => wrong("it leads to places, and makes nothing"),
        }
    }

    /// As jq: a text has its parts, a list has another if each element of that is in one of its
    /// own, a map by its keys. None: they cannot be compared. Each pair is charged.
    fn contains(&mut self, all: &Json, part: &Json) -> Result<Option<bool>, JqError> {
        self.charge(1)?;
        match (all, part) {
            (Json::String(all), Json::String(part)) => {
                self.charge((all.len() + part.len()) / STRIDE)?;
                Ok(Some(all.contains(part.as_str())))
            }
            (Json::Array(all), Json::Array(parts)) => {
                for part in parts {
                    if !self.find_part(all, part)? {
                        return Ok(Some(false));
                    }
                }
                Ok(Some(true))
            }
            (Json::Object(all), Json::Object(parts)) => {
                for (key, part) in parts {
                    self.charge(1 + key.len() / STRIDE)?;
                    let one = all.get(key);
                    if one.map(|one| self.contains(one, part)).transpose()?.flatten() != Some(true) {
                        return Ok(Some(false));
                    }
                }
                Ok(Some(true))
            }
            (Json::Number(_), Json::Number(_)) => Ok(Some(order(all, part) == Ordering::Equal)),
            _ => Ok((all == part).then_some(true)),
        }
    }

    fn find_part(&mut self, all: &[Json], part: &Json) -> Result<bool, JqError> {
        for one in all {
            if self.contains(one, part)? == Some(true) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn accessed<'j>(
        &mut self,
        item: &Item<'j>,
        access: &'j Access,
        is_optional: bool,
        found: &mut Vec<Item<'j>>,
    ) -> Done {
        let next = match access {
            Access::Field(name) => item.field(name).map(Some),
            Access::Index(at) => item.index(*at).map(Some),
            Access::Each => {
                self.charge(item.size())?;
                item.children(found).map(|()| None)
            }
        };
        self.charge(1)?;
        match next {
            Err(JqError::Value(_)) if is_optional => {}
            next => found.extend(next?),
        }
        Ok(())
    }

    fn recurse<'j>(&mut self, item: &Item<'j>, found: &mut Vec<Item<'j>>) -> Done {
        // Each child for being held here, and for being gone into.
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
        let mut found = Vec::new();
        self.items(expression, input, &mut found)?;
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => wrong("a condition needs one value on each side"),
        }
    }

    /// The steps to a place, of which each is charged: many places may be deep. Here keys are
    /// copied, so their bytes are charged too.
    fn path(&mut self, place: &Place<'_>) -> Result<Vec<Step>, JqError> {
        let (mut steps, mut place) = (Vec::new(), place);
        loop {
            let (parent, name) = match place {
                Place::Root => break,
                Place::Made => return wrong("invalid path expression"),
                Place::In(parent, name) => (parent, name),
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

// === impl Item ===

impl<'j> Item<'j> {
    fn made(value: Json) -> Self {
        Self { place: Place::Made, value: Cow::Owned(value) }
    }

    fn at(&self, name: Name<'j>, value: Cow<'j, Json>) -> Self {
        let place = match &self.place {
            Place::Made => Place::Made,
            parent => Place::In(Rc::new(parent.clone()), name),
        };
        Self { place, value }
    }

    /// Null has every field, and each is null.
    fn field(&self, name: &'j str) -> Result<Self, JqError> {
        let to = Name::Key(name);
        match &self.value {
            Cow::Borrowed(Json::Object(entries)) => {
                Ok(self.at(to, entries.get(name).map_or(Cow::Owned(Json::Null), Cow::Borrowed)))
            }
            value if value.is_null() => Ok(self.at(to, Cow::Owned(Json::Null))),
            value => wrong(format!("expected an object but got: {}", type_of(value))),
        }
    }

    fn index(&self, at: i64) -> Result<Self, JqError> {
        let null = || Cow::Owned(Json::Null);
        let values = match &self.value {
            Cow::Borrowed(Json::Array(values)) => values,
            value if value.is_null() => return Ok(self.at(Name::At(usize::try_from(at).unwrap_or(0)), null())),
            value => return wrong(format!("expected an array but got: {}", type_of(value))),
        };
        let from_end = i64::try_from(values.len()).unwrap_or(i64::MAX).saturating_add(at);
        let place = usize::try_from(if at < 0 { from_end } else { at });
        // There is nothing before the first item, not even a place.
        let Ok(place) = place else { return Ok(self.at(Name::At(usize::MAX), null())) };
        Ok(self.at(Name::At(place), values.get(place).map_or_else(null, Cow::Borrowed)))
    }

    /// How many children it has.
    fn size(&self) -> usize {
        match &*self.value {
            Json::Array(values) => values.len(),
            Json::Object(entries) => entries.len(),
            _ => 0,
        }
    }

    fn children(&self, found: &mut Vec<Self>) -> Result<(), JqError> {
        let parent = Rc::new(self.place.clone());
        let child = |name: Name<'j>, value: &'j Json| {
            let place = if let Place::Made = *parent { Place::Made } else { Place::In(Rc::clone(&parent), name) };
            Self { place, value: Cow::Borrowed(value) }
        };
        match &self.value {
            Cow::Borrowed(Json::Array(values)) => {
                found.extend(values.iter().enumerate().map(|(at, value)| child(Name::At(at), value)));
            }
            Cow::Borrowed(Json::Object(entries)) => {
                found.extend(entries.iter().map(|(key, value)| child(Name::Key(key), value)));
            }
            value => return wrong(format!("cannot iterate over: {}", type_of(value))),
        }
        Ok(())
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

/// Lists and maps are only compared for equality. jq also orders them, by keys and then by values,
/// for which nothing here has a use.
fn compare(mark: &str, left: &Json, right: &Json) -> Result<bool, JqError> {
    let are_of_one_kind = (left.is_array() && right.is_array()) || (left.is_object() && right.is_object());
    if are_of_one_kind && !matches!(mark, "==" | "!=") {
        return wrong(format!("two values of type {} are not ordered here", type_of(left)));
    }
    let order = order(left, right);
    Ok(match mark {
        "==" => order == Ordering::Equal,
        "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}

/// jq's order: null, false, true, numbers, strings, lists, objects. Lists are equal or different
/// here, not ordered, and so are objects.
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
