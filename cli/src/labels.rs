//! Labels of clusters, as they are written on the command line.

use api::selector::label::{is_key, is_value};

/// Reads `KEY=VALUE`.
pub fn parse(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    if key.starts_with(api::GROUP) {
        return Err(format!("labels of {} are the gateway's own", api::GROUP));
    }
    if !is_key(key) {
        return Err(format!("{key:?} is no key: write NAME or example.com/NAME"));
    }
    if !is_value(value) {
        return Err(format!("{value:?} is no value: at most 63 letters, digits, '-', '_' or '.'"));
    }
    Ok((key.to_owned(), value.to_owned()))
}
