use serde_json::json;

use super::*;
use crate::condition::{Condition, Status};

fn evaluate(object: &Json, rules: &[Rule]) -> Vec<Condition> {
    Evaluator::default().evaluate(object, rules, 1)
}

fn rule(condition: &str, expressions: &[&str]) -> Rule {
    let expressions = expressions.iter().map(|text| (*text).to_owned()).collect();
    Rule { condition: condition.into(), source: Source::Expressions(expressions), ..Rule::default() }
}

fn found(rule: Rule) -> (Status, String, String) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
    let condition = evaluate(&object, &[rule]).remove(0);
    (condition.status, condition.reason, condition.message)
}

#[test]
fn every_expression_has_to_be_true() {
    let both = rule("Fine", &["object.data.a == 'b'", "has(object.data)"]);
    assert_eq!(found(both), (Status::True, EVALUATED.into(), "Manifest is Fine".into()));
    let second = rule("Fine", &["true", "object.data.a == 'c'", "object.missing"]);
    assert_eq!(found(second), (Status::False, EVALUATED.into(), "Manifest is not Fine".into()));
}

#[test]
fn the_message_is_the_expressions_then_the_rules_then_ours() {
    let of = |message: &str, expression: &str| {
        let rule = Rule { message: message.into(), message_expression: expression.into(), ..rule("X", &["true"]) };
        found(rule).2
    };
    assert_eq!(of("given", "'a is ' + object.data.a"), "a is b");
    assert_eq!(of("given", "''"), "given");
    assert_eq!(of("given", "1"), "expected message expression to have a string result, got int64");
    assert_eq!(of("given", "object.missing"), "no such key: missing");
}

#[test]
fn what_goes_wrong_is_in_the_condition() {
    let unknown = Rule { source: Source::Invalid("no magic".into()), ..rule("X", &[]) };
    assert_eq!(found(unknown), (Status::Unknown, INVALID.into(), "no magic".into()));
    let (status, reason, message) = found(rule("X", &["object.data.a =="]));
    assert_eq!((status, reason.as_str()), (Status::False, EXPRESSION_ERROR));
    assert!(message.starts_with("ERROR: <input>:1:17: Syntax error"), "{message}");
    assert!(found(rule("X", &["managedCluster.scores('a')"])).2.contains("undeclared reference"));
    assert!(found(rule("X", &["parseJSON('1') == 1"])).2.contains("undeclared reference to 'parseJSON'"));
}

#[test]
fn rules_of_an_object_have_a_bound_together() {
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let costly = format!("{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, {ten}.all(e, {ten}.all(f, true))))))");
    assert_eq!(found(rule("X", &[&costly])).2, "CEL evaluation budget exceeded");
    let many: Vec<Rule> = (0..=RULES).map(|at| rule(&format!("X{at}"), &["true"])).collect();
    let found = evaluate(&json!({}), &many);
    assert_eq!(found.len(), RULES + 1);
    assert_eq!((found[RULES].kind.as_str(), found[RULES].reason.as_str()), (INVALID_RULE, INVALID));
}

#[test]
fn rules_of_a_work_have_a_bound_together() {
    let mut evaluator = Evaluator::default();
    for at in 0..EXPRESSIONS {
        let of = |evaluator: &mut Evaluator| {
            let text = format!("{at} == {at}");
            evaluator.evaluate(&json!({}), &[rule("X", &[&text])], 1).remove(0).status
        };
        // The second time, nothing is compiled.
        assert_eq!((of(&mut evaluator), of(&mut evaluator)), (Status::True, Status::True));
    }
    let last = evaluator.evaluate(&json!({}), &[rule("X", &["false"])], 1).remove(0);
    assert_eq!((last.status, last.reason.as_str()), (Status::Unknown, INTERNAL_ERROR));
    assert_eq!(last.message, "there are more than 64 expressions");
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let costly = [rule("X", &[&format!("{ten}.all(a, {ten}.all(b, {ten}.all(c, true)))")])];
    let mut evaluator = Evaluator::within(20_000);
    let told: Vec<_> = (0..20).map(|_| evaluator.evaluate(&json!({}), &costly, 1).remove(0).status).collect();
    assert_eq!((told[0], told[19]), (Status::True, Status::False));
}

#[test]
fn secrets_are_not_looked_into() {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "b"}});
    let spy = Rule { message_expression: "object.data.a".into(), ..rule("X", &["has(object.data)"]) };
    let found = evaluate(&secret, &[spy]).remove(0);
    assert_eq!((found.status, found.message.as_str()), (Status::False, "no such key: data"));
}

#[test]
fn a_well_known_rule_is_for_kinds_that_have_it() {
    let complete = Rule { source: Source::WellKnown, ..rule("Complete", &[]) };
    assert_eq!(evaluate(&json!({"apiVersion": "v1", "kind": "ConfigMap"}), std::slice::from_ref(&complete)), []);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Failed"}});
    let told = Rule { message_expression: "'own'".into(), ..complete };
    assert_eq!(evaluate(&pod, &[told])[0].message, "own");
}
