//! One cluster: the way to it, its traffic, its failures.

use std::collections::BTreeMap;

use api::cluster_name::ClusterName;

use super::board::{Notice, Snapshot};
use super::cells::{Cells, State};
use super::chart;
use super::frame::{self, Frame, dot};
use super::html::Html;
use super::inspection::{Inspection, hops};
use super::links::Links;
use super::overview::notices;
use super::traffic::{History, Sum};
use super::words;
use crate::hops::{self, Hop};
use crate::trouble::{self, Trouble};

/// Markup by the place where it goes: what a page is made of, and what changes.
pub type Parts = BTreeMap<&'static str, Html>;

/// The places, in the order of the page, with their headings.
const PLACES: [(&str, &str); 5] = [
    ("way", "The way to it"),
    ("traffic", "Traffic"),
    ("answers", "Answers"),
    ("facts", "Registration"),
    ("failures", "Recent failures"),
];

/// What is known of one cluster at one moment.
pub struct Known<'a> {
    pub name: &'a ClusterName,
    pub snapshot: &'a Snapshot,
    /// `None`: it has not been looked at yet.
    pub inspection: Option<&'a Inspection>,
    pub history: &'a History,
}

/// The page.
pub fn page(name: &ClusterName, hub: &str, parts: &Parts) -> String {
    let events = format!("{name}/events");
    let frame = Frame { title: name.as_str(), hub, root: "../", events: &events };
    let mut html = frame.begin();
    html.raw("<main id=\"main\" tabindex=\"-1\"><div class=\"bar\"><nav aria-label=\"Breadcrumb\">");
    html.raw("<a href=\"../\">Clusters</a> <span aria-hidden=\"true\">/</span></nav><h1>")
        .text(name.as_str())
        .raw("</h1>");
    place(&mut html, "state", parts);
    html.raw("</div>");
    place(&mut html, "notices", parts);
    html.raw("<div class=\"parts\">");
    for (id, heading) in PLACES {
        html.raw("<section class=\"")
            .raw(id)
            .raw("\" aria-labelledby=\"h-")
            .raw(id)
            .raw("\"><h2 id=\"h-")
            .raw(id)
            .raw("\">");
        html.raw(heading).raw("</h2>");
        place(&mut html, id, parts);
        html.raw("</section>");
    }
    html.raw("</div></main>");
    frame::end(html)
}

fn place(html: &mut Html, id: &'static str, parts: &Parts) {
    html.raw("<div id=\"").raw(id).raw(if matches!(id, "state" | "notices") { "\" role=\"status\">" } else { "\">" });
    if let Some(part) = parts.get(id) {
        html.part(part);
    }
    html.raw("</div>");
}

// === impl Known ===

impl Known<'_> {
    pub fn parts(&self) -> Parts {
        Parts::from([
            ("state", self.state()),
            ("notices", self.notices()),
            ("way", self.way()),
            ("traffic", self.traffic()),
            ("answers", self.answers()),
            ("facts", self.facts()),
            ("failures", self.failures()),
        ])
    }

    fn cells(&self) -> Option<&Cells> {
        self.snapshot.clusters.get(self.name.as_str()).map(|cells| &**cells)
    }

    fn is_tunnelled(&self) -> bool {
        self.cells().is_some_and(|cells| cells.reached == "tunnel")
    }

    fn state(&self) -> Html {
        let mut html = Html::default();
        let Some(cells) = self.cells() else {
            html.raw("<span class=\"muted\">");
            html.raw(if self.snapshot.asked { "not registered</span>" } else { "asking the hub …</span>" });
            return html;
        };
        // What was just seen is newer than what all clusters were asked for.
        let (state, status) = match self.inspection {
            Some(Inspection { end: Some(end), .. }) => (State::Bad, format!("fails at the {}", end.hop.name())),
            _ => (cells.state, cells.status.to_owned()),
        };
        html.raw("<span class=\"pill ").raw(state.word()).raw("\">");
        dot(&mut html, state);
        html.text(&status).raw("</span>");
        for word in [&cells.alias, &cells.version, &cells.labels].into_iter().filter(|word| !word.is_empty()) {
            html.raw(" <span class=\"muted\">").text(word).raw("</span>");
        }
        html
    }

    /// What the person may not see, and what happens to the whole hub.
    fn notices(&self) -> Html {
        let mut all = self.snapshot.notices.clone();
        let untold = |what: &str, trouble: &Trouble| Notice {
            what: format!("{what} not shown: {}", trouble.what),
            remedy: trouble.remedy.clone(),
        };
        if let Some(Inspection { traffic, links, .. }) = self.inspection {
            all.extend(traffic.as_ref().err().map(|trouble| untold("Traffic and failures are", trouble)));
            let links = links.as_ref().and_then(|links| links.as_ref().err());
            all.extend(links.map(|trouble| untold("Links of its agents are", trouble)));
        }
        notices(&all)
    }

    fn way(&self) -> Html {
        let mut html = Html::default();
        html.raw("<ol class=\"hops\">");
        let Some(seen) = self.inspection else {
            for hop in hops(self.is_tunnelled()) {
                html.raw("<li class=\"unknown\"><b>")
                    .text(hop.name())
                    .raw("</b> <span class=\"muted\">asking …</span></li>");
            }
            html.raw("</ol>");
            return html;
        };
        for step in &seen.steps {
            let took = step.took.map(words::took).unwrap_or_default();
            hop(&mut html, State::Good, step.hop, &took, &step.told);
        }
        let Some(end) = &seen.end else {
            html.raw("</ol>");
            return html;
        };
        hop(&mut html, State::Bad, end.hop, "", "the way ends here");
        for unseen in hops(self.is_tunnelled()).into_iter().filter(|unseen| *unseen > end.hop) {
            hop(&mut html, State::Unknown, unseen, "", "not reached");
        }
        html.raw("</ol><p class=\"cause\">");
        html.text(&trouble::cause(&end.failure)).raw("</p>");
        let remedy = hops::remedy(&end.failure, self.name.as_str());
        html.raw("<p class=\"remedy\">");
        words::prose(&mut html, &remedy);
        html.raw("</p>");
        html
    }

    fn sum(&self) -> Option<Sum> {
        self.history.sum()
    }

    fn traffic(&self) -> Html {
        let mut html = Html::default();
        let Some(sum) = self.sum() else { return self.nothing("No count yet.") };
        let now = self.history.points().last();
        html.raw("<dl class=\"figures\">");
        let figures = [
            ("requests / s", now.map_or_else(|| "…".to_owned(), |now| words::rate(now.requests))),
            ("5xx / s", now.map_or_else(|| "…".to_owned(), |now| words::rate(now.errors))),
            ("median", now.map_or_else(|| "…".to_owned(), |now| words::millis(now.median))),
            ("99 %", now.map_or_else(|| "…".to_owned(), |now| words::millis(now.slowest))),
            ("under way", words::count(positive(sum.in_flight - sum.streams))),
            ("open watches", words::count(positive(sum.streams))),
            ("exec, port-forward", words::count(positive(sum.upgrades))),
            ("connections", words::count(positive(sum.connections))),
        ];
        for (name, figure) in figures {
            html.raw("<div><dt>").raw(name).raw("</dt><dd>").text(&figure).raw("</dd></div>");
        }
        html.raw("</dl>");
        html.part(&chart::lines(&self.history.points()));
        if sum.circuit_open {
            html.raw("<p class=\"cause\">The last dials failed: the gateway does not dial it for a moment.</p>");
        }
        html.raw("<p class=\"muted\">Counted by ").text(&sum.replicas.join(", "));
        html.raw(". The questions of this page are among them.</p>");
        html
    }

    fn answers(&self) -> Html {
        let Some(sum) = self.sum() else { return self.nothing("No count yet.") };
        let mut html = Html::default();
        let codes = sum.codes.iter().map(|(code, count)| (meaning(*code), code.to_string(), *count));
        tally(&mut html, "Answers by code", ["Code", "Answers"], codes.collect());
        let sides = sum.sides.iter().map(|(side, count)| (side.clone(), String::new(), *count));
        let sides: Vec<_> = sides.collect();
        if sides.is_empty() {
            html.raw("<p class=\"muted\">The gateway answered none with a failure of its own.</p>");
        } else {
            tally(&mut html, "Failures by side", ["Side that failed", "Failures"], sides);
        }
        html
    }

    fn facts(&self) -> Html {
        let Some(cells) = self.cells() else { return self.nothing("Not known yet.") };
        let mut html = Html::default();
        let links = self.inspection.and_then(|seen| seen.links.as_ref()?.as_ref().ok());
        let facts = [
            ("Endpoint", cells.endpoint.clone()),
            ("Reached", cells.reached.clone()),
            ("Credential", cells.credential.clone()),
            ("Expires", cells.expires.clone()),
            ("Agents ready", cells.agents.clone()),
            ("Links", links.map(|links| linked(links)).unwrap_or_default()),
        ];
        html.raw("<dl class=\"facts\">");
        for (name, fact) in facts {
            if !fact.is_empty() {
                html.raw("<dt>").raw(name).raw("</dt><dd>").text(&fact).raw("</dd>");
            }
        }
        html.raw("</dl>");
        html
    }

    fn failures(&self) -> Html {
        let Some(sum) = self.sum() else { return self.nothing("No failure is known yet.") };
        let mut html = Html::default();
        if sum.failures.is_empty() {
            return self.nothing("None since the gateway counts.");
        }
        html.raw("<table><caption class=\"unseen\">Recent failures, newest first</caption><thead><tr>");
        for name in ["Time", "Side", "Code", "Who asked for what", "Cause"] {
            html.raw("<th scope=\"col\">").raw(name).raw("</th>");
        }
        html.raw("</tr></thead><tbody>");
        for failure in &sum.failures {
            html.raw("<tr><td>");
            words::moment(&mut html, failure.time);
            html.raw("</td><td>")
                .text(&failure.side)
                .raw("</td><td>")
                .text(&failure.code.to_string())
                .raw("</td><td><b>");
            html.text(&failure.verb).raw(" ").text(&failure.resource).raw("</b> <span class=\"muted\">");
            html.text(&failure.user).raw("</span></td><td>").text(&failure.text);
            if failure.untold > 0 {
                html.raw(" <span class=\"muted\">and ").text(&words::count(failure.untold)).raw(" before it</span>");
            }
            html.raw("</td></tr>");
        }
        html.raw("</tbody></table>");
        html
    }

    fn nothing(&self, otherwise: &'static str) -> Html {
        let mut html = Html::default();
        let asks = self.inspection.is_none();
        html.raw("<p class=\"muted\">").raw(if asks { "Asking …" } else { otherwise }).raw("</p>");
        html
    }
}

fn hop(html: &mut Html, state: State, hop: Hop, took: &str, told: &str) {
    html.raw("<li class=\"").raw(state.word()).raw("\"><b>");
    dot(html, state);
    html.text(hop.name()).raw("</b><span class=\"took\">").text(took).raw("</span><span class=\"told\">").text(told);
    html.raw("</span></li>");
}

/// A table of counts with bars as long as their parts of the largest.
fn tally(html: &mut Html, caption: &'static str, heads: [&'static str; 2], rows: Vec<(String, String, u64)>) {
    let most = rows.iter().map(|(_, _, count)| *count).max().unwrap_or(1).max(1);
    html.raw("<table class=\"tally\"><caption class=\"unseen\">").raw(caption).raw("</caption><thead><tr>");
    for name in heads {
        html.raw("<th scope=\"col\">").raw(name).raw("</th>");
    }
    html.raw("</tr></thead><tbody>");
    for (name, code, count) in rows {
        html.raw("<tr><th scope=\"row\">");
        if !code.is_empty() {
            html.raw("<b>").text(&code).raw("</b> ");
        }
        html.text(&name).raw("</th><td>").text(&words::count(count));
        html.part(&chart::bar(count, most)).raw("</td></tr>");
    }
    html.raw("</tbody></table>");
}

fn meaning(code: u16) -> String {
    // nginx's convention, as in metrics.
    if code == 499 {
        return "Client left".to_owned();
    }
    let known = http::StatusCode::from_u16(code).ok();
    known.and_then(|code| code.canonical_reason()).unwrap_or_default().to_owned()
}

fn linked(links: &[Links]) -> String {
    let told = links.iter().map(|Links { server, links }| match links {
        Some(links) => format!("{links} at {server}"),
        None => format!("{server} does not answer"),
    });
    let told: Vec<_> = told.collect();
    if told.is_empty() { "no tunnel-server runs in the gateway's namespace".to_owned() } else { told.join(", ") }
}

fn positive(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests;
