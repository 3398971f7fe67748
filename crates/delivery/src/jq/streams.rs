//! Functions that have any number of answers, or are given expressions. Some lead to places, which
//! `del(…)` takes away; the others make values for conditions.

use serde_json::Value as Json;

use super::evaluation::{Item, Items, Place, Walk};
use super::functions::{are_equal, call, is_true, wrong};
use super::parser::Expr;
use super::{JqError, Step, remove};
use crate::fields::weight;

// === impl Walk ===

impl Walk {
    pub fn stream<'j>(&mut self, name: &str, arguments: &'j [Expr], input: &Item<'j>) -> Items<'j> {
        match (name, arguments) {
            ("empty", _) => Ok(Vec::new()),
            ("values", _) => Ok(Some(input).filter(|one| !one.value.is_null()).cloned().into_iter().collect()),
            ("first", []) => Ok(vec![self.indexed(input, 0)?]),
            ("last", []) => Ok(vec![self.indexed(input, -1)?]),
            ("first", [of]) => Ok(self.items(of, input)?.into_iter().take(1).collect()),
            ("last", [of]) => Ok(self.items(of, input)?.pop().into_iter().collect()),
            ("limit", [count, of]) => {
                let count = usize::try_from(self.integer(count, input)?).unwrap_or(0);
                Ok(if count == 0 { Vec::new() } else { self.items(of, input)?.into_iter().take(count).collect() })
            }
            ("recurse", []) => self.items(&Expr::Recurse, input),
            ("recurse", [next]) => self.recursed(next, input),
            ("select", [condition]) => {
                let found = self.items(condition, input)?;
                Ok(found.iter().filter(|one| is_true(&one.value)).map(|_| input.clone()).collect())
            }
            ("range", [end]) => self.range(0, end, input),
            ("range", [begin, end]) => {
                let begin = self.integer(begin, input)?;
                self.range(begin, end, input)
            }
            ("getpath", [path]) => self.at_path(path, input).map(|item| vec![item]),
            ("paths", filter) => self.paths_in(filter.first(), input),
            ("path", [of]) => {
                let found = self.items(of, &input.as_root())?;
                found.iter().map(|item| self.path(&item.place).map(|path| Item::made(told(&path)))).collect()
            }
            _ => self.judged(name, arguments, input).map(|value| vec![Item::made(value)]),
        }
    }

    /// Those that come to one value.
    fn judged<'j>(&mut self, name: &str, arguments: &'j [Expr], input: &Item<'j>) -> Result<Json, JqError> {
        match (name, arguments) {
            ("map", [each]) => {
                let of = self.children(input)?;
                self.collected(each, &of)
            }
            ("with_entries", [each]) => {
                self.charge(weight(&input.value))?;
                let entries = Item::made(call("to_entries", &input.value, None)?);
                let of = self.children(&entries)?;
                let changed = self.collected(each, &of)?;
                call("from_entries", &changed, None)
            }
            ("any" | "all", [.., condition]) => {
                let of = match arguments {
                    [of, _] => self.items(of, input)?,
                    _ => self.children(input)?,
                };
                for item in of {
                    if self.items(condition, &item)?.iter().any(|one| is_true(&one.value) == (name == "any")) {
                        return Ok((name == "any").into());
                    }
                }
                Ok((name == "all").into())
            }
            ("IN", [.., among]) => {
                let of = match arguments {
                    [of, _] => self.items(of, input)?,
                    _ => vec![input.clone()],
                };
                let among = self.items(among, input)?;
                let heaviest = among.iter().map(|one| weight(&one.value)).sum::<usize>();
                self.charge(of.len().saturating_mul(heaviest))?;
                Ok(of.iter().any(|one| among.iter().any(|other| are_equal(&one.value, &other.value))).into())
            }
            ("del", [of]) => {
                let found = self.items(of, &input.as_root())?;
                let mut paths = found.iter().map(|item| self.path(&item.place)).collect::<Result<Vec<_>, _>>()?;
                self.charge(weight(&input.value))?;
                let mut value = input.value.clone().into_owned();
                paths.sort_unstable_by(|a, b| b.cmp(a));
                paths.dedup();
                paths.iter().for_each(|path| remove(&mut value, path));
                Ok(if paths.iter().any(Vec::is_empty) { Json::Null } else { value })
            }
            _ => wrong(format!("{name} is not known here")),
        }
    }

    /// `[of | each]`
    pub fn collected<'j>(&mut self, each: &'j Expr, of: &[Item<'j>]) -> Result<Json, JqError> {
        let mut all = Vec::new();
        for item in of {
            for found in self.items(each, item)? {
                self.charge(weight(&found.value))?;
                all.push(found.value.into_owned());
            }
        }
        Ok(all.into())
    }

    /// One by one: `recurse(.)` would need a level of the stack for each else.
    fn recursed<'j>(&mut self, next: &'j Expr, input: &Item<'j>) -> Items<'j> {
        let (mut found, mut left) = (Vec::new(), vec![input.clone()]);
        while let Some(item) = left.pop() {
            left.extend(self.items(next, &item)?.into_iter().rev());
            found.push(item);
        }
        Ok(found)
    }

    fn range<'j>(&mut self, begin: i64, end: &'j Expr, input: &Item<'j>) -> Items<'j> {
        let end = self.integer(end, input)?;
        self.charge(usize::try_from(end.saturating_sub(begin)).unwrap_or(0))?;
        Ok((begin..end).map(|number| Item::made(number.into())).collect())
    }

    fn integer<'j>(&mut self, expression: &'j Expr, input: &Item<'j>) -> Result<i64, JqError> {
        let one = self.one(expression, input)?;
        one.value.as_i64().map_or_else(|| wrong("a whole number is needed"), Ok)
    }

    fn at_path<'j>(&mut self, path: &'j Expr, input: &Item<'j>) -> Result<Item<'j>, JqError> {
        let path = self.one(path, input)?;
        let Json::Array(steps) = &*path.value else { return wrong("getpath takes a list") };
        let mut item = input.clone();
        for step in steps {
            item = self.keyed(&item, step)?;
        }
        Ok(item)
    }

    /// Paths to all that is in it, of which `filter` is true.
    fn paths_in<'j>(&mut self, filter: Option<&'j Expr>, input: &Item<'j>) -> Items<'j> {
        let mut found = Vec::new();
        for item in self.items(&Expr::Recurse, &input.as_root())? {
            let is_wanted = match filter {
                Some(filter) => self.items(filter, &item)?.iter().any(|one| is_true(&one.value)),
                None => true,
            };
            if is_wanted && !matches!(item.place, Place::Root) {
                found.push(Item::made(told(&self.path(&item.place)?)));
            }
        }
        Ok(found)
    }
}

/// A path as a value.
fn told(path: &[Step]) -> Json {
    let step = |step: &Step| match step {
        Step::Key(key) => Json::from(key.as_str()),
        Step::At(at) => Json::from(*at),
    };
    path.iter().map(step).collect::<Vec<_>>().into()
}
