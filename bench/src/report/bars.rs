//! A bar for each target: the median of the scenario's first figure, with the spread as a thin line
//! over its end.

use super::number::number;
use super::svg::{Anchor, Fill, Picture};
use super::{Row, Section};
use crate::figure::{Bound, DIRECT, is_peer};
use crate::statistics::Summary;

const WIDTH: f64 = 760.0;
const LABELS: f64 = 190.0;
/// Room for the number behind the longest bar.
const NUMBERS: f64 = 90.0;
const ROW: f64 = 26.0;
const BAR: f64 = 16.0;
const HEAD: f64 = 34.0;

pub(super) fn chart(section: &Section) -> Option<String> {
    let figure = section.main_figure()?;
    let summary = |row: &Row| row.summaries.get(&figure.key).copied();
    let rows: Vec<(&str, Summary)> =
        section.targets.iter().filter_map(|row| Some((row.target.as_str(), summary(row)?))).collect();
    let highest = rows.iter().map(|(_, summary)| summary.highest).fold(0.0, f64::max);
    if rows.is_empty() || highest <= 0.0 {
        return None;
    }
    let scale = (WIDTH - LABELS - NUMBERS) / highest;
    #[expect(clippy::cast_precision_loss, reason = "a handful of rows")]
    let height = HEAD + ROW * rows.len() as f64 + 6.0;
    let mut picture = Picture::new(WIDTH, height);
    let heading = format!("{}{}", figure.title, better(section));
    picture.strong(LABELS, 18.0, Anchor::Start, &heading);
    let mut y = HEAD;
    for (target, summary) in rows {
        bar(&mut picture, y, target, &summary, scale, figure.digits);
        y += ROW;
    }
    Some(picture.finish(&format!("{}: {}", section.title, figure.title)))
}

fn bar(picture: &mut Picture, y: f64, target: &str, summary: &Summary, scale: f64, digits: usize) {
    let middle = y + BAR / 2.0;
    let base = middle + 4.5; // of words beside the bar
    let ours = target != DIRECT && !is_peer(target);
    if ours {
        picture.strong(LABELS - 10.0, base, Anchor::End, target);
    } else {
        picture.words(LABELS - 10.0, base, Anchor::End, target);
    }
    let fill = match target {
        DIRECT => Fill::None,
        _ if ours => Fill::Ours,
        _ => Fill::Other,
    };
    let end = |value: f64| LABELS + value.max(0.0) * scale;
    picture.bar(LABELS, y, (end(summary.median) - LABELS).max(1.0), BAR, fill);
    if summary.rounds > 1 {
        picture.line((end(summary.lowest), middle), (end(summary.highest), middle), "spread");
    }
    picture.words(end(summary.highest) + 8.0, base, Anchor::Start, &number(summary.median, digits));
}

/// Whether more or less is better, as the goals have it.
fn better(section: &Section) -> &'static str {
    let title = section.main_figure().map(|figure| &figure.title);
    let goals = section.goals.iter().filter(|verdict| Some(&verdict.figure) == title);
    match goals.filter_map(|verdict| verdict.must.or(verdict.aim)).map(|judged| judged.bound).next() {
        Some(Bound::AtMost(_)) => ", less is better",
        Some(Bound::AtLeast(_)) => ", more is better",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use crate::figure::{DIRECT, GO, NGINX, OURS};
    use crate::report::svg::tests::elements;
    use crate::report::tests::section;
    use crate::run::fake::Act;

    #[test]
    fn each_measured_target_has_a_bar_and_whats_missing_has_none() {
        let section = section([
            (DIRECT, Act::Measure(1.0)),
            (OURS, Act::Measure(16.0)),
            (GO, Act::Measure(290.0)),
            (NGINX, Act::Skip("not here")),
        ]);
        let svg = super::chart(&section).unwrap();
        assert_eq!(elements(&svg).iter().filter(|name| *name == "rect").count(), 3);
        assert_eq!(svg.matches(r#"class="ours""#).count(), 1);
        assert!(svg.contains(">290.0<") && !svg.contains("nginx"), "{svg}");
    }

    #[test]
    fn without_figures_there_is_no_chart() {
        assert_eq!(super::chart(&section([(NGINX, Act::Skip("not here"))])), None);
        assert_eq!(super::chart(&section([(OURS, Act::Measure(0.0))])), None);
    }
}
