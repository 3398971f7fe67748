//! The page, used without a mouse.

use anyhow::{Result, ensure};
use serde_json::Value;

use super::CITIES;
use crate::chromium::Chromium;

/// Most presses of a key: more than the page has places for the focus.
const MOST: usize = 60;
/// What has the focus, and whether that is visible.
const FOCUSED: &str = "(() => { const it = document.activeElement, style = getComputedStyle(it), \
    box = it.getBoundingClientRect(); return { \
    row: it.closest('[data-state]')?.id ?? '', skip: it.className === 'skip', home: it.className === 'home', name: it.textContent, \
    seen: style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 2 && box.width > 0 && \
          box.bottom > 0 && box.top < innerHeight }; })()";
/// The clusters that are shown, from the top.
const SHOWN: &str =
    "[...document.querySelectorAll('#clusters [data-state]')].filter((row) => !row.hidden).map((row) => row.id)";

fn tab(browser: &mut Chromium) -> Result<Value> {
    browser.press("Tab", 9)?;
    let focused = browser.evaluate(FOCUSED)?;
    ensure!(focused["seen"] == true, "nobody sees where she is: {focused}");
    Ok(focused)
}

/// Without a mouse, a person gets to the clusters at once, to each of them, and into one and back,
/// and always sees the focus.
pub fn walk(browser: &mut Chromium) -> Result<()> {
    // From the beginning of the page, whatever had the focus before.
    browser.evaluate(
        "{ const begin = document.createElement('i'); begin.tabIndex = -1; document.body.prepend(begin); \
         begin.focus(); begin.remove(); window.scrollTo(0, 0); }",
    )?;
    ensure!(tab(browser)?["skip"] == true, "what is skipped comes first");
    browser.press("Enter", 13)?;
    browser.until("document.activeElement.id === 'main'")?;
    let shown = browser.evaluate(SHOWN)?;
    let mut reached = Vec::new();
    for _ in 0..MOST {
        let row = tab(browser)?["row"].take();
        if row != "" {
            reached.push(row);
        }
        if reached.len() == CITIES.len() {
            break;
        }
    }
    ensure!(Value::from(reached.clone()) == shown, "{reached:?} of {shown}");
    let last = reached.last().and_then(Value::as_str).unwrap_or_default().trim_start_matches("c-").to_owned();
    browser.press("Enter", 13)?;
    let live = "document.getElementById('live').textContent === 'live'";
    browser.until(&format!("location.pathname.endsWith('/clusters/{last}') && {live}"))?;
    // Goes back with the page itself, whose first link is home, and with the browser.
    for back in ["the page", "the browser"] {
        if back == "the page" {
            tab(browser)?;
            let home = tab(browser)?;
            ensure!(home["home"] == true, "not the way home: {home}");
            browser.press("Enter", 13)?;
        } else {
            // To the cluster, and from there to the page that it was opened from.
            browser.evaluate("history.back()")?;
            browser.until(&format!("location.pathname.endsWith('/clusters/{last}') && {live}"))?;
            browser.evaluate("history.back()")?;
            browser.until(&format!("!location.pathname.endsWith('/clusters/{last}')"))?;
        }
        browser.until(&format!("document.getElementById('c-{last}') !== null && {live}"))?;
    }
    filtered(browser, &last)
}

/// Words typed into the filter select clusters, and Escape clears the filter.
fn filtered(browser: &mut Chromium, name: &str) -> Result<()> {
    browser.evaluate("document.getElementById('filter').focus()")?;
    browser.call("Input.insertText", &serde_json::json!({"text": name}))?;
    browser.until(&format!("{SHOWN}.join() === 'c-{name}'"))?;
    browser.press("Escape", 27)?;
    browser.until(&format!("document.getElementById('filter').value === '' && {SHOWN}.length >= {}", CITIES.len()))
}
