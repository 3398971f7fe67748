//! Any expression: refused, or evaluated within its steps, to the same each time.

use placement::cel::{Failure, Host, Meter, Program, Purpose, Type, Value};
use serde_json::{Value as Json, json};

pub const WORDS: &[&str] = &[
    "managedCluster",
    ".metadata",
    ".labels",
    "['env']",
    "has(",
    ".scores('load')",
    "parseJSON('[1]')",
    "hasConditions(managedCluster.status)",
    ".status.conditions",
    ".exists(c, c.type == 'Ready')",
    ".all(x, ",
    ".map(x, ",
    ".filter(x, ",
    "[0, 1, 2]",
    "{'a': 1}",
    "[?",
    ".?",
    "optional.none()",
    ".matches('(a{20}){20}')",
    ".find('.*')",
    ".findAll('')",
    ".replace('', 'bb')",
    ".split('')",
    ".join(',')",
    ".format([1])",
    ".substring(1)",
    "quantity('1Gi')",
    "semver('1.2.3')",
    "cidr('::/0')",
    "url('/a?b=c')",
    "duration('1h')",
    "timestamp('2026-03-01T12:00:00Z')",
    ".getHours('+01:00')",
    "9223372036854775807",
    "18446744073709551615u",
    "1e308",
    r"b'\xff'",
    r"r'\d'",
    "'''",
    "\"é\"",
    " && ",
    " || ",
    " == ",
    " in ",
    " ? ",
    " : ",
    "!",
    "-",
    "(",
    ")",
];

/// Few enough that each input ends at once.
const STEPS: u64 = 3_000;

struct Scores;

impl<'a> Host<'a> for Scores {
    fn scores(&self, _: &str, resource: &str) -> Option<Vec<(&'a str, i64)>> {
        (resource == "load").then(|| vec![("a", 4), ("b", -3)])
    }
}

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let object = json!({"metadata": {"name": "c1", "labels": {"env": "prod"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "n": 3, "f": 1.5}});
    for purpose in [Purpose::Placement, Purpose::Conditions] {
        match Program::compile_for(purpose, text, &[("managedCluster", Type::Map)]) {
            Ok(program) => {
                let first = evaluated(&program, &object);
                assert_eq!(first, evaluated(&program, &object));
            }
            Err(fault) => assert!(fault.within(text).starts_with("ERROR: <input>:")),
        }
    }
}

/// The result, and the steps that are left.
fn evaluated(program: &Program, object: &Json) -> (Result<Type, Failure>, u64) {
    let mut meter = Meter::new(STEPS);
    let found = program.evaluate(&[Value::from(object)], &Scores, &mut meter).map(|value| value.kind());
    if found == Err(Failure::Exhausted) {
        assert_eq!(meter.left(), 0);
    }
    (found, meter.left())
}
