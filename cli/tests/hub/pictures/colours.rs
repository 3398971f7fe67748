//! The page's light and dark colours, as the browser computes them.

use anyhow::{Result, ensure};

use super::WIDE;
use crate::chromium::{Chromium, Window};

/// Least contrast of text, and of the focus outline, to the background
/// (<https://www.w3.org/TR/WCAG22/#contrast-minimum>, `#non-text-contrast`).
const OF_TEXT: f64 = 4.5;
const OF_FOCUS: f64 = 3.0;

/// `[ground, focus, [[contrast, text], …], texts]`: how light the page is, the contrast of the
/// focus outline, the texts that are hard to read, and the number of all texts.
const LOOK: &str = "(() => { \
    const parts = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number); \
    const light = (colour) => { const [r, g, b] = parts(colour).map((part) => { const x = part / 255; \
        return x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; }; \
    const contrast = (a, b) => { const [x, y] = [light(a), light(b)]; return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05); }; \
    const behind = (it) => { for (; it; it = it.parentElement) { const colour = getComputedStyle(it).backgroundColor; \
        if ((parts(colour)[3] ?? 1) > 0) return colour; } return 'rgb(255, 255, 255)'; }; \
    const own = (it) => [...it.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()); \
    const texts = [...document.body.querySelectorAll('*')].filter((it) => it.checkVisibility() && own(it)); \
    const hard = texts.map((it) => [contrast(getComputedStyle(it).color, behind(it)), it.textContent.slice(0, 60)]) \
        .filter(([much]) => much < LEAST); \
    const link = document.querySelector('main a'); link.focus({ focusVisible: true }); \
    const focus = contrast(getComputedStyle(link).outlineColor, behind(link)); link.blur(); \
    return [light(behind(document.body)), focus, hard, texts.length]; })()";

/// Checks that everything can be read, in both.
pub fn readable(browser: &mut Chromium) -> Result<()> {
    for dark in [true, false] {
        browser.resize(Window { dark, ..WIDE })?;
        let look = browser.evaluate(&LOOK.replace("LEAST", &OF_TEXT.to_string()))?;
        let ground = look[0].as_f64().unwrap_or_default();
        ensure!(if dark { ground < 0.05 } else { ground > 0.8 }, "dark: {dark}, but the ground is {ground}");
        ensure!(look[1].as_f64() >= Some(OF_FOCUS), "dark: {dark}, and who sees the focus? {look}");
        let hard = look[2].as_array().map_or(1, Vec::len);
        ensure!(hard == 0 && look[3].as_u64() > Some(10), "dark: {dark}, and hard to read: {look}");
    }
    Ok(())
}
