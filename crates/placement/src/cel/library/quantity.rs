//! Kubernetes' quantities.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::cel::function::{Answer, Overload, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Bool, Double, Int, Quantity as Kind, Text};
use crate::cel::value::Value;
use crate::quantity::Quantity;

pub const OVERLOADS: &[Overload] = &[
    function("quantity", &[Text], Kind, |_, arguments| match arguments {
        [Value::Text(text)] => made(text.parse().ok()),
        _ => Err(Failure::no_overload()),
    }),
    function("isQuantity", &[Text], Bool, |_, arguments| match arguments {
        [Value::Text(text)] => Ok(Value::Bool(text.parse::<Quantity>().is_ok())),
        _ => Err(Failure::no_overload()),
    }),
    function("sign", &[Kind], Int, |_, arguments| of(arguments, |quantity| Value::Int(quantity.sign()))),
    method("sign", &[Kind], Int, |_, arguments| of(arguments, |quantity| Value::Int(quantity.sign()))),
    method("isGreaterThan", &[Kind, Kind], Bool, |_, arguments| order(arguments, |order| Value::Bool(order.is_gt()))),
    method("isLessThan", &[Kind, Kind], Bool, |_, arguments| order(arguments, |order| Value::Bool(order.is_lt()))),
    method("compareTo", &[Kind, Kind], Int, |_, arguments| order(arguments, |order| Value::Int(order as i64))),
    method("asApproximateFloat", &[Kind], Double, |_, arguments| {
        of(arguments, |quantity| Value::Double(quantity.approximate()))
    }),
    method("asInteger", &[Kind], Int, |_, arguments| match arguments {
        [Value::Quantity(quantity)] => {
            quantity.integer().map(Value::Int).ok_or_else(|| Failure::error("cannot convert value to integer"))
        }
        _ => Err(Failure::no_overload()),
    }),
    method("isInteger", &[Kind], Bool, |_, arguments| {
        of(arguments, |quantity| Value::Bool(quantity.integer().is_some()))
    }),
    method("add", &[Kind, Kind], Kind, |_, arguments| both(arguments, Quantity::plus)),
    method("add", &[Kind, Int], Kind, |_, arguments| both(arguments, Quantity::plus)),
    method("sub", &[Kind, Kind], Kind, |_, arguments| both(arguments, Quantity::minus)),
    method("sub", &[Kind, Int], Kind, |_, arguments| both(arguments, Quantity::minus)),
];

fn made<'a>(quantity: Option<Quantity>) -> Answer<'a> {
    let quantity = quantity.map(|quantity| Value::Quantity(Rc::new(quantity)));
    quantity.ok_or_else(|| Failure::error("no quantity, or too large a one"))
}

fn of<'a>(arguments: &[Value<'a>], part: fn(&Quantity) -> Value<'a>) -> Answer<'a> {
    match arguments {
        [Value::Quantity(quantity)] => Ok(part(quantity)),
        _ => Err(Failure::no_overload()),
    }
}

fn order<'a>(arguments: &[Value<'a>], answer: fn(Ordering) -> Value<'a>) -> Answer<'a> {
    match arguments {
        [Value::Quantity(a), Value::Quantity(b)] => Ok(answer(a.cmp(b))),
        _ => Err(Failure::no_overload()),
    }
}

fn both<'a>(arguments: &[Value<'a>], joined: fn(&Quantity, &Quantity) -> Option<Quantity>) -> Answer<'a> {
    match arguments {
        [Value::Quantity(a), Value::Quantity(b)] => made(joined(a, b)),
        [Value::Quantity(a), Value::Int(b)] => made(joined(a, &Quantity::from(*b))),
        _ => Err(Failure::no_overload()),
    }
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds, refused};

    #[test]
    fn quantities_are_compared_and_added() {
        holds(&[
            r#"isQuantity("1.3Gi") && !isQuantity("1,3") && !isQuantity("10Mo")"#,
            r#"quantity("50k").isGreaterThan(quantity("20k")) && quantity("50Mi").isLessThan(quantity("100M"))"#,
            r#"quantity("200M").compareTo(quantity("0.2G")) == 0 && quantity("1").compareTo(quantity("2")) == -1"#,
            r#"quantity("1000m") == quantity("1") && sign(quantity("-5")) == -1 && quantity("0").sign() == 0"#,
            r#"quantity("50k").add(quantity("20")) == quantity("50020") && quantity("50k").sub(20000) == quantity("30k")"#,
            r#"quantity("2k").asInteger() == 2000 && !quantity("500m").isInteger()"#,
            r#"quantity("1500m").asApproximateFloat() == 1.5"#,
        ]);
        fails(&[r#"quantity("ten").isInteger()"#, r#"quantity("500m").asInteger() == 0"#]);
        refused(&["quantity(10).isInteger()", "quantity('1') > quantity('2')"]);
    }
}
