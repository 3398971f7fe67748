//! Optional values: there is one, or there is none.

use crate::cel::function::{Answer, Overload, Run, function, method};
use crate::cel::meter::Failure;
use crate::cel::types::Type::{Bool, Dyn, Optional};
use crate::cel::value::Value;

pub const OVERLOADS: &[Overload] = &[
    function("optional.none", &[], Optional, |_, _| Ok(Value::Optional(None))),
    function("optional.of", &[Dyn], Optional, |_, arguments| Ok(Value::optional(arguments.first().cloned()))),
    function("optional.ofNonZeroValue", &[Dyn], Optional, of_non_zero),
    method("hasValue", &[Optional], Bool, |_, arguments| match arguments {
        [Value::Optional(inside)] => Ok(Value::Bool(inside.is_some())),
        _ => Err(Failure::no_overload()),
    }),
    method("value", &[Optional], Dyn, |_, arguments| match arguments {
        [Value::Optional(Some(inside))] => Ok((**inside).clone()),
        _ => Err(Failure::error("optional.none() dereference")),
    }),
    method("orValue", &[Optional, Dyn], Dyn, |_, arguments| match arguments {
        [Value::Optional(Some(inside)), _] => Ok((**inside).clone()),
        [_, other] => Ok(other.clone()),
        _ => Err(Failure::no_overload()),
    }),
    method("or", &[Optional, Optional], Optional, |_, arguments| match arguments {
        [Value::Optional(None), other] => Ok(other.clone()),
        [one, _] => Ok(one.clone()),
        _ => Err(Failure::no_overload()),
    }),
];

fn of_non_zero<'a>(_: &mut Run<'_, 'a>, arguments: &[Value<'a>]) -> Answer<'a> {
    let [value] = arguments else { return Err(Failure::no_overload()) };
    let is_zero = match value {
        Value::Null | Value::Bool(false) | Value::Int(0) | Value::Uint(0) | Value::Optional(None) => true,
        Value::Double(value) => *value == 0.0,
        Value::Text(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.len() == 0,
        Value::Map(map) => map.len() == 0,
        Value::Duration(duration) => duration.is_zero(),
        _ => false,
    };
    Ok(Value::optional((!is_zero).then(|| value.clone())))
}

#[cfg(test)]
mod tests {
    use crate::cel::tests::{fails, holds};

    #[test]
    fn what_is_missing_has_a_default() {
        holds(&[
            r#"{"a": 1}.?a.orValue(0) == 1 && {"a": 1}.?b.orValue(0) == 0 && {"a": {"b": 2}}.?a.b.orValue(0) == 2"#,
            r#"{"a": 1}[?"a"].hasValue() && ![1][?3].hasValue() && [1][?0].value() == 1"#,
            "optional.of(1).value() == 1 && !optional.none().hasValue() && !optional.ofNonZeroValue('').hasValue()",
            "optional.none().or(optional.of(2)).value() == 2 && optional.of(1) == optional.of(1)",
            "optional.of(1).optMap(x, x + 1).value() == 2 && !optional.none().optMap(x, x + 1).hasValue()",
            "optional.of([1]).optFlatMap(x, x[?0]).value() == 1",
            "[?optional.of(1), ?optional.none(), 2] == [1, 2] && {?'a': optional.none(), 'b': 1} == {'b': 1}",
        ]);
        fails(&["optional.none().value() == 1", "[?1] == [1]"]);
    }
}
