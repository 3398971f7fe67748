//! Prose that is wider than a reader can comfortably read: comments, Markdown, and charts' notes.

use std::fs;
use std::path::{Path, PathBuf};

/// Columns of a line with a comment only.
pub const COMMENT: usize = 100;
/// Columns of a line of Markdown; code and tables may be wider.
pub const MARKDOWN: usize = 120;

/// A line that is too wide.
#[derive(Debug, PartialEq, Eq)]
pub struct Wide {
    /// Counted from 1.
    pub line: usize,
    pub columns: usize,
}

/// Comments of Rust, Go and JavaScript source that are too wide. A comment after code on the same
/// line is left to the formatter.
pub fn comments(text: &str) -> Vec<Wide> {
    wide(text.lines().map(|line| line.trim_start().starts_with("//").then_some(line)), COMMENT)
}

/// Comments of shell, YAML and TOML that are too wide. Other text cannot always be wrapped: a
/// query, an address, a certificate.
pub fn hash_comments(text: &str) -> Vec<Wide> {
    wide(text.lines().map(|line| line.trim_start().starts_with('#').then_some(line)), COMMENT)
}

/// Comments of charts' templates that are too wide: the templates' own, and those of the YAML.
pub fn template_comments(text: &str) -> Vec<Wide> {
    let mut is_inside = false;
    let lines = text.lines().map(|line| {
        is_inside |= ["{{/*", "{{- /*"].iter().any(|begin| line.contains(begin));
        let is_comment = is_inside || line.trim_start().starts_with('#');
        is_inside &= !line.contains("*/");
        is_comment.then_some(line)
    });
    wide(lines, COMMENT)
}

/// Lines of Markdown that are too wide.
pub fn markdown(text: &str) -> Vec<Wide> {
    let mut fenced = false;
    let lines = text.lines().map(|line| {
        let words = line.trim_start();
        let fence = words.starts_with("```");
        fenced ^= fence;
        let is_prose = !fenced && !fence && !line.starts_with("    ") && !words.starts_with(['|', '!', '<']);
        is_prose.then_some(line)
    });
    wide(lines, MARKDOWN)
}

/// Lines of a chart's notes that are too wide, as wide as Markdown. Commands (indented) are copied
/// line by line, and lines that begin with an action of the template print nothing, or little.
pub fn notes(text: &str) -> Vec<Wide> {
    let is_prose = |line: &&str| !line.starts_with("    ") && !line.starts_with("{{");
    wide(text.lines().map(|line| Some(line).filter(is_prose)), MARKDOWN)
}

fn wide<'a>(lines: impl Iterator<Item = Option<&'a str>>, most: usize) -> Vec<Wide> {
    let columns = lines.map(|line| line.map_or(0, |line| line.chars().count()));
    let numbered = columns.enumerate().map(|(at, columns)| Wide { line: at + 1, columns });
    numbered.filter(|line| line.columns > most).collect()
}

/// Files with these extensions (`rs`, `md`, …) below `workspace`, without build output and hidden
/// files.
///
/// # Panics
///
/// If a directory cannot be read.
pub fn files(workspace: &Path, kinds: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![workspace.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the workspace") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') || name == "target" {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kinds.iter().any(|one| kind == *one)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(wide: &[Wide]) -> Vec<usize> {
        wide.iter().map(|wide| wide.line).collect()
    }

    #[test]
    fn comments_are_measured_in_characters_and_code_is_not() {
        let (fits, wide) = ("é".repeat(COMMENT - 3), "x".repeat(COMMENT - 2));
        let text = format!("// {fits}\n    //! {wide}\nlet a = \"{wide}{wide}\"; // and {wide}\n// {wide}\n");
        assert_eq!(lines(&comments(&text)), [2, 4]);
    }

    #[test]
    fn comments_behind_a_hash_are_measured_and_values_are_not() {
        let wide = "x".repeat(COMMENT);
        let text = format!("#!/bin/sh\n# {wide}\na: {wide} # {wide}\n  # -- {wide}\n# x\n");
        assert_eq!(lines(&hash_comments(&text)), [2, 4]);
    }

    #[test]
    fn comments_of_templates_are_measured_to_their_end() {
        let wide = "x".repeat(COMMENT);
        let text = format!("{{{{/*\n{wide}y\n*/}}}}\n{wide}y\n{{{{- /* {wide} */ -}}}}\n# {wide}\n{wide}y\n");
        assert_eq!(lines(&template_comments(&text)), [2, 5, 6]);
    }

    #[test]
    fn notes_are_prose_only() {
        let wide = "x".repeat(MARKDOWN + 1);
        let text = format!("{wide}\n    {wide}\n{{{{- if {wide} }}}}\nSet {{{{ .a }}}} to {wide}\nx\n");
        assert_eq!(lines(&notes(&text)), [1, 4]);
    }

    #[test]
    fn markdown_is_prose_only() {
        let wide = "x".repeat(MARKDOWN + 1);
        let text = format!("{wide}\n    {wide}\n| {wide} |\n```\n{wide}\n```\n- {wide}\n![{wide}](y)\n");
        assert_eq!(lines(&markdown(&text)), [1, 7]);
    }
}
