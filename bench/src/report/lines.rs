//! How the first figure grows with something: its targets as points of lines.

use super::number::number;
use super::svg::{Anchor, COLOURS, Picture, marks};
use super::{Axis, Column, Line, Section};
use crate::statistics::Summary;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
/// Room for the lines' titles.
const RIGHT: f64 = 220.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 48.0;
/// A place this many times another one needs a logarithmic axis.
const WIDE: f64 = 50.0;
/// Distance between titles of lines that end close to each other.
const TITLE: f64 = 16.0;

/// Maps places and values to pixels.
struct Scale {
    first: f64,
    last: f64,
    logarithmic: bool,
    top: f64,
}

/// A line with its measurements.
struct Drawn<'a> {
    title: &'a str,
    points: Vec<(f64, Summary)>,
}

pub(super) fn chart(section: &Section, axis: &Axis) -> Option<String> {
    let figure = section.main_figure()?;
    let lines: Vec<Drawn<'_>> = axis.lines.iter().filter_map(|line| drawn(section, figure, line)).collect();
    let points = || lines.iter().flat_map(|line| &line.points);
    let mut places: Vec<f64> = points().map(|(place, _)| *place).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let marks = marks(points().map(|(_, summary)| summary.highest).fold(0.0, f64::max));
    let (first, last) = (*places.first()?, *places.last()?);
    let scale = Scale { first, last, logarithmic: first > 0.0 && last / first >= WIDE, top: *marks.last()? };
    let mut picture = Picture::new(WIDTH, HEIGHT);
    grid(&mut picture, &scale, &places, &marks, axis);
    picture.strong(LEFT, 18.0, Anchor::Start, &figure.title);
    let mut titles = Vec::new();
    for (line, colour) in lines.iter().zip(COLOURS.iter().cycle()) {
        curve(&mut picture, &scale, line, colour);
        let (place, summary) = line.points.last()?;
        let words = format!("{}: {}", line.title, number(summary.median, figure.digits));
        titles.push((scale.y(summary.median), scale.x(*place), words));
    }
    label(&mut picture, titles);
    Some(picture.finish(&format!("{}: {} over {}", section.title, figure.title, axis.title)))
}

fn drawn<'a>(section: &Section, figure: &Column, line: &'a Line) -> Option<Drawn<'a>> {
    let summary =
        |target: &str| section.targets.iter().find(|row| row.target == target)?.summaries.get(&figure.key).copied();
    let points: Vec<_> = line.points.iter().filter_map(|(place, target)| Some((*place, summary(target)?))).collect();
    (!points.is_empty()).then_some(Drawn { title: &line.title, points })
}

fn grid(picture: &mut Picture, scale: &Scale, places: &[f64], marks: &[f64], axis: &Axis) {
    let (left, right, bottom) = (LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM);
    let digits = usize::from(marks.iter().any(|mark| mark.fract().abs() > 0.01)) * 2;
    for mark in marks {
        let y = scale.y(*mark);
        picture.line((left, y), (right, y), "grid");
        picture.words(left - 8.0, y + 4.5, Anchor::End, &number(*mark, digits));
    }
    for place in places {
        let x = scale.x(*place);
        picture.line((x, bottom), (x, bottom + 5.0), "spread");
        picture.words(x, bottom + 19.0, Anchor::Middle, &number(*place, 0));
    }
    picture.words(f64::midpoint(left, right), bottom + 38.0, Anchor::Middle, &axis.title);
}

fn curve(picture: &mut Picture, scale: &Scale, line: &Drawn<'_>, colour: &str) {
    for (place, summary) in line.points.iter().filter(|(_, summary)| summary.rounds > 1) {
        let x = scale.x(*place);
        picture.line((x, scale.y(summary.lowest)), (x, scale.y(summary.highest)), "spread");
    }
    let points = line.points.iter().map(|(place, summary)| (scale.x(*place), scale.y(summary.median)));
    picture.curve(&points.collect::<Vec<_>>(), colour);
}

/// Puts each title beside its line's end, from the top down, and never over one another.
fn label(picture: &mut Picture, mut titles: Vec<(f64, f64, String)>) {
    titles.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut free = 0.0;
    for (y, x, words) in titles {
        let base = (y + 4.5).max(free);
        picture.words(x + 10.0, base, Anchor::Start, &words);
        free = base + TITLE;
    }
}

// === impl Scale ===

impl Scale {
    fn x(&self, place: f64) -> f64 {
        let along = |value: f64| if self.logarithmic { value.ln() } else { value };
        let (first, last) = (along(self.first), along(self.last));
        let part = if last > first { (along(place) - first) / (last - first) } else { 0.5 };
        let inset = 12.0; // so that the first point is not on the axis
        LEFT + inset + part * (WIDTH - LEFT - RIGHT - 2.0 * inset)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value.max(0.0) / self.top * (HEIGHT - TOP - BOTTOM)
    }
}

#[cfg(test)]
mod tests {
    use crate::figure::{Axis, Line, OURS};
    use crate::report::svg::tests::elements;
    use crate::report::tests::section_of;
    use crate::run::fake::{Act, Fake};

    const ONE: &str = "ours, 1 cluster";
    const MANY: &str = "ours, 10,000 clusters";
    const AXIS: Axis = Axis {
        title: "clusters",
        lines: &[
            Line { title: "one used", points: &[(1.0, ONE), (10_000.0, MANY)] },
            Line { title: "all used", points: &[(1.0, OURS), (100.0, "nobody")] },
        ],
    };

    #[test]
    fn measured_points_are_joined_and_the_others_left_out() {
        let acts = [(ONE, Act::Measure(16.0)), (MANY, Act::Measure(17.0)), (OURS, Act::Measure(16.5))];
        let section = section_of(Fake { axis: Some(AXIS), ..Fake::new(acts) });
        let svg = super::chart(&section, section.axis.as_ref().unwrap()).unwrap();
        let seen = elements(&svg);
        let count = |name: &str| seen.iter().filter(|seen| *seen == name).count();
        assert_eq!((count("polyline"), count("circle")), (2, 3));
        assert!(svg.contains(">10,000<") && svg.contains(">one used: 17.0<"), "{svg}");
    }

    #[test]
    fn without_figures_there_is_no_chart() {
        let section = section_of(Fake { axis: Some(AXIS), ..Fake::new([]) });
        assert_eq!(super::chart(&section, section.axis.as_ref().unwrap()), None);
    }
}
