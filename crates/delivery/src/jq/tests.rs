use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object() -> Json {
    json!({"spec": {"replicas": 2, "a.b": 1, "list": [1, 2, 3, 4],
        "containers": [{"name": "app", "image": "1"}, {"name": "istio-proxy", "image": "2", "env": [{"name": "X"}]}]}})
}

fn left(text: &str) -> Result<Json, JqError> {
    let mut object = object();
    delete(&mut object, text).map(|()| object)
}

/// The value at `pointer` after `text` was deleted.
fn at(text: &str, pointer: &str) -> Option<Json> {
    left(text).unwrap_or_else(|error| panic!("{text}: {error}")).pointer(pointer).cloned()
}

#[test]
fn fields_go() {
    for (text, pointer, wanted) in [
        (".spec.replicas", "/spec/replicas", None),
        (".spec[\"replicas\"]", "/spec/replicas", None),
        (".spec.\"a.b\"", "/spec/a.b", None),
        (".spec | .replicas, .\"a.b\"", "/spec/replicas", None),
        (".spec.list[0], .spec.list[2]", "/spec/list", Some(json!([2, 4]))),
        (".spec.list[-1]", "/spec/list", Some(json!([1, 2, 3]))),
        (".spec.list[9], .spec.list[-9], .spec.none.deeper, .none[0]", "/spec/list", Some(json!([1, 2, 3, 4]))),
        (".spec.list[] | select(. > 2)", "/spec/list", Some(json!([1, 2]))),
        (
            ".spec.containers[] | select(.name == \"istio-proxy\")",
            "/spec/containers",
            Some(json!([{"name": "app", "image": "1"}])),
        ),
        (".spec.containers[].image", "/spec/containers/0", Some(json!({"name": "app"}))),
        (
            ".spec.containers[] | select(.name | startswith(\"istio\")) | .env",
            "/spec/containers/1",
            Some(json!({"name": "istio-proxy", "image": "2"})),
        ),
        (
            ".spec.containers[] | select(has(\"env\") and (.name != \"app\" or false)).image",
            "/spec/containers/1/image",
            None,
        ),
        (".spec.containers[] | select(has(\"env\") | not)", "/spec/containers/0/name", Some(json!("istio-proxy"))),
        (".. | select(type == \"array\" and length == 4)", "/spec/list", None),
        ("(.spec | .list)[1]", "/spec/list", Some(json!([1, 3, 4]))),
        (".spec.replicas.x?", "/spec/replicas", Some(json!(2))),
        (".spec.containers[]?.env[]?", "/spec/containers/1/env", Some(json!([]))),
    ] {
        assert_eq!(at(text, pointer), wanted, "{text}");
    }
}

#[test]
fn what_fails_in_jq_fails_here() {
    for text in
        [".spec.replicas.x", ".spec.none[]", ".spec.list.x", ".spec.replicas[0]", "1", ".", "\"a\"", ".spec | length"]
    {
        assert!(matches!(left(text), Err(JqError::Value(_))), "{text}: {:?}", left(text));
    }
}

#[test]
fn what_is_more_than_paths_is_refused() {
    for text in [
        "",
        ".spec.",
        ".a[",
        ".a[\"b\"",
        "select(.a",
        "def f: f; f",
        "repeat(.)",
        "range(10)",
        "reduce .[] as $x (0; .)",
        ".a |",
        "limit(1; .a)",
        "\"\\(1)\"",
        ".a + 1",
        "$x",
        "env",
        "input",
        ".a as $x | .b",
        "recurse",
        "until(false; .)",
    ] {
        assert!(matches!(left(text), Err(JqError::Syntax(_))), "{text}: {:?}", left(text));
    }
}

#[test]
fn nothing_is_endless() {
    assert_eq!(left(&".a".repeat(TEXT)), Err(JqError::TooLong));
    assert_eq!(left(&"(".repeat(500)), Err(JqError::TooDeep));
    assert_eq!(left(&".a".repeat(500)), Err(JqError::TooDeep));
    let many = ".. | ..".to_owned() + &" | ..".repeat(12);
    assert_eq!(left(&many), Err(JqError::TooMuch));
    // Each comparison walks through both values.
    let mut wide = json!({"list": vec![0; 5_000]});
    assert_eq!(delete(&mut wide, "(.,.,.,.,.,.,.,.) | select(. == .) | .none"), Err(JqError::TooMuch));
}

/// A thread of the controllers has twice as much.
const STACK: usize = 1024 * 1024;
/// Most levels of an object that `serde_json` reads.
const LEVELS: usize = 127;

/// Expressions, each as deep as it may be and beyond, over an object as deep as it may be.
#[test]
fn what_is_deep_needs_little_stack() {
    const NESTED: [(&str, &str); 9] = [
        ("(", ")"),
        ("select(", ")"),
        ("has(", ")"),
        ("(. == ", ")"),
        (".. | ", ""),
        (".,", ""),
        (".a and ", ""),
        (".a == 1 or ", ""),
        (".a?", ""),
    ];
    let object = (1..LEVELS).fold(json!({"a": 1}), |inner, _| json!({"a": inner}));
    assert!(serde_json::from_str::<Json>(&object.to_string()).is_ok());
    let run = move || {
        for (begin, end) in NESTED {
            let mut deepest = 0;
            for levels in (8..=NESTING).step_by(8) {
                for inner in [".a", "select(. == .)", ".."] {
                    let text = format!("{}{inner}{}", begin.repeat(levels), end.repeat(levels));
                    let _ = delete(&mut object.clone(), &text);
                    deepest = deepest.max(if check(&text).is_ok() { levels } else { 0 });
                }
            }
            assert!(deepest >= NESTING / 4, "{begin}: {deepest}");
        }
    };
    std::thread::Builder::new().stack_size(STACK).spawn(run).unwrap().join().unwrap();
}

/// What binds tighter is joined first, and comparisons are not compared.
#[test]
fn operators_bind_as_in_jq() {
    let expressions = [
        (".a, .b | .c", "(.a, .b) | .c"),
        (".a or .b and .c", ".a or (.b and .c)"),
        (".a and .b or .c and .d", "(.a and .b) or (.c and .d)"),
        (".a == 1 and .b < 2 or .c", "((.a == 1) and (.b < 2)) or .c"),
        (".a | .b == 1, .c", ".a | ((.b == 1), .c)"),
        (".a or .b | .c or .d", "(.a or .b) | (.c or .d)"),
    ];
    for (text, same) in expressions {
        assert_eq!(read(text), read(same), "{text}");
    }
    for text in [".a == .b == .c", ".a < .b and .c < .d < .e", ".a or", "and .a", ".a orb"] {
        assert!(matches!(check(text), Err(JqError::Syntax(_))), "{text}");
    }
}

/// Keys are borrowed from the object: a long one is copied only where a path with it is returned.
#[test]
fn long_keys_are_shared_and_charged_where_they_are_copied() {
    let long = "k".repeat(300 * 1024);
    let mut many = vec![json!(0); 1_500];
    many.push(json!(1));
    let mut object = json!({long.clone(): many});
    delete(&mut object, ".[][] | select(. == 1)").unwrap();
    assert_eq!(object[&long].as_array().map(Vec::len), Some(1_500));
    let mut object = json!({long: vec![0; 10]});
    assert_eq!(delete(&mut object, ".[][]"), Err(JqError::TooMuch));
}

/// What is told of each place is as long as the place is deep.
#[test]
fn many_deep_places_are_charged_by_their_depth() {
    let wide = json!(vec![0; 1_000]);
    let mut object = (0..50).fold(wide, |inner, _| json!({"a": inner}));
    assert_eq!(delete(&mut object, &format!("{}[]", ".a".repeat(50))), Err(JqError::TooMuch));
    assert_eq!(delete(&mut object, &format!("{}[3]", ".a".repeat(50))), Ok(()));
}

#[test]
fn lists_and_maps_are_equal_or_not_and_have_no_order() {
    for text in [".spec | select(.list == .list) | .list", ".spec | select(.list != .containers) | .list"] {
        assert_eq!(at(text, "/spec/list"), None, "{text}");
    }
    for text in [".spec | select(.list < .containers)", ".. | select({} <= {})", ".spec | select(. >= .)"] {
        assert!(left(text).is_err(), "{text}");
    }
    assert_eq!(at(".spec | select(.list > .replicas) | .list", "/spec/list"), None);
}

proptest! {
    #[test]
    fn any_text_is_an_expression_or_an_error(
        parts in prop::collection::vec(prop::sample::select(vec![
            ".", "..", "spec", "[", "]", "\"", "a", "(", ")", "|", ",", "select(", "==", " and ", "not", "?", "-1", "0", "é", "\\", "has(",
        ]), 0..30)
    ) {
        let _ = left(&parts.concat());
    }
}
