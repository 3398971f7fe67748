//! Completes the word at the cursor, for kubectl: it asks the program itself and shows the output
//! (cobra's `__complete`).

use clap::{Arg, Command};

/// What completes a line.
#[derive(Debug, PartialEq, Eq)]
pub enum Suggestions {
    /// Words, each with its description.
    Words(Vec<(String, String)>),
    /// A cluster's name. `before` is the text before it in the same word.
    Cluster { before: String },
    /// Files and programs, which the shell knows.
    Files,
    /// A word that only the user knows.
    Nothing,
}

/// Commands, each with the id of its positional argument for clusters.
const CLUSTERS: [(&str, &str); 10] = [
    ("get", "clusters"),
    ("exec-each", "clusters"),
    ("kubeconfig", "clusters"),
    ("probe", "name"),
    ("check", "name"),
    ("label", "name"),
    ("alias", "name"),
    ("rename", "old"),
    ("rotate", "name"),
    ("detach", "name"),
];

/// What completes the last of `words`, a command line of `root`. `root` must be built.
pub fn suggestions(root: &Command, words: &[String]) -> Suggestions {
    let Some((last, before)) = words.split_last() else { return Suggestions::Nothing };
    let (mut command, mut place, mut awaited) = (root, 0, None);
    for word in before {
        if awaited.take().is_some() {
            continue;
        }
        if word == "--" {
            return Suggestions::Files;
        }
        if word.starts_with('-') {
            awaited = option(command, word).filter(|arg| arg.get_action().takes_values());
        } else if let Some(inner) = command.find_subcommand(word) {
            command = inner;
        } else {
            place += 1;
        }
    }
    if let Some(arg) = awaited {
        return values(arg).map_or(Suggestions::Files, |values| Suggestions::Words(beginning(values, last)));
    }
    if last.starts_with('-') {
        return Suggestions::Words(beginning(options(command), last));
    }
    if command.has_subcommands() {
        return Suggestions::Words(beginning(commands(command), last));
    }
    command.get_positionals().nth(place).map_or(Suggestions::Nothing, |arg| at(command, arg, last))
}

/// What completes the positional argument `arg`.
fn at(command: &Command, arg: &Arg, last: &str) -> Suggestions {
    if let Some(values) = values(arg) {
        return Suggestions::Words(beginning(values, last));
    }
    let id = arg.get_id().as_str();
    if !CLUSTERS.contains(&(command.get_name(), id)) {
        return Suggestions::Nothing;
    }
    let listed = last.rfind(',').filter(|_| id == "clusters");
    Suggestions::Cluster { before: listed.map_or("", |comma| &last[..=comma]).to_owned() }
}

/// The option that a word names, unless the word contains its value, too.
fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| match word.strip_prefix("--") {
        Some(name) => arg.get_long() == Some(name),
        None => word.chars().nth(1) == arg.get_short() && arg.get_short().is_some() && word.chars().count() == 2,
    })
}

fn values(arg: &Arg) -> Option<Vec<(String, String)>> {
    let values = arg.get_possible_values();
    let told = |value: &clap::builder::PossibleValue| {
        (value.get_name().to_owned(), value.get_help().map(ToString::to_string).unwrap_or_default())
    };
    // For flags, these are `true` and `false`.
    let any = !values.is_empty() && arg.get_action().takes_values();
    any.then(|| values.iter().filter(|value| !value.is_hide_set()).map(told).collect())
}

fn options(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(|arg| Some((format!("--{}", arg.get_long()?), first_line(arg.get_help())))).collect()
}

fn commands(command: &Command) -> Vec<(String, String)> {
    let shown = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    shown.map(|inner| (inner.get_name().to_owned(), first_line(inner.get_about()))).collect()
}

fn first_line(text: Option<&impl ToString>) -> String {
    text.map(ToString::to_string).and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
}

fn beginning(mut words: Vec<(String, String)>, last: &str) -> Vec<(String, String)> {
    words.retain(|(word, _)| word.starts_with(last));
    words
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::command::Cli;

    fn line(text: &str) -> Suggestions {
        let mut root = Cli::command();
        root.build();
        suggestions(&root, &text.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    fn words(text: &str) -> Vec<String> {
        let Suggestions::Words(words) = line(text) else { panic!("{:?}", line(text)) };
        words.into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn commands_options_and_values_are_known_by_themselves() {
        assert_eq!(words("ro"), ["rotate"]);
        assert_eq!(words("--context hub re"), ["rename"]);
        assert!(words("").contains(&"list".to_owned()), "{:?}", words(""));
        assert_eq!(words("rotate --member-c"), ["--member-context"]);
        assert_eq!(words("list -o j"), ["json"]);
        assert_eq!(words("completion z"), ["zsh"]);
    }

    #[test]
    fn names_of_clusters_stand_where_each_command_has_them() {
        let cluster = |before: &str| Suggestions::Cluster { before: before.to_owned() };
        for text in ["probe ", "probe be", "rotate --grace 1m be", "get pods ", "rename be", "exec-each -l=a=b "] {
            assert_eq!(line(text), cluster(""), "{text}");
        }
        assert_eq!(line("get pods berlin,mu"), cluster("berlin,"));
        for text in ["get po", "rename berlin be", "join be", "probe berlin "] {
            assert_eq!(line(text), Suggestions::Nothing, "{text}");
        }
        for text in ["exec-each --all -- ku", "probe --kubeconfig ", "list --context "] {
            assert_eq!(line(text), Suggestions::Files, "{text}");
        }
    }

    #[test]
    fn each_place_for_clusters_is_one() {
        let mut root = Cli::command();
        root.build();
        for (command, place) in CLUSTERS {
            let command = root.find_subcommand(command).expect(command);
            assert!(command.get_positionals().any(|arg| arg.get_id() == place), "{place} of {command}");
        }
    }
}
