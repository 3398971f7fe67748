//! The page of all clusters, as a table or as tiles.

mod table;

use std::collections::BTreeMap;

use self::table::{COLUMNS, field, link, table};
use super::board::{Notice, Patch, Snapshot};
use super::cells::{Cells, Rating};
use super::frame::{self, Frame, Server, dot};
use super::html::Html;
use super::words;

/// How the clusters are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Table,
    Tiles,
}

/// The page of `snapshot`.
pub fn page(snapshot: &Snapshot, view: View, server: Server<'_>) -> String {
    let frame = Frame { title: "Clusters", server, root: "", events: &format!("events?v={}", snapshot.version) };
    let mut html = frame.begin();
    html.raw("<main id=\"main\" tabindex=\"-1\"><div class=\"bar\"><h1>Clusters</h1>");
    counts(&mut html, snapshot);
    html.raw("<input type=\"search\" id=\"filter\" class=\"script\" ");
    html.raw("placeholder=\"Filter by name, label, status …\" ");
    html.raw(
        "aria-label=\"Show clusters with these words in name, alias, labels, status, version or cause\" \
         autocomplete=\"off\" spellcheck=\"false\">",
    );
    sorting(&mut html);
    views(&mut html, view);
    html.raw("</div><div id=\"notices\" role=\"status\">").part(&notices(&snapshot.notices)).raw("</div>");
    match view {
        View::Table => table(&mut html, snapshot),
        View::Tiles => tiles(&mut html, snapshot),
    }
    html.raw("<p id=\"none\" class=\"muted\"");
    html.raw(if snapshot.clusters.is_empty() { ">" } else { " hidden>" });
    html.text(if snapshot.asked { "No cluster to show." } else { "Asking the hub …" }).raw("</p></main>");
    frame::end(html)
}

/// The changes that make a page show `after`, whatever it shows now.
pub fn whole(after: &Snapshot) -> Patch {
    let mut parts = BTreeMap::from([("notices", notices(&after.notices))]);
    parts.extend(Rating::ALL.into_iter().zip(after.counts()).map(|(state, count)| (place(state), number(count))));
    Patch { whole: true, parts, ..after.since(&Snapshot::default()) }
}

/// The changes that make a page that shows `before` show `after`.
pub fn patch(before: &Snapshot, after: &Snapshot) -> Patch {
    let mut patch = after.since(before);
    let mut parts = BTreeMap::new();
    for ((state, count), before) in Rating::ALL.into_iter().zip(after.counts()).zip(before.counts()) {
        if count != before {
            parts.insert(place(state), number(count));
        }
    }
    if after.notices != before.notices {
        parts.insert("notices", notices(&after.notices));
    }
    patch.parts = parts;
    patch
}

fn number(count: usize) -> Html {
    let mut html = Html::default();
    html.text(&words::count(count as u64));
    html
}

/// The id of the place with the number of clusters in this state.
fn place(state: Rating) -> &'static str {
    match state {
        Rating::Bad => "count-bad",
        Rating::Warning => "count-warning",
        Rating::Good => "count-good",
        Rating::Unknown => "count-unknown",
    }
}

fn counts(html: &mut Html, snapshot: &Snapshot) {
    html.raw("<div class=\"counts\" role=\"group\" aria-label=\"Clusters by state\">");
    for (state, count) in Rating::ALL.into_iter().zip(snapshot.counts()) {
        html.raw("<button type=\"button\" aria-pressed=\"false\" data-show=\"").text(state.word()).raw("\">");
        dot(html, state);
        html.text(state.name()).raw(" <b id=\"").text(place(state)).raw("\">").text(&words::count(count as u64));
        html.raw("</b></button>");
    }
    html.raw("</div>");
}

/// The choice of what to sort by, for layouts without headings: tiles, and the table in a narrow
/// window.
fn sorting(html: &mut Html) {
    html.raw("<label id=\"sort\" class=\"script\">Sort by <select>");
    for (name, class) in COLUMNS {
        html.raw("<option value=\"").text(class.split(' ').next().unwrap_or_default()).raw("\">").text(name);
        html.raw("</option>");
    }
    html.raw("</select></label>");
}

fn views(html: &mut Html, view: View) {
    html.raw("<nav class=\"views\" aria-label=\"Layout\">");
    for (this, at, name) in [(View::Table, "./", "Table"), (View::Tiles, "?view=tiles", "Tiles")] {
        html.raw("<a href=\"").text(at).raw("\"");
        html.raw(if this == view { " aria-current=\"page\">" } else { ">" }).text(name).raw("</a>");
    }
    html.raw("</nav>");
}

/// Notices, which are above everything else.
pub fn notices(notices: &[Notice]) -> Html {
    let mut html = Html::default();
    for Notice { what, remedy } in notices {
        html.raw("<p class=\"notice\">");
        words::prose(&mut html, what);
        if !remedy.is_empty() {
            html.raw(" <span class=\"remedy\">");
            words::prose(&mut html, remedy);
            html.raw("</span>");
        }
        html.raw("</p>");
    }
    html
}

fn tiles(html: &mut Html, snapshot: &Snapshot) {
    html.raw("<ul id=\"clusters\" class=\"tiles\">");
    for (name, cells) in &snapshot.clusters {
        tile(html, name, cells);
    }
    html.raw("</ul><template id=\"new\">");
    tile(html, "", &Cells::default());
    html.raw("</template>");
}

fn tile(html: &mut Html, name: &str, cells: &Cells) {
    html.raw("<li id=\"c-")
        .text(name)
        .raw("\" data-state=\"")
        .text(cells.state.word())
        .raw("\"><h2><i class=\"dot\"></i>");
    link(html, name);
    html.raw(" ");
    field(html, "alias", &cells.alias);
    html.raw("</h2><p>");
    for (name, words) in [("status", cells.status), ("latency", &cells.latency), ("version", &cells.version)] {
        field(html, name, words);
    }
    html.raw("</p><p class=\"why\">");
    for (name, words) in [("reason", &cells.reason), ("reached", &cells.reached), ("labels", &cells.labels)] {
        field(html, name, words);
    }
    html.raw("</p></li>");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const EVIL: &str = "<script>alert(1)</script>\" onclick='x'";

    fn snapshot() -> Snapshot {
        let words = || EVIL.to_owned();
        let cells = Cells {
            state: Rating::Bad,
            status: "Failed",
            version: words(),
            latency: words(),
            reached: words(),
            agents: words(),
            credential: words(),
            expires: words(),
            alias: words(),
            labels: words(),
            reason: words(),
            ..Cells::default()
        };
        let notice = Notice { what: words(), remedy: words() };
        let clusters = [("berlin".to_owned(), Arc::new(cells))].into();
        Snapshot { version: 3, clusters, notices: vec![notice], asked: true }
    }

    #[test]
    fn what_clusters_say_is_no_markup() {
        for view in [View::Table, View::Tiles] {
            let page = page(&snapshot(), view, Server { hub: EVIL, seal: "s" });
            assert!(
                page.contains("&lt;script&gt;") && !page.contains("<script>") && !page.contains("' onclick"),
                "{page}"
            );
            assert!(page.contains("events?v=3") && page.contains("clusters/berlin"), "{page}");
        }
        let patch = patch(&Snapshot::default(), &snapshot());
        assert!(!patch.parts["notices"].as_str().contains("<script>"), "{patch:?}");
        assert_eq!(patch.parts["count-bad"].as_str(), "1");
    }

    #[test]
    fn a_page_says_what_its_parts_are() {
        let page = page(&snapshot(), View::Table, Server { hub: "it", seal: "s" });
        for expected in [
            "<html lang=\"en\">",
            "<main id=\"main\"",
            "<caption",
            "scope=\"col\"",
            "scope=\"row\"",
            "aria-sort=\"ascending\"",
            "href=\"#main\"",
            "aria-current=\"page\">Table",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
    }

    #[test]
    fn a_page_of_long_ago_is_told_everything() {
        let now = Snapshot { notices: Vec::new(), ..snapshot() };
        let patch = whole(&now);
        assert!(patch.whole && patch.clusters.len() == 1, "{patch:?}");
        let parts: Vec<_> = patch.parts.iter().map(|(id, html)| (*id, html.as_str())).collect();
        let counts = [("count-bad", "1"), ("count-good", "0"), ("count-unknown", "0"), ("count-warning", "0")];
        assert_eq!(parts, [&counts[..], &[("notices", "")]].concat(), "old counts and notices go");
    }

    #[test]
    fn counts_are_sent_when_they_change() {
        let after = snapshot();
        assert!(patch(&after, &after).is_empty());
        let mut before = after.clone();
        before.clusters.clear();
        assert_eq!(patch(&before, &after).parts.keys().copied().collect::<Vec<_>>(), ["count-bad"]);
    }
}
