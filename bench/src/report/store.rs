//! The report's files: `report.json`, `report.md`, and a chart for each scenario in `charts/`.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::Report;
use super::chart::{chart, file};
use super::markdown::{self, Layout};

const JSON: &str = "report.json";
const CHARTS: &str = "charts";

/// Writes all files again.
pub fn save(report: &Report, directory: &Path) -> Result<()> {
    let markdown = markdown::whole(report, Layout { level: 2, charts: CHARTS });
    charts(report, &directory.join(CHARTS))?;
    write(&directory.join("report.md"), &markdown)?;
    let mut json = serde_json::to_string_pretty(report)?;
    json.push('\n');
    write(&directory.join(JSON), &json)
}

/// Whether `directory` has the report of an earlier run.
pub fn has(directory: &Path) -> bool {
    directory.join(JSON).exists()
}

/// The report of an earlier run.
pub fn load(directory: &Path) -> Result<Report> {
    let path = directory.join(JSON);
    let text = fs::read(&path).with_context(|| format!("cannot read {}: nothing was measured yet?", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("cannot use {}: it may be of another version", path.display()))
}

/// The charts of `report`, and no other, are in `directory` afterwards.
pub(super) fn charts(report: &Report, directory: &Path) -> Result<()> {
    let drawn: Vec<(String, String)> =
        report.scenarios.iter().filter_map(|section| Some((file(section), chart(section)?))).collect();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let kept = drawn.iter().any(|(name, _)| path.ends_with(name));
        if !kept && path.extension().is_some_and(|extension| extension == "svg") {
            fs::remove_file(path)?;
        }
    }
    drawn.iter().try_for_each(|(name, svg)| write(&directory.join(name), svg))
}

/// Whole or not at all, so that a run that is cut off leaves files that can be read.
pub(super) fn write(path: &Path, text: &str) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let staging = path.with_extension("new");
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(&staging, text))
        .and_then(|()| fs::rename(&staging, path))
        .with_context(|| format!("cannot write {}", path.display()))
}
