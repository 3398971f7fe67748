//! Kubernetes' list library: `isSorted`, `sum`, `min`, `max`, `indexOf`, `lastIndexOf`.

use std::cmp::Ordering;

use crate::cel::eval::arithmetic;
use crate::cel::function::{Answer, Overload, Run, method};
use crate::cel::meter::Failure;
use crate::cel::syntax::Operator;
use crate::cel::types::Type::{Bool, Dyn, Int, List};
use crate::cel::value::{List as Values, Value};

pub const OVERLOADS: &[Overload] = &[
    method("isSorted", &[List], Bool, is_sorted),
    method("sum", &[List], Dyn, sum),
    method("min", &[List], Dyn, |run, arguments| extreme(run, arguments, Ordering::Less)),
    method("max", &[List], Dyn, |run, arguments| extreme(run, arguments, Ordering::Greater)),
    method("indexOf", &[List, Dyn], Int, |run, arguments| index_of(run, arguments, false)),
    method("lastIndexOf", &[List, Dyn], Int, |run, arguments| index_of(run, arguments, true)),
];

fn list<'v, 'a>(arguments: &'v [Value<'a>]) -> Result<&'v Values<'a>, Failure> {
    match arguments {
        [Value::List(list), ..] => Ok(list),
        _ => Err(Failure::no_overload()),
    }
}

fn is_sorted<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let mut before: Option<Value<'a>> = None;
    for value in list(arguments)?.iter() {
        run.meter.charge(1)?;
        if let Some(before) = &before
            && ordered(run, before, &value)?.is_gt()
        {
            return Ok(Value::Bool(false));
        }
        before = Some(value);
    }
    Ok(Value::Bool(true))
}

fn ordered<'a>(run: &mut Run<'_, 'a>, a: &Value<'a>, b: &Value<'a>) -> Result<Ordering, Failure> {
    if !a.is_comparable(b) {
        return Err(Failure::no_overload());
    }
    Ok(a.order(b, run.meter)?.unwrap_or(Ordering::Equal))
}

fn sum<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let mut total = None;
    for value in list(arguments)?.iter() {
        run.meter.charge(1)?;
        let is_summable = value.kind().is_number() || matches!(value, Value::Duration(_));
        total = match total {
            _ if !is_summable => return Err(Failure::no_overload()),
            None => Some(value),
            Some(total) => Some(arithmetic(Operator::Add, &total, &value, run.meter)?),
        };
    }
    Ok(total.unwrap_or(Value::Int(0)))
}

fn extreme<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>], wanted: Ordering) -> Answer<'a> {
    let mut found: Option<Value<'a>> = None;
    for value in list(arguments)?.iter() {
        run.meter.charge(1)?;
        let is_more = match &found {
            None => true,
            Some(found) => ordered(run, &value, found)? == wanted,
        };
        if is_more {
            found = Some(value);
        }
    }
    found.ok_or_else(|| {
        Failure::error(if wanted.is_lt() { "min called on empty list" } else { "max called on empty list" })
    })
}

fn index_of<'a>(run: &mut Run<'_, 'a>, arguments: &[Value<'a>], is_last: bool) -> Answer<'a> {
    let [Value::List(list), wanted] = arguments else { return Err(Failure::no_overload()) };
    for step in 0..list.len() {
        let at = if is_last { list.len() - 1 - step } else { step };
        let Some(value) = list.get(at) else { continue };
        if value.equals(wanted, run.meter)? {
            return Ok(Value::size(at));
        }
    }
    Ok(Value::Int(-1))
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn lists_are_summed_searched_and_compared() {
        holds(&[
            "[1, 2, 2].isSorted() && ![2, 1].isSorted() && [].isSorted() && ['a', 'b'].isSorted()",
            "[1, 3].sum() == 4 && [1.5, 2.5].sum() == 4.0 && [].sum() == 0",
            "[duration('1m'), duration('1s')].sum() == duration('61s')",
            "[3, 1, 2].min() == 1 && [3, 1, 2].max() == 3 && ['b', 'a'].min() == 'a'",
            "[1, 2, 2].indexOf(2) == 1 && [1, 2, 2].lastIndexOf(2) == 2 && ['a'].indexOf('b') == -1",
        ]);
        fails(&["[].min() == 1", "[1, 'a'].max() == 1", "['a', 'b'].sum() == 'ab'", "[[1], [0]].isSorted()"]);
    }
}
