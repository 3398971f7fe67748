//! What all pages have in common.

use super::cells::Rating;
use super::html::Html;

/// The hub that a page shows, and the seal of its program.
#[derive(Clone, Copy)]
pub struct Server<'a> {
    /// Name of the hub's context.
    pub hub: &'a str,
    /// The seal that the page's streams begin with.
    pub seal: &'a str,
}

/// What surrounds the main part of a page.
pub struct Frame<'a> {
    pub title: &'a str,
    pub server: Server<'a>,
    /// Relative path to the first page, as in `../`.
    pub root: &'static str,
    /// URL of the stream of its changes.
    pub events: &'a str,
}

// === impl Frame ===

impl Frame<'_> {
    /// Everything before the main part.
    pub fn begin(&self) -> Html {
        let Self { title, server: Server { hub, seal }, root, events } = *self;
        let mut html = Html::default();
        html.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
        html.text(title).raw(" · ").text(hub).raw("</title>");
        html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
        html.raw("<meta name=\"color-scheme\" content=\"light dark\">");
        html.raw("<link rel=\"stylesheet\" href=\"").raw(root).raw("page.css\">");
        html.raw("<link rel=\"icon\" href=\"").raw(root).raw("icon.svg\">");
        html.raw("<script src=\"").raw(root).raw("page.js\" defer></script></head>");
        html.raw("<body data-events=\"").text(events).raw("\" data-seal=\"").text(seal).raw("\">");
        html.raw("<a class=\"skip\" href=\"#main\">Skip to the content</a>");
        html.raw("<header><a class=\"home\" href=\"").raw(if root.is_empty() { "./" } else { root });
        html.raw("\">kubectl clusters</a><span class=\"hub\">hub <b>").text(hub).raw("</b></span>");
        html.raw("<span id=\"live\" role=\"status\">as of when this page was opened</span></header>");
        html
    }
}

/// Completes the page.
pub fn end(mut html: Html) -> String {
    html.raw("<p id=\"said\" class=\"unseen\" role=\"status\" aria-live=\"polite\"></p></body></html>\n");
    html.into_string()
}

/// A state as colour and shape. Its word is next to it.
pub fn dot(html: &mut Html, state: Rating) {
    html.raw("<i class=\"dot ").raw(state.word()).raw("\"></i>");
}
