//! Labels of clusters, as they are written on the command line.

use api::selector::label::{is_key, is_value};

/// Reads `KEY=VALUE`.
pub fn parse(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    if key.starts_with(api::GROUP) {
        return Err(format!("labels of {} are reserved for the gateway", api::GROUP));
    }
    if !is_key(key) {
        return Err(format!("{key:?} is not a label key: write NAME or example.com/NAME"));
    }
    if !is_value(value) {
        return Err(format!("{value:?} is not a label value: at most 63 letters, digits, '-', '_' or '.'"));
    }
    Ok((key.to_owned(), value.to_owned()))
}
