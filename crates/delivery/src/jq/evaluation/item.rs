//! A value on its way through an expression, and its place in the object.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::Value as Json;

use super::operations::type_of;
use super::wrong;
use crate::jq::JqError;

/// A value, and where it is.
#[derive(Debug, Clone)]
pub(super) struct Item<'j> {
    pub(super) place: ValuePath<'j>,
    pub(super) value: Cow<'j, Json>,
}

/// Where a value is. Paths share their common parts and borrow their keys: the children of a long
/// key do not each copy it.
#[derive(Debug, Clone)]
pub(super) enum ValuePath<'j> {
    /// The whole object.
    Root,
    In(Rc<ValuePath<'j>>, Name<'j>),
    /// A computed value, which has no path.
    Made,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Name<'j> {
    Key(&'j str),
    At(usize),
}

// === impl Item ===

impl<'j> Item<'j> {
    pub(super) fn made(value: Json) -> Self {
        Self { place: ValuePath::Made, value: Cow::Owned(value) }
    }

    fn at(&self, name: Name<'j>, value: Cow<'j, Json>) -> Self {
        let place = match &self.place {
            ValuePath::Made => ValuePath::Made,
            parent => ValuePath::In(Rc::new(parent.clone()), name),
        };
        Self { place, value }
    }

    /// Null has every field, and each is null.
    pub(super) fn field(&self, name: &'j str) -> Result<Self, JqError> {
        let to = Name::Key(name);
        match &self.value {
            Cow::Borrowed(Json::Object(entries)) => {
                Ok(self.at(to, entries.get(name).map_or(Cow::Owned(Json::Null), Cow::Borrowed)))
            }
            value if value.is_null() => Ok(self.at(to, Cow::Owned(Json::Null))),
            value => wrong(format!("expected an object but got: {}", type_of(value))),
        }
    }

    pub(super) fn index(&self, at: i64) -> Result<Self, JqError> {
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
    pub(super) fn size(&self) -> usize {
        match &*self.value {
            Json::Array(values) => values.len(),
            Json::Object(entries) => entries.len(),
            _ => 0,
        }
    }

    pub(super) fn children(&self, found: &mut Vec<Self>) -> Result<(), JqError> {
        let parent = Rc::new(self.place.clone());
        let child = |name: Name<'j>, value: &'j Json| {
            let place =
                if let ValuePath::Made = *parent { ValuePath::Made } else { ValuePath::In(Rc::clone(&parent), name) };
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
