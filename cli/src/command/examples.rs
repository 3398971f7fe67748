//! Commands that readers are shown: in the help, on the pages, and in remedies.

use std::fs;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _, Parser as _};

use super::Cli;

const NAMES: [&str; 2] = ["kubectl clusters", "kubectl-clusters"];
/// What ends a command in a shell, as a word by itself.
const ENDS: [&str; 4] = [">", "|", "&&", ";"];
/// Of each kind there are at least so many: with fewer, some were not found.
const FEWEST: [usize; 3] = [30, 40, 30];

/// A command, and whether it is part of a sentence, which may leave out what the reader knows.
struct Shown {
    command: String,
    in_sentence: bool,
}

// === impl Shown ===

impl Shown {
    /// Why the program refuses it, if it does.
    fn refusal(&self) -> Option<String> {
        let words = words(NAMES.iter().find_map(|name| self.command.strip_prefix(name))?);
        let refused = Cli::try_parse_from([NAMES[1].to_owned()].into_iter().chain(words)).err()?;
        let incomplete = matches!(
            refused.kind(),
            ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        );
        (!(self.in_sentence && incomplete)).then(|| format!("{}\n{refused}", self.command))
    }
}

/// Commands that are lines by themselves.
fn lines(text: &str) -> impl Iterator<Item = Shown> {
    let text = text.replace("\\\n", " ");
    let lines: Vec<_> = text.lines().map(|line| line.trim_start().trim_start_matches("$ ").to_owned()).collect();
    let is_one = |line: &String| NAMES.iter().any(|name| line.starts_with(&format!("{name} ")));
    lines.into_iter().filter(is_one).map(|command| Shown { command, in_sentence: false })
}

/// Commands between backquotes, which have their pairs in each of the pieces between `separator`s.
fn quoted(text: &str, separator: &str) -> impl Iterator<Item = Shown> {
    // Where a string of a source goes on in the next line.
    let text = text.split("\\\n").map(str::trim_start).collect::<String>();
    let quoted = text.split(separator).flat_map(|piece| piece.split('`').skip(1).step_by(2));
    let quoted: Vec<_> = quoted.map(|part| part.replace('\n', " ")).collect();
    let is_one = |part: &String| NAMES.iter().any(|name| part.starts_with(name));
    quoted.into_iter().filter(is_one).map(|command| Shown { command, in_sentence: true })
}

/// As a shell reads them, without its comments.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars().chain([' ']) {
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => (quote, word) = (Some(character), Some(word.unwrap_or_default())),
            (None, ' ') => words.extend(word.take()),
            (None, '#') if word.is_none() => break,
            _ => word.get_or_insert_default().push(character),
        }
    }
    let end = words.iter().position(|word| ENDS.contains(&word.as_str()));
    words.truncate(end.unwrap_or(words.len()));
    words
}

fn helps(command: &Command) -> Vec<Shown> {
    let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    lines(&own).chain(command.get_subcommands().flat_map(helps)).collect()
}

fn files(folder: &Path, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let found = entries.flat_map(|path| if path.is_dir() { files(&path, kind) } else { vec![path] });
    found.filter(|path| path.extension().is_some_and(|end| end == kind)).collect()
}

#[test]
fn the_program_understands_every_command_that_is_shown() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: PathBuf| fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let pages: Vec<_> =
        files(&own.join("../docs"), "md").into_iter().chain([own.join("../README.md")]).map(read).collect();
    let sources: Vec<_> = files(&own.join("src"), "rs").into_iter().map(read).collect();
    let all = [
        helps(&Cli::command()),
        pages.iter().flat_map(|page| lines(page).chain(quoted(page, "\n\n"))).collect(),
        sources.iter().flat_map(|source| quoted(source, "\n")).collect(),
    ];
    let counts = all.each_ref().map(Vec::len);
    assert!(counts.iter().zip(FEWEST).all(|(count, fewest)| *count >= fewest), "{counts:?}");
    let refused: Vec<_> = all.iter().flatten().filter_map(Shown::refusal).collect();
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn a_line_is_read_as_a_shell_does() {
    assert_eq!(words(" alias berlin \"Berlin, customers\"   # a name"), ["alias", "berlin", "Berlin, customers"]);
    assert_eq!(words(" -- sh -c 'a | b' > x"), ["--", "sh", "-c", "a | b"]);
    let [first, second] = ["no-such-command", "list --no-such-flag"].map(|words| {
        let shown = quoted(&format!("`{} {words}`", NAMES[0]), "\n").next();
        shown.and_then(|shown| shown.refusal())
    });
    assert!(first.is_some() && second.is_some(), "{first:?} {second:?}");
}
