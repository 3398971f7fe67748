//! What the gateway counted for one cluster: traffic, answers, failures.

use super::ClusterDetails;
use crate::dashboard::chart;
use crate::dashboard::html::Html;
use crate::dashboard::traffic::Sum;
use crate::dashboard::words;

// === impl ClusterDetails ===

impl ClusterDetails<'_> {
    fn sum(&self) -> Option<Sum> {
        self.history.sum()
    }

    pub(super) fn traffic(&self) -> Html {
        let mut html = Html::default();
        let Some(sum) = self.sum() else { return self.nothing("No count yet.") };
        let now = self.history.points().last();
        html.raw("<dl class=\"figures\">");
        let figures = [
            ("requests / s", now.map_or_else(|| "…".to_owned(), |now| words::rate(now.requests))),
            ("5xx / s", now.map_or_else(|| "…".to_owned(), |now| words::rate(now.errors))),
            ("median", now.map_or_else(|| "…".to_owned(), |now| words::millis(now.median))),
            ("99 %", now.map_or_else(|| "…".to_owned(), |now| words::millis(now.slowest))),
            ("in flight", words::count(positive(sum.in_flight - sum.streams))),
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
            html.raw("<p class=\"cause\">The last dials failed: the gateway has paused dials to it.</p>");
        }
        html.raw("<p class=\"muted\">Counted by ").text(&sum.replicas.join(", "));
        html.raw(". Requests of this page are included.</p>");
        html
    }

    pub(super) fn answers(&self) -> Html {
        let Some(sum) = self.sum() else { return self.nothing("No count yet.") };
        let mut html = Html::default();
        let codes = sum.codes.iter().map(|(code, count)| (meaning(*code), code.to_string(), *count));
        tally(&mut html, "Answers by code", ["Code", "Answers"], codes.collect());
        let sides = sum.sides.iter().map(|(side, count)| (side.clone(), String::new(), *count));
        let sides: Vec<_> = sides.collect();
        if sides.is_empty() {
            html.raw("<p class=\"muted\">The gateway answered none with its own error.</p>");
        } else {
            tally(&mut html, "Failures by side", ["Side that failed", "Failures"], sides);
        }
        html
    }

    pub(super) fn failures(&self) -> Html {
        let Some(sum) = self.sum() else { return self.nothing("No failure is known yet.") };
        let mut html = Html::default();
        if sum.failures.is_empty() {
            return self.nothing("None since the gateway started counting.");
        }
        html.raw("<table><caption class=\"unseen\">Recent failures, newest first</caption><thead><tr>");
        for name in ["Time", "Side", "Code", "Request and user", "Cause"] {
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
            if failure.suppressed > 0 {
                html.raw(" <span class=\"muted\">and ")
                    .text(&words::count(failure.suppressed))
                    .raw(" before it</span>");
            }
            html.raw("</td></tr>");
        }
        html.raw("</tbody></table>");
        html
    }
}

/// A table of counts, with bars whose lengths are relative to the largest.
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

fn positive(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
