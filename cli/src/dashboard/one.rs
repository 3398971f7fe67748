//! The page of one cluster: the way to it, its traffic, its failures.

mod counts;

use std::collections::BTreeMap;

use api::cluster_name::ClusterName;

use super::board::{Notice, Snapshot};
use super::cells::{Cells, Rating};
use super::frame::{self, Frame, Server, dot};
use super::html::Html;
use super::inspection::{Inspection, hops};
use super::links::{Count, Links};
use super::overview::notices;
use super::traffic::History;
use super::words;
use crate::findings::Mark;
use crate::hops::{self, Hop};
use crate::trouble::{self, Trouble};

/// Markup by the id of its place in the page: what a page consists of, and what changes.
pub type Parts = BTreeMap<&'static str, Html>;

/// The places, in the order of the page, with their headings.
const PLACES: [(&str, &str); 5] = [
    ("way", "Path to the cluster"),
    ("traffic", "Traffic"),
    ("answers", "Answers"),
    ("facts", "Registration"),
    ("failures", "Recent failures"),
];

/// What is known of one cluster at one moment.
pub struct ClusterDetails<'a> {
    pub name: &'a ClusterName,
    pub snapshot: &'a Snapshot,
    /// `None`: it has not been inspected yet.
    pub inspection: Option<&'a Inspection>,
    pub history: &'a History,
}

/// The page.
pub fn page(name: &ClusterName, server: Server<'_>, parts: &Parts) -> String {
    let events = format!("{name}/events");
    let frame = Frame { title: name.as_str(), server, root: "../", events: &events };
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

// === impl ClusterDetails ===

impl ClusterDetails<'_> {
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
        self.cells().is_some_and(|cells| cells.is_tunnelled)
    }

    fn state(&self) -> Html {
        let mut html = Html::default();
        let Some(cells) = self.cells() else {
            html.raw("<span class=\"muted\">");
            html.raw(if self.snapshot.asked { "not registered</span>" } else { "asking the hub …</span>" });
            return html;
        };
        // The inspection is newer than the answers of all clusters.
        let (state, status) = match self.inspection {
            Some(Inspection { end: Some(end), .. }) => (Rating::Bad, format!("fails at the {}", end.hop.name())),
            _ => (cells.state, cells.status.to_owned()),
        };
        html.raw("<span class=\"pill ").raw(state.word()).raw("\">");
        dot(&mut html, state);
        html.text(&status).raw("</span>");
        // The reason for the failure is shown with the way.
        let reason = if status == cells.status { &*cells.reason } else { "" };
        for word in [reason, &cells.alias, &cells.version, &cells.labels].into_iter().filter(|word| !word.is_empty()) {
            html.raw(" <span class=\"muted\">").text(word).raw("</span>");
        }
        html
    }

    /// Notices about what the person may not see, and about the whole hub.
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
            let state = if step.mark == Mark::Good { Rating::Good } else { Rating::Warning };
            hop(&mut html, state, step.hop, &took, &step.told);
        }
        let Some(end) = &seen.end else {
            html.raw("</ol>");
            return html;
        };
        hop(&mut html, Rating::Bad, end.hop, "", "fails here");
        for unseen in hops(self.is_tunnelled()).into_iter().filter(|unseen| *unseen > end.hop) {
            hop(&mut html, Rating::Unknown, unseen, "", "not reached");
        }
        html.raw("</ol><p class=\"cause\">");
        html.text(&trouble::cause(&end.failure)).raw("</p>");
        let remedy = hops::remedy(end.hop, &end.failure, self.name.as_str());
        html.raw("<p class=\"remedy\">");
        words::prose(&mut html, &remedy);
        html.raw("</p>");
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

    fn nothing(&self, otherwise: &'static str) -> Html {
        let mut html = Html::default();
        let asks = self.inspection.is_none();
        html.raw("<p class=\"muted\">").raw(if asks { "Asking …" } else { otherwise }).raw("</p>");
        html
    }
}

fn hop(html: &mut Html, state: Rating, hop: Hop, took: &str, told: &str) {
    html.raw("<li class=\"").raw(state.word()).raw("\"><b>");
    dot(html, state);
    html.text(hop.name()).raw("</b><span class=\"took\">").text(took).raw("</span><span class=\"told\">").text(told);
    html.raw("</span></li>");
}

fn linked(links: &[Links]) -> String {
    let told = links.iter().map(|Links { server, count }| match count {
        Count::Of(links) => format!("{links} at {server}"),
        Count::Together => format!("not counted separately at {server}"),
        Count::Unanswered => format!("{server} does not answer"),
    });
    // Empty: tunnel-servers run elsewhere, or agents link to the gateway itself.
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
