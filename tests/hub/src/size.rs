//! Sizes of tests: small enough for each run, or as large as wanted for measurements by hand.

use std::ffi::OsString;

use anyhow::{Context as _, Result};

/// The number in the environment variable `name`, or `usual` if it is not set. A value that is not
/// a number is an error. The names begin with `TEST_` and are listed in `docs/contributing.md`.
pub fn of(name: &str, usual: usize) -> Result<usize> {
    read(name, std::env::var_os(name), usual)
}

fn read(name: &str, said: Option<OsString>, usual: usize) -> Result<usize> {
    let Some(said) = said else { return Ok(usual) };
    let number = said.to_str().and_then(|text| text.parse().ok());
    number.with_context(|| format!("{name}: {} is no number", said.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_an_error() {
        let said = |text: &str| read("TEST_WORKS", Some(text.into()), 5);
        assert_eq!((read("TEST_WORKS", None, 5).unwrap(), said("10000").unwrap()), (5, 10_000));
        for text in ["", "many", "-1", "10,000"] {
            assert!(said(text).unwrap_err().to_string().contains("TEST_WORKS"), "{text}");
        }
    }
}
