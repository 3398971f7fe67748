//! The report as Markdown.

use std::fmt::Write as _;

use super::number::{bound, spread};
use super::words::line;
use super::{Column, Judged, Report, Row, Run, Section, Verdict, chart, machine, programs};

/// Where the text will stand.
#[derive(Clone, Copy)]
pub(super) struct Layout<'a> {
    /// Level of headings.
    pub level: usize,
    /// The charts' directory, as seen from the text.
    pub charts: &'a str,
}

/// The report with its own heading.
pub(super) fn whole(report: &Report, layout: Layout<'_>) -> String {
    format!("# Measured side by side\n\n{}", body(report, layout))
}

/// Machine, programs, how to read it, and every scenario.
pub(super) fn body(report: &Report, layout: Layout<'_>) -> String {
    let mut text = about(report);
    let dated = !one_run(report);
    for section in &report.scenarios {
        text.push('\n');
        text.push_str(&scenario(section, layout, dated));
    }
    text
}

fn about(report: &Report) -> String {
    let mut text = machine_line(&report.machine);
    if report.scenarios.iter().any(|section| section.run.smoke) {
        text.push_str("\n**This was a smoke run: it shows that the scenarios run, its figures mean nothing.**\n");
    }
    if let Some(runs) = runs(report) {
        let _ = write!(text, "\n{runs}\n");
    }
    text.push_str("\n| program | version |\n|---|---|\n");
    for programs::Version { program, version } in &report.programs {
        let _ = writeln!(text, "| {} | {} |", cell(program), cell(version));
    }
    text.push_str(
        "\nFigures are medians of the rounds, with the lowest and the highest behind them. Ratios compare measurements \
         of the same round that followed each other; the median of these ratios is compared with the goal.\n",
    );
    text
}

fn machine_line(machine: &machine::Machine) -> String {
    let machine::Machine { processor, cores, virtualized, memory, kernel, system, load } = machine;
    let guest = if *virtualized { " of a virtual machine" } else { "" };
    let many = if *cores == 1 { "core" } else { "cores" };
    format!(
        "Measured on {cores} {many}{guest} ({processor}), {memory:.1} GiB of memory, {system}, Linux {kernel}; \
         the load average was {load:.1} when it began.\n"
    )
}

/// Time, commit and rounds of the run: once if they are the same for all.
fn runs(report: &Report) -> Option<String> {
    let first = &report.scenarios.first()?.run;
    let last = &report.scenarios.last()?.run;
    if !one_run(report) {
        return Some("The scenarios are of several runs; each says which.".to_owned());
    }
    let at = if first.at == last.at { first.at.clone() } else { format!("{} to {}", first.at, last.at) };
    Some(format!("{at} UTC, commit {}, {}.", first.commit, often(first)))
}

fn one_run(report: &Report) -> bool {
    let key = |section: &Section| (section.run.commit.clone(), section.run.rounds, section.run.seconds.to_bits());
    report.scenarios.windows(2).all(|pair| key(&pair[0]) == key(&pair[1]))
}

fn often(run: &Run) -> String {
    let rounds = if run.rounds == 1 { "one round".to_owned() } else { format!("{} rounds", run.rounds) };
    format!("{rounds}, {} s each time where the length is free", run.seconds)
}

fn scenario(section: &Section, layout: Layout<'_>, dated: bool) -> String {
    let mut text =
        format!("{} {}\n\n`{}`. {}\n", "#".repeat(layout.level), section.title, section.name, section.method);
    if dated {
        let _ = write!(text, "\n{} UTC, commit {}, {}.\n", section.run.at, section.run.commit, often(&section.run));
    }
    if let Some(missing) = &section.missing {
        let word = if missing.failed { "Failed" } else { "Skipped" };
        let _ = write!(text, "\n{word}: {}\n", line(&missing.reason));
        return text;
    }
    text.push_str(&table(section));
    text.push_str(&gaps(section));
    if chart::chart(section).is_some() {
        let title = section.main_figure().map_or("", |figure| &figure.title);
        let _ = write!(text, "\n![{}: {title}]({}/{})\n", section.title, layout.charts, chart::file(section));
    }
    text.push_str(&goals(&section.goals));
    text
}

fn table(section: &Section) -> String {
    let measured: Vec<&Row> = section.targets.iter().filter(|row| !row.samples.is_empty()).collect();
    if measured.is_empty() {
        return String::new();
    }
    let titles: Vec<String> = section.figures.iter().map(|figure| cell(&figure.title)).collect();
    let mut text = format!("\n| | {} |\n|---|{}\n", titles.join(" | "), "---:|".repeat(titles.len()));
    for row in measured {
        let figures: Vec<String> = section.figures.iter().map(|figure| value(row, figure)).collect();
        let _ = writeln!(text, "| {} | {} |", cell(&row.target), figures.join(" | "));
    }
    text
}

fn value(row: &Row, figure: &Column) -> String {
    row.summaries.get(&figure.key).map_or_else(|| "–".to_owned(), |summary| spread(summary, figure.digits))
}

fn gaps(section: &Section) -> String {
    let mut text = String::new();
    for row in &section.targets {
        let Some(missing) = &row.missing else { continue };
        let word = match (missing.failed, row.samples.len()) {
            (false, _) => "skipped".to_owned(),
            (true, 0) => "failed".to_owned(),
            (true, rounds) => format!("failed after round {rounds}"),
        };
        let _ = writeln!(text, "- {} {word}: {}", row.target, line(&missing.reason));
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

fn goals(verdicts: &[Verdict]) -> String {
    if verdicts.is_empty() {
        return String::new();
    }
    let mut text = "\n| goal | measured | must | | aim | |\n|---|---:|---|---|---|---|\n".to_owned();
    for verdict in verdicts {
        let measured = verdict.summary.map_or_else(|| "–".to_owned(), |summary| spread(&summary, verdict.digits));
        let _ = writeln!(
            text,
            "| {} | {measured} | {} | {} |",
            cell(&verdict.subject()),
            judged(verdict.must, verdict.rounds.len()),
            judged(verdict.aim, verdict.rounds.len()),
        );
    }
    text
}

fn judged(judged: Option<Judged>, rounds: usize) -> String {
    let Some(judged) = judged else { return "– | ".to_owned() };
    let word = judged.word(rounds);
    let word = if judged.met == Some(false) { format!("**{word}**") } else { word };
    format!("{} | {word}", bound(judged.bound))
}

/// Text in a table's cell.
fn cell(text: &str) -> String {
    line(text).replace('|', "\\|")
}
