//! Macros with a variable.

use crate::cel::function::{Answer, Run};
use crate::cel::meter::Failure;
use crate::cel::syntax::{Expr, Fold, Rule};
use crate::cel::value::{List, Value};

impl<'a> Run<'_, 'a> {
    pub(super) fn fold(&mut self, fold: &'a Fold) -> Answer<'a> {
        let over = self.value(&fold.over)?;
        if let Rule::Optional { is_flat } = fold.rule {
            return self.optional(&over, fold, is_flat);
        }
        let elements = match over {
            Value::List(list) => list,
            Value::Map(map) => {
                self.meter.charge(map.len())?;
                List::built(map.keys())
            }
            _ => return Err(Failure::no_overload()),
        };
        match fold.rule {
            Rule::All => self.quantified(&elements, fold, false),
            Rule::Exists => self.quantified(&elements, fold, true),
            Rule::ExistsOne => self.exists_one(&elements, fold),
            Rule::Filter => self.filtered(&elements, fold),
            _ => self.mapped(&elements, fold),
        }
    }

    /// The value of `body` while the variable is `value`.
    fn with(&mut self, value: Value<'a>, fold: &'a Fold, body: &'a Expr) -> Answer<'a> {
        self.locals.truncate(fold.local);
        self.locals.push(value);
        let found = self.value(body);
        self.locals.truncate(fold.local);
        found
    }

    fn decide(&mut self, value: Value<'a>, fold: &'a Fold, body: &'a Expr) -> Result<bool, Failure> {
        match self.with(value, fold, body)? {
            Value::Bool(is_true) => Ok(is_true),
            _ => Err(Failure::no_overload()),
        }
    }

    /// `all` and `exists`: one `decisive` element decides, whatever failures others have.
    fn quantified(&mut self, elements: &List<'a>, fold: &'a Fold, decisive: bool) -> Answer<'a> {
        let mut failure = None;
        for element in elements.iter() {
            match self.decide(element, fold, &fold.body) {
                Ok(is_true) if is_true == decisive => return Ok(Value::Bool(decisive)),
                Ok(_) => {}
                Err(Failure::Exhausted) => return Err(Failure::Exhausted),
                Err(other) => failure = failure.or(Some(other)),
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn exists_one(&mut self, elements: &List<'a>, fold: &'a Fold) -> Answer<'a> {
        let mut count = 0;
        for element in elements.iter() {
            count += usize::from(self.decide(element, fold, &fold.body)?);
        }
        Ok(Value::Bool(count == 1))
    }

    fn filtered(&mut self, elements: &List<'a>, fold: &'a Fold) -> Answer<'a> {
        let mut kept = Vec::new();
        for element in elements.iter() {
            if self.decide(element.clone(), fold, &fold.body)? {
                kept.push(element);
            }
        }
        Ok(Value::list(kept))
    }

    fn mapped(&mut self, elements: &List<'a>, fold: &'a Fold) -> Answer<'a> {
        let mut made = Vec::new();
        for element in elements.iter() {
            if let Some(condition) = &fold.condition
                && !self.decide(element.clone(), fold, condition)?
            {
                continue;
            }
            made.push(self.with(element, fold, &fold.body)?);
        }
        Ok(Value::list(made))
    }

    fn optional(&mut self, over: &Value<'a>, fold: &'a Fold, is_flat: bool) -> Answer<'a> {
        let Value::Optional(inside) = over else { return Err(Failure::no_overload()) };
        let Some(inside) = inside else { return Ok(Value::Optional(None)) };
        match self.with((**inside).clone(), fold, &fold.body)? {
            value if !is_flat => Ok(Value::optional(Some(value))),
            value @ Value::Optional(_) => Ok(value),
            _ => Err(Failure::no_overload()),
        }
    }
}
