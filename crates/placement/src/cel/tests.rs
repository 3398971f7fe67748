use std::fmt::Debug;

use serde_json::{Value as Json, json};

use super::*;
use crate::tree::Tree;

const VARIABLES: [Variable; 1] = [("managedCluster", Type::Map)];
const STEPS: u64 = 100_000;

struct Scores;

impl<'a> Host<'a> for Scores {
    fn scores(&self, cluster: &str, resource: &str) -> Option<Vec<(&'a str, i64)>> {
        ((cluster, resource) == ("c1", "load")).then(|| vec![("a", 4), ("b", -3)])
    }
}

fn cluster() -> Json {
    json!({
        "metadata": {"name": "c1", "labels": {"env": "prod", "a.io/b": "x"}},
        "spec": {"taints": [{"key": "gpu", "effect": "NoSelect"}]},
        "status": {"clusterClaims": [{"name": "platform", "value": "aws"}], "allocatable": {"cpu": "4500m"}},
    })
}

#[derive(Debug, PartialEq)]
enum Found {
    Bool(bool),
    Other,
    Failure(Failure),
    Fault(String),
}

fn found(text: &str, steps: u64) -> Found {
    let cluster = cluster();
    let program = match Program::compile(text, &VARIABLES) {
        Ok(program) => program,
        Err(fault) => return Found::Fault(fault.within(text)),
    };
    let found = |cluster: Value<'_>| {
        let mut meter = Meter::new(steps);
        let found = match program.evaluate(&[cluster], &Scores, &mut meter) {
            Ok(Value::Bool(is_true)) => Found::Bool(is_true),
            Ok(_) => Found::Other,
            Err(failure) => Found::Failure(failure),
        };
        (found, meter.left())
    };
    // Both forms of the object give the same result.
    let (packed, plain) = (found(Value::from(&Tree::from(cluster.clone()))), found(Value::from(&cluster)));
    assert_eq!(packed, plain, "{text}");
    plain.0
}

fn each(texts: &[&str], is_it: impl Fn(&Found) -> bool, wanted: impl Debug) {
    let wrong: Vec<_> =
        texts.iter().map(|text| (text, found(text, STEPS))).filter(|(_, found)| !is_it(found)).collect();
    assert!(wrong.is_empty(), "not {wanted:?}: {wrong:#?}");
}

/// Asserts that each is true.
pub fn holds(texts: &[&str]) {
    each(texts, |found| *found == Found::Bool(true), "true");
}

/// Asserts that each compiles, and has no value.
pub fn fails(texts: &[&str]) {
    each(texts, |found| matches!(found, Found::Failure(Failure::Error(_))), "an error");
}

/// Asserts that none compiles.
pub fn refused(texts: &[&str]) {
    each(texts, |found| matches!(found, Found::Fault(_)), "refused");
}

#[test]
fn operators_bind_as_they_should() {
    holds(&[
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 / 2 == 3 && -7 % 3 == -1 && 2 - 1 - 1 == 0",
        "true || false && false",
        "!false && !!true && --1 == 1 && -(1) == -1 && -9223372036854775808 < 0",
        "1 < 2 == true && (false ? 1 : true ? 2 : 3) == 2",
        "1.5 + 1.5 == 3.0 && 1u + 2u == 3u && 'a' + 'b' == 'ab' && [1] + [2] == [1, 2] && b'a' + b'b' == b'ab'",
        "dyn(1) == 1.0 && dyn(1) == 1u && dyn(1) != 'a' && 1 < dyn(1.5) && dyn(9007199254740993) != 9007199254740992.0",
        "2 in [1, 2] && 'a' in {'a': 1} && !('b' in {'a': 1}) && {'a': [1]} == {'a': [1.0]}",
        "'a' < 'b' && false < true && [1, 2][1] == 2 && {'a': 1}['a'] == 1 && {1: 'x'}[1] == 'x'",
    ]);
}

#[test]
fn objects_are_walked_and_asked() {
    holds(&[
        r#"managedCluster.metadata.labels["env"] == "prod" && managedCluster.metadata.labels.env in ["prod", "stage"]"#,
        r"has(managedCluster.spec.taints) && !has(managedCluster.spec.none) && managedCluster.spec.taints.size() == 1",
        r#"managedCluster.status.clusterClaims.exists(c, c.name == "platform" && c.value == "aws")"#,
        r#"quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity("4"))"#,
        r#"managedCluster.metadata.labels.exists(k, k == "a.io/b") && managedCluster.?none.?deep.orValue(1) == 1"#,
        r#"managedCluster.metadata.labels[?"none"].orValue("") == """#,
    ]);
    fails(&[
        "managedCluster.none == 1",
        "managedCluster.spec.taints[3].key == 'a'",
        "managedCluster.spec.taints[-1].key == 'a'",
        "managedCluster.metadata.name.deeper == 'a'",
    ]);
}

#[test]
fn macros_go_through_lists_and_keys() {
    holds(&[
        "[1, 2].all(x, x > 0) && [].all(x, false) && ![1, -2].all(x, x > 0)",
        "[1, 2].exists(x, x == 2) && ![].exists(x, true) && [1, 2].exists_one(x, x == 2) && ![2, 2].existsOne(x, x == 2)",
        "[1, 2, 3].filter(x, x > 1) == [2, 3] && [1, 2].map(x, x * 2) == [2, 4] && [1, 2].map(x, x > 1, x * 2) == [4]",
        "{'a': 1, 'b': 2}.all(k, k in ['a', 'b']) && {'a': 1}.map(k, k) == ['a']",
        "[[1], [2, 3]].map(x, x.map(y, y + 1)) == [[2], [3, 4]] && [1].all(x, [2].all(x, x == 2) && x == 1)",
    ]);
}

#[test]
fn errors_are_got_over_where_the_rest_decides() {
    holds(&[
        "true || managedCluster.none == 1",
        "managedCluster.none == 1 || true",
        "!(managedCluster.none == 1 && false)",
        "['a', 1].exists(x, x > 0)",
        "!['a', -1].all(x, x > 0)",
        "false ? managedCluster.none : true",
    ]);
    fails(&[
        "managedCluster.none == 1 || false",
        "['a', 1].all(x, x > 0)",
        "9223372036854775807 + 1 > 0",
        "1 / 0 == 1",
        "1 % 0 == 1",
        "{'a': 1, 'a': 2} == {}",
        "dyn('a') + 1 == 2",
        "dyn('a') < 1",
    ]);
}

#[test]
fn what_can_never_be_right_does_not_compile() {
    refused(&[
        "",
        "1 +",
        "a == 1",
        "invalid.expression",
        "size(1) == 1",
        "nothing(1)",
        "'a'.nothing()",
        "1 + 'a' == 2",
        "1 == 'a'",
        "'a' && true",
        "1 ? 2 : 3",
        "!1",
        "-'a' == 'a'",
        "[1].all(x, 1)",
        "'abc'.all(x, true)",
        "has(managedCluster)",
        "managedCluster.scores()",
        "x.all(x, true)",
        "[1].all(x, y)",
        "for == 1",
        "(1",
        "1)",
        "[1",
        "{1: }",
        "a.b.",
        "'abc'.charAt('a') == 'a'",
    ]);
    let fault = found("managedCluster.metadata.name ==", STEPS);
    let Found::Fault(fault) = fault else { panic!("{fault:?}") };
    assert!(fault.starts_with("ERROR: <input>:1:32: Syntax error: mismatched input '<EOF>' expecting"), "{fault}");
    assert!(fault.ends_with("\n | managedCluster.metadata.name ==\n | ...............................^"), "{fault}");
    let unknown = found("true &&\n  nobody", STEPS);
    assert_eq!(
        unknown,
        Found::Fault(
            "ERROR: <input>:2:3: undeclared reference to 'nobody' (in container '')\n |   nobody\n | ..^".into()
        )
    );
}

#[test]
fn a_value_that_is_no_boolean_is_one_all_the_same() {
    assert_eq!(found("'a'", STEPS), Found::Other);
    assert_eq!(found("managedCluster.metadata.name", STEPS), Found::Other);
}

#[test]
fn no_expression_takes_more_steps_than_it_has() {
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let cube = format!("{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, {ten}.all(e, {ten}.all(f, true))))))");
    let doubled =
        format!("['{}'].map(a, a + a).map(a, a + a).map(a, a + a).map(a, a + a).size() == 1", "x".repeat(9_000));
    let listed = format!("{ten}.map(a, {ten}.map(b, {ten}.map(c, {ten}.map(d, {ten}.map(e, e))))).size() == 10");
    let bytes = format!("{ten}.all(a, {ten}.all(b, {ten}.all(c, b'{}' != b'')))", "x".repeat(900));
    let texts = format!("{ten}.all(a, {ten}.all(b, {ten}.all(c, !isQuantity('{}'))))", "x".repeat(900));
    let pattern = format!("{ten}.all(a, {ten}.all(b, 'abc'.matches(string(a) + string(b)) || true))");
    for text in [cube, doubled, listed, bytes, texts, pattern] {
        assert_eq!(found(&text, 10_000), Found::Failure(Failure::Exhausted), "{text}");
    }
    let mut meter = Meter::new(100);
    let program = Program::compile("1 + 1 == 2", &VARIABLES).unwrap();
    program.evaluate(&[], &Scores, &mut meter).unwrap();
    assert_eq!(meter.left(), 94);
}

#[test]
fn no_expression_is_deeper_or_longer_than_the_limits() {
    let seven = (0..7).fold("true".to_owned(), |inside, at| format!("[1].all(x{at}, {inside})"));
    for text in [
        "(".repeat(1_000),
        format!("{}1{} == 1", "(".repeat(200), ")".repeat(200)),
        format!("1{} > 0", " + 1".repeat(200)),
        format!("managedCluster{} == 1", ".a".repeat(200)),
        format!("{}true", "true ? true : ".repeat(200)),
        format!("{}{}", "[".repeat(200), "]".repeat(200)),
        seven,
        format!("'{}' == ''", "a".repeat(Limits::TEXT)),
        format!("false{}", " || 'a'.matches('b')".repeat(Limits::PATTERNS + 1)),
    ] {
        assert!(matches!(found(&text, STEPS), Found::Fault(_)), "{text:.60}");
    }
    // Expressions just within the limits are evaluated on a small stack.
    holds(&[
        &format!("!{}true", "!".repeat(999)),
        &format!("true{}", " && true".repeat(1_000)),
        &format!("{}true{}", "(".repeat(31), ")".repeat(31)),
        &format!("{}true", "true ? true : ".repeat(31)),
        &format!("1{} == 95", " + 1".repeat(94)),
        &format!("{}1{} != []", "[".repeat(31), "]".repeat(31)),
        &format!("'a'{} == 'a'", ".trim()".repeat(93)),
        &format!(
            "'{0}{1}'{2}.parseJSON() == parseJSON('{0}{1}')",
            "[".repeat(120),
            "]".repeat(120),
            ".trim()".repeat(90)
        ),
    ]);
}

#[test]
fn what_is_gone_through_is_charged_each_time() {
    let path = "a".repeat(4000);
    let hundred = (0..100).map(|it| it.to_string()).collect::<Vec<_>>().join(",");
    for text in [
        format!("[url('/{path}')].map(u, [{hundred}].map(x, u.getEscapedPath())).size() == 1"),
        format!("'{}'.findAll('.*[^A]|[A]').size() == 4000", "A".repeat(4000)),
        format!("'{}'.matches('(a{{20}}){{20}}')", "a".repeat(1000)),
    ] {
        assert_eq!(found(&text, 10_000), Found::Failure(Failure::Exhausted), "{text}");
    }
    holds(&[&format!("!isSemver('1.0.0-{}') && isSemver('1.0.0-{}')", "1".repeat(300), "1".repeat(200))]);
}

#[test]
fn values_at_the_ends_of_their_ranges_are_errors() {
    fails(&[
        "timestamp('9999-12-31T23:59:59-01:00') == timestamp('2026-01-01T00:00:00Z')",
        "-duration(-9223372036854775808) == duration('1s')",
        "duration(9223372037) == duration('1s')",
    ]);
    holds(&["-duration('1s') == duration('-1s') && duration(-60) == duration('-1m')"]);
}

#[test]
fn values_are_nested_so_far_and_no_further() {
    let nested = |times: usize| {
        let one = format!(".map(x, {}x{})", "[".repeat(20), "]".repeat(20));
        format!("[0]{}.size() == 1", one.repeat(times))
    };
    holds(&[&nested(9)]);
    fails(&[&nested(11), &nested(60)]);
    let optionals = format!("[0]{}.size() == 1", ".map(x, optional.of(optional.of(optional.of(x))))".repeat(80));
    fails(&[&optionals]);
}
