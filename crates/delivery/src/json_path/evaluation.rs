//! Follows a path, and counts the visited values.

mod found;

use serde_json::Value as Json;

use self::found::type_name;
use super::comparison::holds;
use super::parser::{Filter, Node, Slice};
use super::{Error, VISITS};

pub use self::found::Found;

struct Walk {
    left: usize,
}

type Values<'j> = Vec<Found<'j>>;

pub fn follow<'j>(nodes: &'j [Node], object: &'j Json) -> Result<Values<'j>, Error> {
    Walk { left: VISITS }.list(vec![Found::Json(object)], nodes)
}

// === impl Walk ===

impl Walk {
    fn charge(&mut self, values: usize) -> Result<(), Error> {
        self.left = self.left.checked_sub(values).ok_or(Error::TooMuch)?;
        Ok(())
    }

    fn list<'j>(&mut self, values: Values<'j>, nodes: &'j [Node]) -> Result<Values<'j>, Error> {
        let mut values = values;
        for node in nodes {
            self.charge(1 + values.len())?;
            values = self.node(&values, node)?;
        }
        Ok(values)
    }

    fn node<'j>(&mut self, values: &[Found<'j>], node: &'j Node) -> Result<Values<'j>, Error> {
        match node {
            Node::Field(name) => Ok(fields(values, name)),
            Node::Wildcard => {
                let mut found = Vec::new();
                for value in values {
                    self.charge(value.size())?;
                    found.extend(value.children());
                }
                Ok(found)
            }
            Node::Recursive => {
                let mut found = Vec::new();
                self.descend(values, &mut found)?;
                Ok(found)
            }
            Node::Slice(slice) => self.sliced(values, *slice),
            Node::Union(parts) => {
                let mut found = Vec::new();
                for part in parts {
                    found.extend(self.list(values.to_vec(), part)?);
                    self.charge(found.len())?;
                }
                Ok(found)
            }
            Node::Filter(filter) => self.filtered(values, filter),
            Node::Text(_) => Ok(vec![Found::Literal(node)]),
            Node::Int(_) | Node::Float(_) | Node::Bool(_) => Ok(vec![Found::Literal(node); values.len()]),
        }
    }

    /// Each value that has children, or is a text that is not empty, before its children.
    fn descend<'j>(&mut self, values: &[Found<'j>], found: &mut Values<'j>) -> Result<(), Error> {
        for value in values {
            self.charge(1 + value.size())?;
            let children = value.children();
            let is_text = matches!(value, Found::Json(Json::String(text)) if !text.is_empty());
            if !children.is_empty() || is_text {
                found.push(*value);
                self.descend(&children, found)?;
            }
        }
        Ok(())
    }

    fn sliced<'j>(&mut self, values: &[Found<'j>], slice: Slice) -> Result<Values<'j>, Error> {
        let mut found = Vec::new();
        for value in values.iter().filter(|value| !value.is_null()) {
            let Found::Json(Json::Array(items)) = value else {
                return Err(Error::Value(format!("{} is not array or slice", type_name(value))));
            };
            let Some((start, end)) = slice.within(items.len())? else { return Ok(found) };
            let step = match slice.step {
                Some(step) => usize::try_from(step).ok().filter(|step| *step > 0),
                None => Some(1),
            };
            let step = step.ok_or_else(|| Error::Value("step must be > 0".to_owned()))?;
            let items = items.get(start..end).unwrap_or_default();
            self.charge(items.len() / step)?;
            found.extend(items.iter().step_by(step).map(Found::Json));
        }
        Ok(found)
    }

    fn filtered<'j>(&mut self, values: &[Found<'j>], filter: &'j Filter) -> Result<Values<'j>, Error> {
        let mut found = Vec::new();
        for value in values {
            let Found::Json(Json::Array(items)) = value else {
                return Err(Error::Value(format!("{} is not array or slice and cannot be filtered", type_name(value))));
            };
            for item in items {
                self.charge(1)?;
                if self.passes(Found::Json(item), filter)? {
                    found.push(Found::Json(item));
                }
            }
        }
        Ok(found)
    }

    fn passes<'j>(&mut self, item: Found<'j>, filter: &'j Filter) -> Result<bool, Error> {
        let lefts = self.list(vec![item], &filter.left);
        let Some((comparison, right)) = &filter.comparison else {
            return match lefts {
                Err(Error::TooMuch) => Err(Error::TooMuch),
                lefts => Ok(lefts.is_ok_and(|lefts| !lefts.is_empty())),
            };
        };
        let one = |values: Values<'j>| match values.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(*one)),
            _ => Err(Error::Value("can only compare one element at a time".to_owned())),
        };
        let Some(left) = one(lefts?)? else { return Ok(false) };
        let Some(right) = one(self.list(vec![item], right)?)? else { return Ok(false) };
        self.charge(left.weight() + right.weight())?;
        holds(*comparison, left.basic(), right.basic())
    }
}

fn fields<'j>(values: &[Found<'j>], name: &str) -> Values<'j> {
    let of = |value: &Found<'j>| match value {
        Found::Json(Json::Object(entries)) => entries.get(name).map(Found::Json),
        _ => None,
    };
    values.iter().filter_map(of).collect()
}

// === impl Slice ===

impl Slice {
    /// Start and end in a list of `length` items; none for an empty slice.
    fn within(self, length: usize) -> Result<Option<(usize, usize)>, Error> {
        let size = i64::try_from(length).unwrap_or(i64::MAX);
        let from_end = |at: i64| if at < 0 { at.saturating_add(size) } else { at };
        let start = from_end(self.start.unwrap_or(0));
        let end = match self.end.unwrap_or(size) {
            0 if self.is_index => size,
            end => from_end(end),
        };
        if start == end {
            return Ok(None);
        }
        let outside = |at: i64| Error::Value(format!("array index out of bounds: index {at}, length {size}"));
        if start < 0 || start >= size {
            return Err(outside(start));
        }
        if end < 0 || end > size {
            return Err(outside(end.saturating_sub(1)));
        }
        if start > end {
            return Err(Error::Value(format!("starting index {start} is greater than ending index {end}")));
        }
        Ok(usize::try_from(start).ok().zip(usize::try_from(end).ok()))
    }
}
