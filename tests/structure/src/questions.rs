//! Names that ask, `is_…` and `has_…`: a caller expects that asking changes nothing.

use crate::tokens::{Token, tokens};

/// A method whose name asks and whose body may answer by changing something.
#[derive(Debug, PartialEq, Eq)]
pub struct Loaded {
    pub name: String,
    /// Counted from 1.
    pub line: usize,
}

/// The methods of `source` that ask with `&mut self`.
pub fn loaded(source: &str) -> Vec<Loaded> {
    let tokens = tokens(source);
    let found = tokens.iter().enumerate().filter(|(at, _)| is_loaded(&tokens[*at..]));
    found.map(|(at, _)| &tokens[at + 1]).map(|name| Loaded { name: name.text.clone(), line: name.line }).collect()
}

fn is_loaded(tokens: &[Token]) -> bool {
    let [function, name, rest @ ..] = tokens else { return false };
    if function.text != "fn" || !["is_", "has_"].iter().any(|word| name.text.starts_with(word)) {
        return false;
    }
    let arguments: Vec<&str> = rest.iter().map(|token| &*token.text).skip_while(|text| *text != "(").take(5).collect();
    matches!(arguments[..], ["(", "&", "mut", "self", ..] | ["(", "&", _, "mut", "self"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_that_may_change_its_subject_is_found() {
        let source = "
            fn is_taken(&mut self) -> bool { true }
            fn has_left<T>(&'a mut self) -> bool { true }
            fn is_free(&self, at: &mut Self) -> bool { true }
            fn take(&mut self) -> bool { self.is_taken() }
        ";
        let names: Vec<_> = loaded(source).into_iter().map(|loaded| (loaded.name, loaded.line)).collect();
        assert_eq!(names, [("is_taken".to_owned(), 2), ("has_left".to_owned(), 3)]);
    }
}
