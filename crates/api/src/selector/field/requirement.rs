//! One requirement of a field selector.

use super::InvalidFieldSelector;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    pub(super) field: String,
    pub(super) equal: bool,
    pub(super) value: String,
}

// === impl Requirement ===

impl Requirement {
    pub(super) fn parse(term: &str) -> Result<Self, InvalidFieldSelector> {
        let at = term.find(['!', '=']).ok_or(InvalidFieldSelector)?;
        // A `!` without `=` after it belongs to the field name, as in splitTerm.
        let at = if term[at..].starts_with('=') || term[at..].starts_with("!=") {
            at
        } else {
            match (term.find("!="), term.find('=')) {
                (Some(unequal), Some(equal)) => unequal.min(equal),
                (_, Some(equal)) => equal,
                _ => return Err(InvalidFieldSelector),
            }
        };
        let (field, rest) = term.split_at(at);
        let (equal, value) = match rest.strip_prefix("!=") {
            Some(value) => (false, value),
            None => (true, rest.strip_prefix("==").unwrap_or(&rest[1..])),
        };
        Ok(Self { field: field.to_owned(), equal, value: unescape(value)? })
    }
}

/// `UnescapeValue`: only `\\`, `\,` and `\=` are escapes. A bare `,` or `=` is an error.
fn unescape(text: &str) -> Result<String, InvalidFieldSelector> {
    let mut value = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                _ => return Err(InvalidFieldSelector),
            },
            ',' | '=' => return Err(InvalidFieldSelector),
            plain => value.push(plain),
        }
    }
    Ok(value)
}
