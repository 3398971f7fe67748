use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object() -> Json {
    json!({
        "metadata": {"name": "a", "annotations": {"a.io/b": "dotted"}},
        "spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443, "name": "https"}, {"port": 8080}], "ratio": 1.5},
        "status": {"conditions": [
            {"type": "Ready", "status": "True", "n": 1}, {"type": "Other", "status": "False", "n": 2}], "on": true},
        "none": null,
    })
}

fn found(path: &str) -> Result<Vec<Json>, Error> {
    let object = object();
    let path = JsonPath::read(path)?;
    let found = path.find(&object)?;
    Ok(found
        .iter()
        .map(|one| match (one, one.basic()) {
            (Found::Json(value), _) => (*value).clone(),
            (_, basic) => json!(format!("{basic:?}")),
        })
        .collect())
}

#[test]
fn paths_lead_where_they_do_in_kubernetes() {
    for (path, wanted) in [
        (".metadata.name", json!(["a"])),
        ("$.metadata.name ", json!(["a"])),
        (".metadata.annotations.a\\.io/b", json!(["dotted"])),
        (".metadata.annotations['a\\.io/b']", json!(["dotted"])),
        (".metadata.missing.deeper", json!([])),
        (".metadata.name.deeper", json!([])),
        (".spec.ports[0].port", json!([80])),
        (".spec.ports[-1].port", json!([8080])),
        (".spec.ports[0:2].port", json!([80, 443])),
        (".spec.ports[:].port", json!([80, 443, 8080])),
        (".spec.ports[*].name", json!(["http", "https"])),
        (".spec.ports[::2].port", json!([80, 8080])),
        (".spec.ports[0,2].port", json!([80, 8080])),
        (".spec.ports[1:1]", json!([])),
        (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
        (".status.conditions[?(@.type=='Ready')].status", json!(["True"])),
        (".status.conditions[?(@.n>1)].type", json!(["Other"])),
        (".status.conditions[?(@.n<=1)].type", json!(["Ready"])),
        (".status.conditions[?(@.type!=\"Ready\")].n", json!([2])),
        (".spec.ports[?(@.name)].port", json!([80, 443])),
        (".spec.ports[?(@.name==\"http\")]['port','name']", json!([80, "http"])),
        ("..port", json!([80, 443, 8080])),
        (
            ".status.*",
            json!([[{"type": "Ready", "status": "True", "n": 1},
            {"type": "Other", "status": "False", "n": 2}], true]),
        ),
        (".none", json!([null])),
        (".none[0]", json!([])),
        ("", json!([object()])),
    ] {
        assert_eq!(found(path).map(Json::from), Ok(wanted), "{path}");
    }
}

#[test]
fn what_is_wrong_is_told() {
    for (path, why) in [
        ("metadata.name", "unrecognized identifier metadata: fields begin with a dot"),
        (".a[", "unterminated array"),
        (".a[x]", "invalid array index x"),
        (".a[1:2:3:4]", "invalid array index 1:2:3:4"),
        (".a[?(@.b=='c']", "unterminated filter"),
        (".a[?(@.b)x", "unclosed array expect ]"),
        (".a[?(@.b=!1)]", "unrecognized filter operator =!"),
        (".a}", "unrecognized character in action: '}'"),
        ("....a", "invalid multiple recursive descent"),
        ("'a", "unterminated quoted string"),
        (".spec.ports[3]", "array index out of bounds: index 3, length 3"),
        (".spec.ports[-4]", "array index out of bounds: index -1, length 3"),
        (".spec.ports[2:1]", "starting index 2 is greater than ending index 1"),
        (".spec.ports[::0]", "step must be > 0"),
        (".spec[0]", "map is not array or slice"),
        (".spec[?(@.a==1)]", "map is not array or slice and cannot be filtered"),
        (".status.conditions[?(@.n==\"1\")]", "incompatible types for comparison"),
        (".status.conditions[?(@==1)]", "invalid type for comparison"),
    ] {
        assert_eq!(found(path).map_err(|error| error.to_string()), Err(why.to_owned()), "{path}");
    }
}

#[test]
fn nothing_is_endless() {
    assert_eq!(found(&".a".repeat(TEXT)), Err(Error::TooLong));
    let nested = (0..20).fold("@.a".to_owned(), |inside, _| format!("@.a[?({inside})]"));
    assert!(found(&nested).is_err());
    let wide = json!({"a": vec![json!(vec![1; 200]); 200]});
    let path = JsonPath::read("..[0,0,0,0,0,0]").unwrap();
    assert!(path.find(&wide).is_err());
    let all = JsonPath::read("......a").map(|path| path.find(&wide).map(|found| found.len()));
    assert!(all.is_err(), "{all:?}");
    let texts = json!({"l": [{"a": "x".repeat(100_000)}]});
    let compared = JsonPath::read(&format!("[{}'l'][?(@.a==@.a)]", "'l',".repeat(100))).unwrap();
    assert_eq!(compared.find(&texts), Err(Error::TooMuch));
    let lists = json!(vec![json!(vec![1; 200]); 200]);
    let descents = JsonPath::read(&"..[:]".repeat(100)).unwrap();
    assert_eq!(descents.find(&lists), Err(Error::TooMuch));
}

#[test]
fn each_item_of_a_filter_and_each_child_is_charged() {
    let wide = json!({"x": vec![0; VISITS]});
    for path in [".x[?(@)]", ".x[?()]", ".x.*", ".x[*]", "..y"] {
        let read = JsonPath::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        assert_eq!(read.find(&wide), Err(Error::TooMuch), "{path}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_path_or_an_error(
        path in prop::collection::vec(prop::sample::select(vec![
            ".", "..", "a", "spec", "ports", "[", "]", "[?(", ")]", "@", "==", "<", "\"x\"", "'", "*", ",", ":", "-1", "0", "\\", " ", "é", "$", "{", "true",
        ]), 0..30)
    ) {
        let _ = found(&path.concat());
    }
}
