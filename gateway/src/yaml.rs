//! What may be told of a YAML file that does not parse.
//!
//! Parsers quote the lines around a mistake, and the files read here hold credentials: only the
//! place is told.

/// Where the mistake is.
pub fn place(error: &serde_saphyr::Error) -> String {
    match error.location() {
        Some(location) => format!("not valid near line {}, column {}", location.line(), location.column()),
        None => "not valid".to_owned(),
    }
}
