//! Tests of the file format, by examples and round trips.

use proptest::prelude::*;

use super::*;

fn find(file: &TokenFile, token: &[u8]) -> Option<Arc<User>> {
    file.find(&file.hasher().id(token))
}
use crate::testing::strings;

#[test]
fn lines_name_token_user_uid_and_groups() {
    let file = TokenFile::parse(
        b"t1,alice,1,\"developers,operators\"\r\n\n\"t,2\",\"bob \"\"b\"\"\",\nt3,carol,3,solo,ignored\n,nobody,4\nt1,alice2,5",
    )
    .expect("valid");
    let user = |token: &str| Arc::unwrap_or_clone(find(&file, token.as_bytes()).expect(token));
    assert_eq!(user("t1").name, "alice2", "the last line wins");
    let bob = user("t,2");
    assert_eq!((bob.name.as_str(), bob.uid, bob.groups), ("bob \"b\"", None, strings(&["system:authenticated"])));
    assert_eq!(user("t3").groups, ["solo", "system:authenticated"]);
    assert_eq!(user("t3").uid.as_deref(), Some("3"));
    assert_eq!(find(&file, b""), None);
    assert_eq!(find(&file, b"t2"), None);
}

#[test]
fn groups_are_split_at_commas_within_the_quotes() {
    let file = TokenFile::parse(b"t,u,1,\"a,b,,c\"").expect("valid");
    assert_eq!(find(&file, b"t").expect("known").groups, ["a", "b", "c", "system:authenticated"]);
}

#[test]
fn mistakes_are_named_by_line_and_never_quoted() {
    for (csv, error) in [
        (&b"t,u"[..], TokenFileError::Columns { line: 1 }),
        (b"t,u,1\n\nsecret,\n", TokenFileError::Columns { line: 3 }),
        (b"t,,1", TokenFileError::NoUser { line: 1 }),
        (b"t,u,\"1\nx\nt2,u,1", TokenFileError::Quote { line: 1 }),
        (b"t,u,1\nt2,u,a\"b", TokenFileError::Quote { line: 2 }),
        (b"t,u,\"a\"b", TokenFileError::Quote { line: 1 }),
        (b"t\xff,u,1", TokenFileError::NotUtf8),
    ] {
        assert_eq!(TokenFile::parse(csv).expect_err("refused"), error);
    }
}

#[test]
fn a_bad_replacement_changes_nothing() {
    let file = TokenFile::parse(b"t,u,1").expect("valid");
    file.replace(b"broken").expect_err("too few columns");
    assert!(find(&file, b"t").is_some());
    file.replace(b"t2,u,1").expect("valid");
    assert!(find(&file, b"t").is_none() && find(&file, b"t2").is_some());
}

proptest! {
    #[test]
    fn what_is_quoted_comes_back(rows in proptest::collection::vec(proptest::collection::vec(".{0,8}", 1..5), 0..5)) {
        let quote = |field: &String| format!("\"{}\"", field.replace('"', "\"\""));
        let line = |row: &Vec<String>| row.iter().map(quote).collect::<Vec<_>>().join(",");
        let text = rows.iter().map(line).collect::<Vec<_>>().join("\n");
        let kept: Vec<Vec<String>> = rows.into_iter().filter(|row| *row != [""]).collect();
        let read: Vec<Vec<String>> = records(&text).expect("valid").into_iter().map(|record| record.fields).collect();
        prop_assert_eq!(read, kept);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[\",a\r\n ö]{0,40}") {
        let _ = records(&text);
    }
}
