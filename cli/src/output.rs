//! Output: results go to standard output, everything else to standard error.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use serde_json::Value;

use crate::text_table::tame;
use crate::trouble::{Result, Trouble};

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// More columns.
    Wide,
    Json,
    Yaml,
    /// One name a line.
    Name,
}

/// Writes results. A reader that closed the pipe has what it wanted.
pub fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Trouble::failed(format!("cannot write to standard output: {error}"), ""))
        }
        _ => Ok(()),
    }
}

/// Writes the last sentence of a command. Servers choose some of its words.
pub fn done(sentence: &str) -> Result<()> {
    print(&format!("{}\n", tame(sentence)))
}

/// Writes results as JSON or YAML.
pub fn print_document(document: &Value, yaml: bool) -> Result<()> {
    let text = if yaml { to_yaml(document)? } else { format!("{document:#}\n") };
    print(&text)
}

/// YAML, with a newline at the end.
pub fn to_yaml(document: &Value) -> Result<String> {
    // URLs and certificates stay on their lines, as kubectl writes them.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(document, options);
    text.map_err(|error| Trouble::failed(format!("cannot write YAML: {error}"), ""))
}

/// Writes a line for the person. Servers choose some of the words: none of them reaches the
/// terminal as a command. Ignores failures, because they have no reader left. Writes the line in
/// one piece: concurrent output comes before or after it, not in between.
pub fn say(line: &str) {
    drop(io::stderr().lock().write_all(format!("{}\n", tame(line)).as_bytes()));
}

/// Reports the trouble that ends the command. Returns the exit code.
pub fn fail(trouble: &Trouble) -> ExitCode {
    trouble.to_string().lines().for_each(say);
    ExitCode::from(trouble.exit as u8)
}

/// Asks for a line. `None` if no person is there to answer.
pub fn ask(question: &str) -> Option<String> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return None;
    }
    drop(write!(io::stderr().lock(), "{question} "));
    let mut line = String::new();
    io::stdin().read_line(&mut line).ok()?;
    Some(line.trim().to_owned())
}

/// A number and its noun: `1 warning`, `2 warnings`.
pub fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// Whether standard output is a terminal that shows colours (<https://no-color.org>).
pub fn is_coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Writes text that has its own line ends to standard error, unchanged.
pub fn say_lines(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
