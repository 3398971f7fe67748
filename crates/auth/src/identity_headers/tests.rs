//! Tests of the keys of extra attributes.

use proptest::prelude::*;

use super::*;

#[test]
fn extra_keys_are_decoded_as_go_does() {
    for (raw, key) in [
        ("scopes", "scopes"),
        ("a%2fb", "a/b"),
        ("%c3%b6", "ö"),
        ("100%", "100%"),
        ("a%2", "a%2"),
        ("%zz", "%zz"),
        ("%+1", "%+1"),
        ("a+b", "a+b"),
        ("%ff", "%ff"),
        ("", ""),
    ] {
        assert_eq!(unescape_key(raw), key, "{raw}");
    }
}

proptest! {
    #[test]
    fn escaping_every_byte_of_a_key_changes_nothing(key in ".*") {
        let escaped = key.bytes().fold(String::new(), |escaped, byte| format!("{escaped}%{byte:02x}"));
        prop_assert_eq!(unescape_key(&escaped), key);
    }

    #[test]
    fn no_key_is_too_odd(raw in ".*") {
        unescape_key(&raw);
    }
}
