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

/// What is at `pointer` after `text` was taken away.
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
        "reduce .[] as $x (0; .)",
        ".a |",
        "\"\\(1)\"",
        ".a + 1",
        "$x",
        "env",
        "input",
        ".a as $x | .b",
        "range(1; 9; 2)",
        "limit(1)",
        "test(.a)",
        "test(\"(\")",
        "test(\"a\"; \"x\")",
        "if .a then .b",
        "{a: 1,}",
        "[1",
        ".list[1:2]",
        ".a // ",
        "(.a)?",
        "until(false; .)",
    ] {
        assert!(matches!(left(text), Err(JqError::Syntax(_))), "{text}: {:?}", left(text));
    }
}

/// Each condition is true of the object, as jq has it.
#[test]
fn conditions_know_the_functions_of_jq() {
    let all = [
        "[.spec.containers[].name] == [\"app\", \"istio-proxy\"]",
        "{a: 1, \"b\": .spec.replicas, (\"c\"): [], spec} | .a == 1 and .b == 2 and .c == [] and (.spec | has(\"list\"))",
        "(.spec.containers[0].name | test(\"^a.p$\")) and (\"APP\" | test(\"app\"; \"gi\")) and (\"b\" | test(\"a\") | not)",
        "(.spec | keys) == [\"a.b\", \"containers\", \"list\", \"replicas\"] and (.spec.list | keys_unsorted) == [0, 1, 2, 3]",
        "(.spec.list | map(select(. > 2))) == [3, 4] and ([] | map(.x)) == []",
        "({a: 1} | to_entries) == [{key: \"a\", value: 1}]",
        "([{key: \"a\", value: 1}, {name: \"b\"}, {k: 2, v: 3}] | from_entries) == {a: 1, b: null, \"2\": 3}",
        "({a: 1, b: 2} | with_entries(select(.value > 1))) == {b: 2}",
        "([true, false] | any) and ([true, false] | all | not) and ([] | all) and ({a: true} | any)",
        "(.spec.list | any(. > 3)) and (.spec.list | all(. > 0)) and any(.spec.list[]; . == 2) and all(.spec.list[]; . < 5)",
        "(.spec.list | length) == 4 and (\"é\" | length) == 1 and (-3 | length) == 3 and (null | length) == 0",
        "([\"foobar\", \"b\"] | contains([\"bar\"])) and ({a: [1, 2], b: 1} | contains({a: [2]})) and (\"abc\" | contains(\"b\"))",
        "([1] | inside([1, 2])) and ({a: 1} | contains({a: 2}) | not) and (\"a\" | in({a: 1})) and (0 | in([7]))",
        "(\"a-b-c\" | split(\"-\")) == [\"a\", \"b\", \"c\"] and (\"ab\" | split(\"\")) == [\"a\", \"b\"] and (\"\" | split(\",\")) == []",
        "([\"a\", 1, null, true] | join(\"-\")) == \"a-1--true\"",
        "(\"aBÉ\" | ascii_downcase) == \"abÉ\" and (\"ab\" | ascii_upcase) == \"AB\" and (65 | ascii) == \"A\"",
        "(\"foobar\" | ltrimstr(\"foo\")) == \"bar\" and (\"foobar\" | rtrimstr(\"x\")) == \"foobar\" and (1 | ltrimstr(\"a\")) == 1",
        "([1, {a: null}] | tostring) == \"[1,{\\\"a\\\":null}]\" and (\"a\" | tostring) == \"a\"",
        "(\"1.5\" | tonumber) == 1.5 and (2 | tonumber) == 2",
        "([paths] | length) == 18 and [paths(type == \"array\")] == [[\"spec\", \"containers\"], [\"spec\", \"containers\", 1, \"env\"], [\"spec\", \"list\"]]",
        "[path(.spec.list[0], .spec.none)] == [[\"spec\", \"list\", 0], [\"spec\", \"none\"]]",
        "(.spec.list | del(.[0, 2])) == [2, 4] and (del(.spec) == {})",
        "(.spec.list | first) == 1 and (.spec.list | last) == 4 and first(.spec.list[]) == 1 and last(.spec.list[]) == 4",
        "[limit(2; .spec.list[])] == [1, 2] and [limit(0; .spec.list[])] == [] and [first(empty)] == []",
        "[range(3)] == [0, 1, 2] and [range(2; 4)] == [2, 3] and [range(0)] == []",
        "[[1, [2]] | recurse] == [[1, [2]], 1, [2], 2] and [2 | recurse(if . == 0 then empty else 0 end)] == [2, 0]",
        "([1, 2] | add) == 3 and ([\"a\", \"b\"] | add) == \"ab\" and ([[1], [2]] | add) == [1, 2] and ([] | add) == null",
        "([{a: 1}, {b: 2}, null] | add) == {a: 1, b: 2} and ([1, 0.5] | add) == 1.5",
        "([3, 1, 3, \"a\", null] | unique) == [null, 1, 3, \"a\"] and ([2, 1] | sort) == [1, 2] and ([1, 2] | reverse) == [2, 1]",
        "([1, [2, [3]]] | flatten) == [1, 2, 3] and ([1, [2, [3]]] | flatten(1)) == [1, 2, [3]]",
        "(\"a,é,c\" | index(\",\")) == 1 and (\"a,é,c\" | rindex(\",\")) == 3 and (\"a\" | index(\"b\")) == null",
        "([1, 2, 1, 2] | index(1)) == 0 and ([1, 2, 1, 2] | rindex([1, 2])) == 2 and ([] | index(1)) == null",
        "(2 | IN(1, 2)) and IN(.spec.list[]; 4, 5) and (3 | IN(1, 2) | not)",
        "(.none // \"d\") == \"d\" and (.spec.replicas // 1) == 2 and (.spec.replicas.x // 1) == 1 and (false // false) == false",
        "(if .none then 1 elif .spec then 2 else 3 end) == 2 and (if .none then 1 end) == .",
        "[1, null, 2 | values] == [1, 2] and (getpath([\"spec\", \"list\", 1])) == 2 and getpath([\"x\", \"y\"]) == null",
        "{a: [1, {b: 2}]} | .a[1].b == 2 and .a[-1] == {b: 2} and .a[7] == null and [.a[]] == .a and .none == null",
        "type == \"object\" and (null | type) == \"null\" and (.spec.containers | map(.name) | index(\"istio-proxy\")) == 1",
    ];
    for condition in all {
        let object =
            left(&format!("select({condition}) | .spec")).unwrap_or_else(|error| panic!("{condition}: {error}"));
        assert_eq!(object, json!({}), "{condition}");
    }
}

/// These lead to places, which go.
#[test]
fn functions_lead_to_places() {
    for (text, pointer, wanted) in [
        ("first(.spec.list[])", "/spec/list", Some(json!([2, 3, 4]))),
        (".spec.list | last", "/spec/list", Some(json!([1, 2, 3]))),
        (".spec | last(.list[] | select(. < 3))", "/spec/list", Some(json!([1, 3, 4]))),
        ("limit(2; .spec.list[])", "/spec/list", Some(json!([3, 4]))),
        ("recurse | select(. == 3)", "/spec/list", Some(json!([1, 2, 4]))),
        ("recurse(.[]?) | .image?", "/spec/containers/0/image", None),
        ("getpath([\"spec\", \"list\", 0])", "/spec/list", Some(json!([2, 3, 4]))),
        ("getpath([\"none\", \"a\"])", "/spec/replicas", Some(json!(2))),
        (".spec[\"replicas\", \"a.b\"]", "/spec/a.b", None),
        (".spec[\"list\"][range(2)]", "/spec/list", Some(json!([3, 4]))),
        (".spec[keys[] | select(startswith(\"r\"))]", "/spec/replicas", Some(json!(2))),
        (".spec | .[keys[] | select(startswith(\"r\"))]", "/spec/replicas", None),
        (".none // .spec.replicas", "/spec/replicas", None),
        (".spec.replicas // .spec.list", "/spec/list", Some(json!([1, 2, 3, 4]))),
        ("if .spec.replicas > 1 then .spec.replicas else .spec.list end", "/spec/replicas", None),
        ("if .none then .spec else empty end", "/spec/replicas", Some(json!(2))),
        (".spec.containers[].env | values", "/spec/containers/1/env", None),
        (".spec.containers[] | select(.name | test(\"^istio\")).image", "/spec/containers/1/image", None),
    ] {
        assert_eq!(at(text, pointer), wanted, "{text}");
    }
}

#[test]
fn what_functions_cannot_be_applied_to_fails() {
    for condition in [
        "keys",
        "test(\"a\")",
        "\"a\" | add",
        "1 | keys",
        "[1, \"a\"] | add",
        "[[1]] | unique",
        "\"x\" | tonumber",
        "[[]] | join(\",\")",
        "\"a\" | contains([1])",
        "1 | has(\"a\")",
        "[1] | from_entries",
        "-1 | ascii",
        "[1] | flatten(-1)",
        "getpath(1)",
        "{(1): 2}",
        "range(\"a\")",
        "{a: 1} | path(.a)",
    ] {
        let told = left(&format!(".spec.replicas | select({condition})"));
        assert!(matches!(told, Err(JqError::Value(_))), "{condition}: {told:?}");
    }
    assert!(matches!(left(".spec | to_entries[]"), Err(JqError::Value(_))), "what was made is nowhere");
}

#[test]
fn what_functions_make_is_charged() {
    let doubled = |count: usize| "[\"x\"]".to_owned() + &" | [.[], .[]]".repeat(count);
    assert!(left(&format!(".spec | select({} | length > 0)", doubled(4))).is_ok());
    for text in [
        format!("select({})", doubled(12)),
        "select([range(1000000)])".to_owned(),
        "recurse(.)".to_owned(),
        "select([range(5000)] | contains([range(5000)]))".to_owned(),
        "select([limit(3; range(100000))])".to_owned(),
    ] {
        assert_eq!(left(&text), Err(JqError::TooMuch), "{text}");
    }
    let many = "test(\"a\") | ".repeat(9) + ".";
    assert!(matches!(left(&many), Err(JqError::Syntax(why)) if why.contains("more than 8")));
    assert!(matches!(left("select(test(\"(((a{100}){100}){100}){100}\"))"), Err(JqError::Syntax(_))));
    // As long as it is, each pattern goes through it.
    let mut long = json!({"text": "a".repeat(1 << 20)});
    assert_eq!(delete(&mut long, ".text | select(test(\"b$\"))"), Err(JqError::TooMuch));
}

#[test]
fn nothing_is_endless() {
    assert_eq!(left(&".a".repeat(TEXT)), Err(JqError::TooLong));
    assert_eq!(left(&"(".repeat(500)), Err(JqError::TooDeep));
    assert_eq!(left(&".a".repeat(500)), Err(JqError::TooDeep));
    let many = ".. | ..".to_owned() + &" | ..".repeat(12);
    assert_eq!(left(&many), Err(JqError::TooMuch));
    // What is compared is gone through each time.
    let mut wide = json!({"list": vec![0; 5_000]});
    assert_eq!(delete(&mut wide, "(.,.,.,.,.,.,.,.) | select(. == .) | .none"), Err(JqError::TooMuch));
}

/// Keys are of the object: each child of a long one has it only where it is told.
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
            ".", "..", "spec", "[", "]", "\"", "a", "(", ")", "|", ",", "select(", "==", " and ", "not", "?", "-1", "0", "é", "\\", "has(", "{", "}", ":", ";", "//",
            "if ", " then ", " end", "keys", "map(", "test(", "limit(1;",
        ]), 0..30)
    ) {
        let _ = left(&parts.concat());
    }
}
