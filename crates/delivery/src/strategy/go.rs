//! Upstream's hash of an object: MD5 of the object as Go's `%v` prints it. Upstream's agent and
//! this program, if one follows the other, thus agree on what was applied.

use std::fmt::Write as _;

use serde_json::{Number, Value as Json};

/// In hex.
pub fn hash(object: &Json) -> String {
    let mut text = String::from("&{");
    print(object, &mut text);
    text.push('}');
    format!("{:x}", md5::compute(text))
}

fn print(value: &Json, out: &mut String) {
    match value {
        Json::Null => out.push_str("<nil>"),
        Json::Bool(is_true) => out.push_str(if *is_true { "true" } else { "false" }),
        Json::Number(number) => print_number(number, out),
        Json::String(text) => out.push_str(text),
        Json::Array(values) => {
            out.push('[');
            for (at, value) in values.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { " " });
                print(value, out);
            }
            out.push(']');
        }
        Json::Object(entries) => {
            out.push_str("map[");
            // Sorted, as Go prints maps. Whether serde_json's maps are sorted is an option of that
            // crate.
            let mut sorted: Vec<(&String, &Json)> = entries.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                out.push_str(if at == 0 { "" } else { " " });
                out.push_str(key);
                out.push(':');
                print(value, out);
            }
            out.push(']');
        }
    }
}

/// A number that is not a 64-bit integer is a double, with as few digits as it needs, and with an
/// exponent below 10^-4 and from 10^6 on, as Go prints `%v` of a `float64`.
fn print_number(number: &Number, out: &mut String) {
    let written = match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => write!(out, "{whole}"),
        (None, Some(double)) if double != 0.0 && !(1e-4..1e6).contains(&double.abs()) => {
            let text = format!("{double:e}");
            let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            write!(out, "{digits}e{sign}{exponent:0>2}")
        }
        (None, Some(double)) => write!(out, "{double}"),
        (None, None) => Ok(()),
    };
    // Writing to a text does not fail.
    let _ = written;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_printed_as_go_does() {
        let mut out = String::new();
        print(
            &json!({"b": [1, "x y", null, true, {}], "a": {"n": -3, "f": 1.5, "big": 1e21, "small": 0.00001, "e": []}}),
            &mut out,
        );
        assert_eq!(out, "map[a:map[big:1e+21 e:[] f:1.5 n:-3 small:1e-05] b:[1 x y <nil> true map[]]]");
    }

    /// As `fmt.Println` printed them.
    #[test]
    fn doubles_are_printed_as_go_does() {
        for (double, wanted) in [
            (1.5, "1.5"),
            (100_000.0, "100000"),
            (123_456.5, "123456.5"),
            (1_234_567.5, "1.2345675e+06"),
            (1e6, "1e+06"),
            (12_345_678.25, "1.234567825e+07"),
            (1e20, "1e+20"),
            (-1e21, "-1e+21"),
            (1e-4, "0.0001"),
            (0.000_123, "0.000123"),
            (1e-5, "1e-05"),
            (0.0, "0"),
            (1e100, "1e+100"),
        ] {
            let mut out = String::new();
            print(&json!(double), &mut out);
            assert_eq!(out, wanted);
        }
    }

    #[test]
    fn the_hash_is_of_that() {
        // printf '&{map[kind:ConfigMap]}' | md5sum
        assert_eq!(hash(&json!({"kind": "ConfigMap"})), EXPECTED);
    }

    const EXPECTED: &str = "8bd4bc55b75a0f17b35de890dca4480b";
}
