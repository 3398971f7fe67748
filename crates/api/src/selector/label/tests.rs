//! Kubernetes' own reading of selectors as a table, refusals with their reason, and properties for
//! all other input.

use proptest::prelude::*;

use super::*;

fn matches(selector: &str, labels: &[(&str, &str)]) -> Result<bool, InvalidLabelSelector> {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    LabelSelector::parse(selector).map(|selector| selector.matches(&labels))
}

#[test]
fn selects_as_kubernetes_does() {
    let labels = [("env", "prod"), ("example.com/tier", ""), ("size", "7"), ("in", "x")];
    for (selector, expected) in [
        ("", true),
        ("  ", true),
        ("env", true),
        ("!env", false),
        ("! missing", true),
        ("missing", false),
        ("env=prod", true),
        ("env==prod", true),
        ("env = prod , size=7", true),
        ("env=prod,size=8", false),
        ("env!=prod", false),
        ("missing!=prod", true),
        ("env in (dev, prod)", true),
        ("env in(dev)", false),
        ("env notin (dev)", true),
        ("missing notin (dev)", true),
        ("missing in (dev)", false),
        ("example.com/tier=", true),
        ("example.com/tier=,env", true),
        ("example.com/tier in (,a)", true),
        ("env in (a,)", false),
        ("example.com/tier in ()", true),
        ("env in ()", false),
        ("size>6", true),
        ("size < 7", false),
        ("env>1", false),
        ("missing<1", false),
        // keywords are words where a key or value is expected
        ("in", true),
        ("in in (x)", true),
        ("in=notin", false),
    ] {
        assert_eq!(matches(selector, &labels), Ok(expected), "{selector}");
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    use InvalidLabelSelector::{Key, Number, Syntax, Value};
    for (selector, error) in [
        (",", Syntax),
        ("a,", Syntax),
        ("a,,b", Syntax),
        ("!", Syntax),
        ("!a=b", Syntax),
        ("=a", Syntax),
        ("a b", Syntax),
        ("a=b c", Syntax),
        ("a===b", Syntax),
        ("a=!b", Syntax),
        ("a in", Syntax),
        ("a in b", Syntax),
        ("a in (b", Syntax),
        ("a in (b c)", Syntax),
        ("a)", Syntax),
        ("-a", Key),
        ("a/b/c", Key),
        ("/a", Key),
        ("UPPER.example/a", Key),
        ("a=-b", Value),
        ("a=b/c", Value),
        ("a>b", Number),
        ("a<", Number),
    ] {
        assert_eq!(matches(selector, &[]), Err(error), "{selector}");
    }
    assert_eq!(matches(&format!("a={}", "x".repeat(64)), &[]), Err(Value));
}

proptest! {
    #[test]
    fn never_panics(text in ".*", near in "[a-z!=<>(), ]{0,24}|(a|in|notin|,|\\(|\\)|=|!| ){0,12}") {
        let _ = LabelSelector::parse(&text);
        let _ = LabelSelector::parse(&near);
    }

    #[test]
    fn a_set_and_its_complement_divide_all_objects(values in prop::collection::vec("[a-z]{0,2}", 1..4), value in prop::option::of("[a-z]{0,2}")) {
        let labels: Vec<_> = value.iter().map(|value| ("a", value.as_str())).collect();
        let list = values.join(",");
        let inside = matches(&format!("a in ({list})"), &labels);
        let outside = matches(&format!("a notin ({list})"), &labels);
        prop_assert!(inside.is_ok());
        prop_assert_eq!(inside.map(|inside| !inside), outside);
    }
}
