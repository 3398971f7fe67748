//! The last words of a program, safe for a log and for the caller: on one line, and without
//! anything that is or looks like a secret.
//!
//! Removes the values that the Secret gave the program, PEM blocks, and long words that look
//! random. Rather removes too much than too little: a manual run of the program shows the whole
//! text.

mod words;

use secrecy::ExposeSecret;

use self::words::{pem, random};
use crate::request::Request;

/// Most bytes shown of the message, before escaping.
const SHOWN: usize = 2 << 10;
/// Shorter values are not secrets, and removing each `1` or `on` would make the text unreadable.
const SHORTEST_VALUE: usize = 4;
/// Replaces a secret.
const MASK: &str = "***";

/// Arguments with these words in their name have secret values.
const SECRET_ARGUMENTS: [&str; 5] = ["secret", "password", "passwd", "token", "credential"];

/// The texts to remove.
pub(crate) struct Redaction<'a>(Vec<&'a str>);

// === impl Redaction ===

impl<'a> Redaction<'a> {
    pub(crate) fn of(request: &'a Request) -> Self {
        let config = request.config();
        let env = config.env.iter().map(|(_, value)| value.expose_secret());
        let proxy = request.proxy_url().map(ExposeSecret::expose_secret);
        let password = proxy.and_then(password);
        let mut values: Vec<&str> = env.chain(arguments(&config.args)).chain(proxy).chain(password).collect();
        // A program may print the lines of a value separately.
        values =
            values.into_iter().flat_map(|value| std::iter::once(value).chain(value.lines())).map(str::trim).collect();
        values.retain(|value| value.len() >= SHORTEST_VALUE);
        // Longest first, because a value may contain another.
        values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
        values.dedup();
        Self(values)
    }

    /// The redacted end of `stderr`. Empty if there is no text.
    pub(crate) fn last_words(&self, stderr: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(stderr).trim().to_owned();
        // Redacts before cutting, because half a secret would not be recognized.
        for value in &self.0 {
            text = text.replace(value, MASK);
        }
        let text = random(&pem(&text));
        let cut = text.len().saturating_sub(SHOWN);
        let cut = text.ceil_char_boundary(cut);
        let words = one_line(&text[cut..]);
        if cut == 0 { words } else { format!("…{words}") }
    }
}

/// The values of secret arguments: `--client-secret=VALUE`, `--client-secret VALUE`.
fn arguments(args: &[String]) -> impl Iterator<Item = &str> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        SECRET_ARGUMENTS.iter().any(|word| name.contains(word))
    };
    let joined = args
        .iter()
        .filter_map(move |arg| arg.split_once('=').filter(|(name, _)| is_secret(name)).map(|(_, value)| value));
    let apart =
        args.windows(2).filter(move |pair| pair[0].starts_with('-') && !pair[0].contains('=') && is_secret(&pair[0]));
    joined.chain(apart.map(|pair| pair[1].as_str()))
}

/// The password in `scheme://user:password@host`.
fn password(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let (user_info, _) = rest.rsplit_once('@')?;
    user_info.split_once(':').map(|(_, password)| password)
}

/// Escapes control characters and characters that change the text direction, so that a log line
/// stays one line.
pub(crate) fn one_line(text: &str) -> String {
    let is_harmful = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmful(c) { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

#[cfg(test)]
mod tests;
