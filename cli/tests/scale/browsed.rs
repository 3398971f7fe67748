//! The page of a thousand clusters in a real browser: it responds to a person, and stays live.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use kit::others::Moment;
use serde_json::Value;
use tokio::time::Instant;

use crate::chromium::{self, Chromium, Window};
use crate::{CLUSTERS, OwnHub};

/// Time limit for the page to respond to a key or a click, layout included. On two free cores, it
/// takes some 50 ms.
const ANSWER: Duration = Duration::from_secs(2);
/// Where the machine is slower than that: the limit, in times of what laying out all rows anew
/// takes in this browser. A page takes one to two times that; one that lays itself out for each
/// row, a thousand.
const LAYOUTS: u32 = 5;
/// How often that is measured.
const MEASURES: usize = 3;
/// Takes all rows out of the layout and puts them back.
const LAY_OUT: &str = "const all = document.getElementById('clusters'); all.style.display = 'none'; \
                       document.body.offsetHeight; all.style.display = '';";
const WINDOW: Window = Window { width: 1280, height: 720, dark: false };
/// The cluster that is forgotten while the page is open.
const FORGOTTEN: &str = "c-0500";
const SHOWN: &str = "[...document.querySelectorAll('#clusters [data-state]')].filter((row) => !row.hidden)";

/// A page whose answers are timed.
struct Page {
    browser: Chromium,
    /// The longest that a layout of all its rows took.
    layout: Duration,
}

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
    let mut page = Page::of(browser)?;
    let filtered = page.filter("c-0999", 1)?.max(page.filter("c-", CLUSTERS)?);
    let sorted = page.sort("status", None)?.max(page.sort("name", Some("c-0000"))?);
    let backwards = page.sort("name", Some("c-0999"))?;
    own.hub.forget_member(FORGOTTEN)?;
    page.browser.until(&format!("document.getElementById('c-{FORGOTTEN}') === null && window.kept"))?;
    page.browser.open(&format!("{url}?view=tiles"), &are(CLUSTERS - 1))?;
    let tiles = page.filter("c-00", 100)?;
    let complaints = page.browser.complaints()?;
    ensure!(complaints.is_empty(), "the console complains: {}", complaints.join("\n"));
    Ok(Some(format!(
        "in a browser: {opened:.1?} until live, layout {:.0?}, filter {filtered:.0?}, sort {:.0?}, tiles' filter \
         {tiles:.0?}",
        page.layout,
        sorted.max(backwards)
    )))
}

/// A condition in the page: it has `count` clusters.
fn are(count: usize) -> String {
    format!("document.querySelectorAll('#clusters [id^=c-c-]').length === {count}")
}

// === impl Page ===

impl Page {
    fn of(browser: Chromium) -> Result<Self> {
        let mut page = Self { browser, layout: Duration::ZERO };
        for _ in 0..MEASURES {
            page.layout = page.layout.max(page.busy(LAY_OUT)?);
        }
        Ok(page)
    }

    /// Types `words` into the filter, which `count` clusters pass.
    fn filter(&mut self, words: &str, count: usize) -> Result<Duration> {
        let words = Value::from(words);
        let took = self.timed(&format!(
            "const filter = document.getElementById('filter'); filter.value = {words}; \
             filter.dispatchEvent(new Event('input'));"
        ))?;
        let shown = self.browser.evaluate(&format!("{SHOWN}.length"))?;
        ensure!(shown == count, "{shown} of {words} are shown");
        Ok(took)
    }

    /// Clicks the head of a column. `first` is the cluster that must be on top then.
    fn sort(&mut self, by: &str, first: Option<&str>) -> Result<Duration> {
        let took = self.timed(&format!("document.querySelector('[data-sort={by}]').click();"))?;
        let top = self.browser.evaluate(&format!("{SHOWN}[0].id.slice(2)"))?;
        ensure!(first.is_none_or(|first| top == first), "by {by}, {top} comes first");
        Ok(took)
    }

    /// How long the page is busy with `script`. Fails if that is too long.
    fn timed(&mut self, script: &str) -> Result<Duration> {
        let before = Moment::now()?;
        let took = self.busy(script)?;
        let within = before.extended(ANSWER)?.max(self.layout * LAYOUTS);
        ensure!(took <= within, "{took:?} and not {within:?}, where a layout takes {:?}: {script}", self.layout);
        Ok(took)
    }

    /// How long the page is busy with `script` and with laying itself out afterwards.
    fn busy(&mut self, script: &str) -> Result<Duration> {
        let took = self.browser.evaluate(&format!(
            "{{ const begin = performance.now(); {script} document.body.offsetHeight; performance.now() - begin; }}"
        ))?;
        Ok(Duration::from_secs_f64(took.as_f64().context("a time")? / 1000.0))
    }
}
