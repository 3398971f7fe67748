//! Where words go: results to standard output, everything else to standard error.

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

/// Writes results. A reader that stopped has what it wanted.
pub fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Trouble::failed(format!("cannot write to standard output: {error}"), ""))
        }
        _ => Ok(()),
    }
}

/// Writes the sentence that a command ends with, in which servers choose some of the words.
pub fn done(sentence: &str) -> Result<()> {
    print(&format!("{}\n", tame(sentence)))
}

/// Writes results as JSON or YAML.
pub fn print_document(document: &Value, yaml: bool) -> Result<()> {
    let text = if yaml { to_yaml(document)? } else { format!("{document:#}\n") };
    print(&text)
}

/// As YAML, with a newline at its end.
pub fn to_yaml(document: &Value) -> Result<String> {
    // URLs and certificates stay on their lines, as kubectl writes them.
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    let text = serde_saphyr::to_string_with_options(document, options);
    text.map_err(|error| Trouble::failed(format!("cannot write YAML: {error}"), ""))
}

/// Says something to the person. Servers choose some of the words: none of them is a command for a
/// terminal. A failure has no reader left. In one piece: what a pipe prints meanwhile comes before
/// or after it, not in between.
pub fn say(line: &str) {
    drop(io::stderr().lock().write_all(format!("{}\n", tame(line)).as_bytes()));
}

/// Tells of the trouble that ends the command.
pub fn fail(trouble: &Trouble) -> ExitCode {
    trouble.to_string().lines().for_each(say);
    ExitCode::from(trouble.exit as u8)
}

/// Asks for a line, if a person is there to answer; `None` if not.
pub fn ask(question: &str) -> Option<String> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return None;
    }
    drop(write!(io::stderr().lock(), "{question} "));
    let mut line = String::new();
    io::stdin().read_line(&mut line).ok()?;
    Some(line.trim().to_owned())
}

/// So many of them: `1 warning`, `2 warnings`.
pub fn count(number: usize, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}

/// Whether standard output is a terminal that shows colours (<https://no-color.org>).
pub fn is_coloured() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The same for text that brings its own line ends.
pub fn say_lines(text: &str) {
    drop(io::stderr().lock().write_all(text.as_bytes()));
}
