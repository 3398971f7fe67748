//! Paths and values that an expression leads to.

use std::ops::Deref;
use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::functions::{CROSSED, SHALLOW, call, compare, is_true, type_of, wrong};
use super::parser::{Access, Expr};
use super::{JqError, Step, VISITS};
use crate::fields::{STRIDE, weight};

/// A value, and where it is.
#[derive(Debug, Clone)]
pub struct Item<'j> {
    pub place: Place<'j>,
    pub value: Value<'j>,
}

/// Of the object, or made of it.
#[derive(Debug, Clone)]
pub enum Value<'j> {
    Of(&'j Json),
    Made(Rc<Json>),
}

/// Where a value is. Places share what they have in common, and borrow their keys: the children of
/// a long key do not each have it.
#[derive(Debug, Clone)]
pub enum Place<'j> {
    /// The whole object.
    Root,
    In(Rc<Place<'j>>, Name<'j>),
    /// It was made, and is nowhere.
    Made,
}

#[derive(Debug, Clone, Copy)]
pub enum Name<'j> {
    Key(&'j str),
    At(usize),
}

/// In a list or map that has nothing there.
const NOWHERE: Name<'static> = Name::At(usize::MAX);

pub type Items<'j> = Result<Vec<Item<'j>>, JqError>;

pub fn paths(expression: &Expr, object: &Json) -> Result<Vec<Vec<Step>>, JqError> {
    let mut walk = Walk { left: VISITS };
    let start = Item { place: Place::Root, value: Value::Of(object) };
    let found = walk.items(expression, &start)?;
    found.iter().map(|item| walk.path(&item.place)).collect()
}

pub struct Walk {
    left: usize,
}

// === impl Walk ===

impl Walk {
    pub fn charge(&mut self, visits: usize) -> Result<(), JqError> {
        self.left = self.left.checked_sub(visits).ok_or(JqError::TooMuch)?;
        Ok(())
    }

    pub fn items<'j>(&mut self, expression: &'j Expr, input: &Item<'j>) -> Items<'j> {
        self.charge(1)?;
        match expression {
            Expr::Identity => Ok(vec![input.clone()]),
            Expr::Recurse => {
                let mut found = Vec::new();
                self.recurse(input, &mut found)?;
                Ok(found)
            }
            Expr::Access(of, access, is_optional) => self.accessed(of, access, *is_optional, input),
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
            Expr::Or(first, second) => self.alternative(first, second, input),
            Expr::If(parts) => {
                let [condition, then, otherwise] = &**parts;
                let mut found = Vec::new();
                for one in self.items(condition, input)? {
                    found.extend(self.items(if is_true(&one.value) { then } else { otherwise }, input)?);
                }
                Ok(found)
            }
            Expr::Stream(name, arguments) => self.stream(name, arguments, input),
            Expr::Literal(value) => Ok(vec![Item { place: Place::Made, value: Value::Of(value) }]),
            _ => self.made(expression, input).map(|value| vec![Item::made(value)]),
        }
    }

    /// What comes to one value, which is nowhere.
    fn made<'j>(&mut self, expression: &'j Expr, input: &Item<'j>) -> Result<Json, JqError> {
        match expression {
            Expr::Compare(mark, left, right) => {
                let (left, right) = (self.one(left, input)?, self.one(right, input)?);
                self.charge(weight(&left.value) + weight(&right.value))?;
                Ok(compare(mark, &left.value, &right.value)?.into())
            }
            Expr::Both(is_and, left, right) => {
                let first = is_true(&self.one(left, input)?.value);
                let is_decided = first != *is_and;
                Ok(if is_decided { first } else { is_true(&self.one(right, input)?.value) }.into())
            }
            Expr::List(None) => Ok(Vec::<Json>::new().into()),
            Expr::List(Some(of)) => self.collected(of, std::slice::from_ref(input)),
            Expr::Map(entries) => {
                let mut map = Map::new();
                for (key, value) in entries {
                    let (key, value) = (self.one(key, input)?, self.one(value, input)?);
                    self.charge(weight(&key.value) + weight(&value.value))?;
                    let Json::String(key) = key.value.into_owned() else { return wrong("a key is a text") };
                    map.insert(key, value.value.into_owned());
                }
                Ok(map.into())
            }
            Expr::Test(pattern) => match &*input.value {
                Json::String(text) => {
                    // A step of matching is a fraction of a visit.
                    self.charge(1 + pattern.steps(text) / 4)?;
                    Ok(pattern.regex.is_match(text).into())
                }
                other => wrong(format!("test cannot be applied to: {}", type_of(other))),
            },
            Expr::Call(name, argument) => self.called(name, argument.as_deref(), input),
            _ => wrong("it comes to no value"),
        }
    }

    fn called<'j>(&mut self, name: &str, argument: Option<&'j Expr>, input: &Item<'j>) -> Result<Json, JqError> {
        let argument = argument.map(|argument| self.one(argument, input)).transpose()?;
        let argument = argument.as_ref().map(|one| &*one.value);
        let all = || [Some(&*input.value), argument].into_iter().flatten();
        if SHALLOW.contains(&name) {
            self.charge(all().filter(|value| value.is_string()).map(weight).sum())?;
        } else if CROSSED.contains(&name) {
            self.charge(all().map(weight).fold(1, usize::saturating_mul))?;
        } else {
            self.charge(all().map(weight).sum())?;
        }
        let value = call(name, &input.value, argument)?;
        self.charge(weight(&value))?;
        Ok(value)
    }

    /// What `first` finds that is true, or else what `second` does.
    fn alternative<'j>(&mut self, first: &'j Expr, second: &'j Expr, input: &Item<'j>) -> Items<'j> {
        let mut found = match self.items(first, input) {
            Err(JqError::Value(_)) => Vec::new(),
            found => found?,
        };
        found.retain(|one| is_true(&one.value));
        if found.is_empty() { self.items(second, input) } else { Ok(found) }
    }

    fn accessed<'j>(&mut self, of: &'j Expr, access: &'j Access, is_optional: bool, input: &Item<'j>) -> Items<'j> {
        let mut found = Vec::new();
        for item in self.items(of, input)? {
            let next = match access {
                Access::Field(name) => self.field(&item, name).map(|one| vec![one]),
                Access::Index(at) => self.indexed(&item, *at).map(|one| vec![one]),
                Access::Each => self.children(&item),
                Access::By(keys) => {
                    let keys = self.items(keys, input)?;
                    keys.iter().map(|key| self.keyed(&item, &key.value)).collect()
                }
            };
            self.charge(1)?;
            match next {
                Err(JqError::Value(_)) if is_optional => {}
                next => found.extend(next?),
            }
        }
        Ok(found)
    }

    fn recurse<'j>(&mut self, item: &Item<'j>, found: &mut Vec<Item<'j>>) -> Result<(), JqError> {
        self.charge(1)?;
        found.push(item.clone());
        if item.size() > 0 {
            for child in self.children(item)? {
                self.recurse(&child, found)?;
            }
        }
        Ok(())
    }

    /// The only value: several would make several answers, which nothing here has a use for.
    pub fn one<'j>(&mut self, expression: &'j Expr, input: &Item<'j>) -> Result<Item<'j>, JqError> {
        let mut found = self.items(expression, input)?;
        match (found.pop(), found.is_empty()) {
            (Some(one), true) => Ok(one),
            _ => wrong("a condition needs one value on each side"),
        }
    }

    /// The steps to a place. Here its keys are copied, so their bytes are charged.
    pub fn path(&mut self, place: &Place<'_>) -> Result<Vec<Step>, JqError> {
        let (mut steps, mut place) = (Vec::new(), place);
        loop {
            let (parent, name) = match place {
                Place::Root => break,
                Place::Made => return wrong("invalid path expression"),
                Place::In(parent, name) => (parent, name),
            };
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

    /// Null has every field, which is null.
    fn field<'j>(&mut self, item: &Item<'j>, name: &'j str) -> Result<Item<'j>, JqError> {
        match &item.value {
            Value::Of(Json::Object(entries)) => {
                Ok(item.at(Name::Key(name), entries.get(name).map_or_else(Value::null, Value::Of)))
            }
            value if value.is_null() => Ok(item.at(Name::Key(name), Value::null())),
            _ => self.named(item, name),
        }
    }

    /// The same by a name that was made.
    fn named<'j>(&mut self, item: &Item<'j>, name: &str) -> Result<Item<'j>, JqError> {
        match &item.value {
            Value::Of(Json::Object(entries)) => Ok(match entries.get_key_value(name) {
                Some((name, value)) => item.at(Name::Key(name), Value::Of(value)),
                None => item.at(NOWHERE, Value::null()),
            }),
            Value::Made(value) if value.is_object() => self.part(value.get(name)),
            value if value.is_null() => Ok(item.at(NOWHERE, Value::null())),
            value => wrong(format!("expected an object but got: {}", type_of(value))),
        }
    }

    pub fn indexed<'j>(&mut self, item: &Item<'j>, at: i64) -> Result<Item<'j>, JqError> {
        let size = i64::try_from(item.size()).unwrap_or(i64::MAX);
        let place = usize::try_from(if at < 0 { size.saturating_add(at) } else { at });
        match &item.value {
            Value::Of(Json::Array(values)) => Ok(match place {
                Ok(place) => item.at(Name::At(place), values.get(place).map_or_else(Value::null, Value::Of)),
                // Before the first there is nothing, not even a place.
                Err(_) => item.at(NOWHERE, Value::null()),
            }),
            Value::Made(value) if value.is_array() => self.part(place.ok().and_then(|place| value.get(place))),
            value if value.is_null() => Ok(item.at(place.map_or(NOWHERE, Name::At), Value::null())),
            value => wrong(format!("expected an array but got: {}", type_of(value))),
        }
    }

    /// What is at a key that is a value.
    pub fn keyed<'j>(&mut self, item: &Item<'j>, key: &Json) -> Result<Item<'j>, JqError> {
        match key {
            Json::String(name) => self.named(item, name),
            key => match key.as_i64() {
                Some(at) => self.indexed(item, at),
                None => wrong(format!("a value of type {} is no key", type_of(key))),
            },
        }
    }

    /// Of what was made.
    fn part<'j>(&mut self, part: Option<&Json>) -> Result<Item<'j>, JqError> {
        self.charge(part.map_or(0, weight))?;
        Ok(Item::made(part.cloned().unwrap_or_default()))
    }

    pub fn children<'j>(&mut self, item: &Item<'j>) -> Items<'j> {
        // Each for being held here.
        self.charge(item.size())?;
        let parent = Rc::new(item.place.clone());
        let child = |name: Name<'j>, value: &'j Json| {
            let place = if let Place::Made = *parent { Place::Made } else { Place::In(Rc::clone(&parent), name) };
            Item { place, value: Value::Of(value) }
        };
        match &item.value {
            Value::Of(Json::Array(values)) => {
                Ok(values.iter().enumerate().map(|(at, value)| child(Name::At(at), value)).collect())
            }
            Value::Of(Json::Object(entries)) => {
                Ok(entries.iter().map(|(key, value)| child(Name::Key(key), value)).collect())
            }
            Value::Made(value) => match &**value {
                Json::Array(values) => values.iter().map(|value| self.part(Some(value))).collect(),
                Json::Object(entries) => entries.values().map(|value| self.part(Some(value))).collect(),
                value => wrong(format!("cannot iterate over: {}", type_of(value))),
            },
            value => wrong(format!("cannot iterate over: {}", type_of(value))),
        }
    }
}

// === impl Item ===

impl<'j> Item<'j> {
    pub fn made(value: Json) -> Self {
        Self { place: Place::Made, value: Value::Made(Rc::new(value)) }
    }

    /// The same value, as if nothing were around it.
    pub fn as_root(&self) -> Self {
        Self { place: Place::Root, value: self.value.clone() }
    }

    fn at(&self, name: Name<'j>, value: Value<'j>) -> Self {
        let place = match &self.place {
            Place::Made => Place::Made,
            parent => Place::In(Rc::new(parent.clone()), name),
        };
        Self { place, value }
    }

    /// How many children it has.
    fn size(&self) -> usize {
        match &*self.value {
            Json::Array(values) => values.len(),
            Json::Object(entries) => entries.len(),
            _ => 0,
        }
    }
}

// === impl Value ===

impl Value<'_> {
    fn null() -> Self {
        Self::Of(&Json::Null)
    }

    pub fn into_owned(self) -> Json {
        match self {
            Self::Of(value) => value.clone(),
            Self::Made(value) => Rc::unwrap_or_clone(value),
        }
    }
}

impl Deref for Value<'_> {
    type Target = Json;

    fn deref(&self) -> &Json {
        match self {
            Self::Of(value) => value,
            Self::Made(value) => value,
        }
    }
}
