//! The page of a thousand clusters in a real browser: it responds to a person, and stays live.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kit::others::Moment;
use serde_json::Value;
use tokio::time::Instant;

use crate::chromium::{self, Chromium, Window};
use crate::{CLUSTERS, OwnHub, beside};

/// Time limit for the page to respond to a key or a click, layout included. On two free cores, it
/// takes some 50 ms.
const ANSWER: Duration = Duration::from_secs(2);
const WINDOW: Window = Window { width: 1280, height: 720, dark: false };
/// The cluster that is forgotten while the page is open.
const FORGOTTEN: &str = "c-0500";
const SHOWN: &str = "[...document.querySelectorAll('#clusters [data-state]')].filter((row) => !row.hidden)";

/// The times that a person waits for. `None`: there is no browser here.
pub fn times(own: &OwnHub, url: &str) -> Result<Option<String>> {
    let Some(program) = chromium::find() else { return Ok(None) };
    let mut browser = Chromium::start(program, &own.directory("chromium")?)?;
    browser.resize(WINDOW)?;
    let opening = Instant::now();
    browser.open(url, &are(CLUSTERS))?;
    browser.until("document.getElementById('live').textContent === 'live'")?;
    let opened = opening.elapsed();
    browser.evaluate("window.kept = true")?;
    let filtered = filter(&mut browser, "c-0999", 1)?.max(filter(&mut browser, "c-", CLUSTERS)?);
    let sorted = sort(&mut browser, "status", None)?.max(sort(&mut browser, "name", Some("c-0000"))?);
    let backwards = sort(&mut browser, "name", Some("c-0999"))?;
    own.hub.forget_member(FORGOTTEN)?;
    browser.until(&format!("document.getElementById('c-{FORGOTTEN}') === null && window.kept"))?;
    browser.open(&format!("{url}?view=tiles"), &are(CLUSTERS - 1))?;
    let tiles = filter(&mut browser, "c-00", 100)?;
    let complaints = browser.complaints()?;
    ensure!(complaints.is_empty(), "the console complains: {}", complaints.join("\n"));
    Ok(Some(format!(
        "in a browser: {opened:.1?} until live, filter {filtered:.0?}, sort {:.0?}, tiles' filter {tiles:.0?}",
        sorted.max(backwards)
    )))
}

/// A condition in the page: it has `count` clusters.
fn are(count: usize) -> String {
    format!("document.querySelectorAll('#clusters [id^=c-c-]').length === {count}")
}

/// Types `words` into the filter, which `count` clusters pass.
fn filter(browser: &mut Chromium, words: &str, count: usize) -> Result<Duration> {
    let words = Value::from(words);
    let took = timed(
        browser,
        &format!(
            "const filter = document.getElementById('filter'); filter.value = {words}; \
             filter.dispatchEvent(new Event('input'));"
        ),
    )?;
    let shown = browser.evaluate(&format!("{SHOWN}.length"))?;
    ensure!(shown == count, "{shown} of {words} are shown");
    Ok(took)
}

/// Clicks the head of a column. `first` is the cluster that must be on top then.
fn sort(browser: &mut Chromium, by: &str, first: Option<&str>) -> Result<Duration> {
    let took = timed(browser, &format!("document.querySelector('[data-sort={by}]').click();"))?;
    let top = browser.evaluate(&format!("{SHOWN}[0].id.slice(2)"))?;
    ensure!(first.is_none_or(|first| top == first), "by {by}, {top} comes first");
    Ok(took)
}

/// How long the page is busy with `script` and with laying itself out afterwards. Fails if that is
/// too long.
fn timed(browser: &mut Chromium, script: &str) -> Result<Duration> {
    let before = Moment::now()?;
    let took = browser.evaluate(&format!(
        "{{ const begin = performance.now(); {script} document.body.offsetHeight; performance.now() - begin; }}"
    ))?;
    let took = Duration::from_secs_f64(took.as_f64().context("a time")? / 1000.0);
    let others = before.others()?;
    ensure!(
        took <= beside(others, ANSWER),
        "{took:?} with {:.0} % of the machine for others: {script}",
        100.0 * others
    );
    Ok(took)
}
