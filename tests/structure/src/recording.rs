//! A terminal as a moving picture, drawn from the screens of a page.

use std::fmt::Write as _;

use crate::blocks::blocks;

/// Length of the recording in milliseconds, until it starts again.
const LENGTH: usize = 30_000;
/// Part of it at the end in which everything is visible.
const REST: usize = 6_000;
/// Pause from a command to its output.
const ANSWER: usize = 1_000;
/// Width in characters; longer lines are wrapped.
const COLUMNS: usize = 118;
/// Width in pixels, for a number of characters.
const PIXELS: (usize, usize) = (29, 4);
const LINE: usize = 18;
const MARGIN: usize = 16;

/// A line of the terminal, and when it appears.
struct Line<'a> {
    text: String,
    at: usize,
    class: &'a str,
}

/// The picture of all screens of `page`, one below the other.
pub fn recording(page: &str) -> String {
    let screens: Vec<_> =
        blocks(page).into_iter().filter(|block| block.language.as_deref() == Some("console")).collect();
    let step = (LENGTH - REST) / screens.len().max(1);
    let mut lines = Vec::new();
    for (number, screen) in screens.iter().enumerate() {
        let begin = number * step;
        for line in screen.text.lines() {
            let (at, class) = if line.starts_with("$ ") { (begin, "typed") } else { (begin + ANSWER, "told") };
            lines.extend(wrapped(line).into_iter().map(|text| Line { text, at, class }));
        }
        lines.push(Line { text: String::new(), at: begin, class: "told" });
    }
    draw(&lines)
}

fn wrapped(line: &str) -> Vec<String> {
    let characters: Vec<char> = line.chars().collect();
    characters.chunks(COLUMNS).map(|chunk| chunk.iter().collect()).collect()
}

fn draw(lines: &[Line<'_>]) -> String {
    let width = COLUMNS * PIXELS.0 / PIXELS.1 + 2 * MARGIN;
    let height = lines.len() * LINE + 2 * MARGIN;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>kubectl clusters</title>\n\
         <style>text {{ font: 12px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; white-space: pre }} \
         .told {{ fill: #c9d1d9 }} .typed {{ fill: #7ee787 }}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.text.is_empty()) {
        let (y, at) = (MARGIN + (number + 1) * LINE - LINE / 4, line.at * 1_000 / LENGTH);
        // Without animation everything is visible.
        let appears = format!(
            "<animate attributeName=\"opacity\" calcMode=\"discrete\" values=\"0;1\" keyTimes=\"0;0.{at:03}\" \
             dur=\"{LENGTH}ms\" repeatCount=\"indefinite\"/>"
        );
        let appears = if line.at > 0 { appears } else { String::new() };
        let (class, text) = (line.class, escaped(&line.text));
        let _ = writeln!(
            picture,
            "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\" xml:space=\"preserve\">{text}{appears}</text>"
        );
    }
    picture + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn screens_appear_one_after_the_other_and_other_blocks_do_not() {
        let drawn = recording("```sh\nno\n```\n```console\n$ a\nb<c\n```\n```console\n$ d\n```\n");
        let at = |text: &str| {
            let line = drawn.lines().find(|line| line.contains(text)).expect(text);
            line.split_once("keyTimes=\"0;").map_or(0.0, |(_, rest)| rest[..5].parse::<f64>().unwrap())
        };
        assert!(at(">$ a") < at(">b&lt;c") && at(">b&lt;c") < at(">$ d"), "{drawn}");
        assert!(!drawn.contains("no<"), "{drawn}");
    }

    #[test]
    fn long_lines_are_wrapped() {
        assert_eq!(wrapped(&"é".repeat(COLUMNS + 1)).len(), 2);
    }
}
