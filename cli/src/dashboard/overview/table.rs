//! The table of clusters.

use crate::dashboard::board::Snapshot;
use crate::dashboard::cells::Cells;
use crate::dashboard::html::Html;

/// Columns: the heading, and classes. The first class is the key to sort by; `wide` means that the
/// column is hidden in a narrow window.
pub(super) const COLUMNS: [(&str, &str); 9] = [
    ("Name", "name"),
    ("Status", "status"),
    ("Version", "version wide"),
    ("Latency", "latency"),
    ("Reached", "reached wide"),
    ("Agents", "agents wide"),
    ("Credential", "credential wide"),
    ("Expires", "expires wide"),
    ("Labels, cause", "labels wide"),
];

pub(super) fn table(html: &mut Html, snapshot: &Snapshot) {
    html.raw(
        "<table id=\"clusters\" class=\"clusters\"><caption class=\"unseen\">The hub's clusters</caption><thead><tr>",
    );
    for (place, (name, class)) in COLUMNS.into_iter().enumerate() {
        html.raw("<th scope=\"col\" class=\"").text(class);
        html.raw(if place == 0 { "\" aria-sort=\"ascending\">" } else { "\">" });
        html.raw("<button type=\"button\" data-sort=\"").text(class.split(' ').next().unwrap_or_default()).raw("\">");
        html.text(name).raw("</button></th>");
    }
    html.raw("</tr></thead><tbody>");
    for (name, cells) in &snapshot.clusters {
        row(html, name, cells);
    }
    html.raw("</tbody></table><template id=\"new\">");
    row(html, "", &Cells::default());
    html.raw("</template>");
}

fn row(html: &mut Html, name: &str, cells: &Cells) {
    html.raw("<tr id=\"c-").text(name).raw("\" data-state=\"").text(cells.state.word()).raw("\">");
    html.raw("<th scope=\"row\">");
    link(html, name);
    html.raw(" ");
    field(html, "alias", &cells.alias);
    html.raw("</th><td><i class=\"dot\"></i>");
    field(html, "status", cells.status);
    html.raw("</td>");
    for (class, cell) in [
        ("version", &cells.version),
        ("latency", &cells.latency),
        ("reached", &cells.reached),
        ("agents", &cells.agents),
        ("credential", &cells.credential),
        ("expires", &cells.expires),
    ] {
        html.raw(if class == "latency" { "<td data-f=\"" } else { "<td class=\"wide\" data-f=\"" });
        html.text(class).raw("\">").text(cell).raw("</td>");
    }
    html.raw("<td class=\"wide why\"><div>");
    field(html, "labels", &cells.labels);
    html.raw(" ");
    field(html, "reason", &cells.reason);
    html.raw("</div></td></tr>");
}

/// Names of clusters need no escaping in a URL (RFC 1123 subdomains).
pub(super) fn link(html: &mut Html, name: &str) {
    html.raw("<a href=\"clusters/").text(name).raw("\">").text(name).raw("</a>");
}

pub(super) fn field(html: &mut Html, name: &'static str, words: &str) {
    html.raw("<span data-f=\"").raw(name).raw("\">").text(words).raw("</span>");
}
