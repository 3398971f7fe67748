//! Pictures of lines, boxes and words. No background, and colours of middle lightness: they are
//! read on white and on black.

use std::fmt::{self, Display, Write as _};

/// Colours of our own targets, then of further lines.
pub const COLOURS: [&str; 4] = ["#2f7fd8", "#d2691e", "#2e9e5b", "#a05fd0"];
const WORDS: &str = "#7b828c";
const OTHERS: &str = "#9aa3ad";

#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// How a box is filled.
#[derive(Clone, Copy)]
pub enum Fill {
    Ours,
    Other,
    /// Only its outline.
    None,
}

/// A picture being drawn. Units are pixels, y grows downwards.
pub struct Picture {
    width: f64,
    height: f64,
    body: String,
}

// === impl Picture ===

impl Picture {
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub fn words(&mut self, x: f64, y: f64, anchor: Anchor, words: &str) {
        self.styled(x, y, anchor, words, "w");
    }

    /// In bold.
    pub fn strong(&mut self, x: f64, y: f64, anchor: Anchor, words: &str) {
        self.styled(x, y, anchor, words, "w b");
    }

    fn styled(&mut self, x: f64, y: f64, anchor: Anchor, words: &str, class: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.push(format_args!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escape(words)
        ));
    }

    pub fn bar(&mut self, x: f64, y: f64, width: f64, height: f64, fill: Fill) {
        let class = match fill {
            Fill::Ours => "ours",
            Fill::Other => "other",
            Fill::None => "none",
        };
        self.push(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
    }

    /// A thin one.
    pub fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.push(format_args!(r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#));
    }

    /// A curve through its points, with a dot on each.
    pub fn curve(&mut self, points: &[(f64, f64)], colour: &str) {
        let path = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ");
        self.push(format_args!(r#"<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>"#));
        for (x, y) in points {
            self.push(format_args!(r#"<circle fill="{colour}" cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#));
        }
    }

    /// `title` is for readers who cannot see the picture.
    pub fn finish(self, title: &str) -> String {
        let Self { width, height, body } = self;
        let title = escape(title);
        let size = format!(r#"viewBox="0 0 {width} {height}" width="{width}" height="{height}""#);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">
<title>{title}</title>
<style>
.w {{ font: 13px system-ui, "DejaVu Sans", sans-serif; fill: {WORDS}; }}
.b {{ font-weight: 600; }}
.ours {{ fill: {ours}; }}
.other {{ fill: {OTHERS}; }}
.none {{ fill: none; stroke: {OTHERS}; }}
.spread {{ stroke: {WORDS}; stroke-width: 1.5; }}
.grid {{ stroke: {WORDS}; stroke-width: 1; opacity: 0.35; }}
</style>
{body}</svg>
"#,
            ours = COLOURS[0],
        )
    }

    fn push(&mut self, element: fmt::Arguments<'_>) {
        let _ = writeln!(self.body, "{element}");
    }
}

fn escape(text: &str) -> impl Display {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// At most five round numbers from zero on, the last at least `highest`: the marks of a scale.
pub fn marks(highest: f64) -> Vec<f64> {
    let rough = if highest > 0.0 { highest / 4.0 } else { 0.25 };
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|step| step * power);
    let step = steps.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(rough);
    (0..=4).map(|n| f64::from(n) * step).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The names of its elements, in order. Panics unless every element that is opened is closed,
    /// in order, and attributes are quoted.
    pub fn elements(svg: &str) -> Vec<String> {
        let (mut open, mut seen) = (Vec::new(), Vec::new());
        for piece in svg.split('<').skip(1) {
            let (tag, text) = piece.split_once('>').expect("a tag ends");
            assert!(!text.contains('>'), "{text}");
            assert!(text.match_indices('&').all(|(at, _)| text[at..].split_once(';').is_some()), "{text}");
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop().as_deref(), Some(name), "in {svg}");
                continue;
            }
            assert!(tag.matches('"').count().is_multiple_of(2), "{tag}");
            assert!(!tag.contains("NaN") && !tag.contains("inf"), "{tag}");
            let name = tag.split([' ', '/']).next().unwrap_or_default().to_owned();
            seen.push(name.clone());
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        assert!(open.is_empty(), "left open: {open:?}");
        seen
    }

    #[test]
    fn words_cannot_become_elements() {
        let mut picture = Picture::new(10.0, 10.0);
        picture.words(0.0, 0.0, Anchor::Middle, r#"<script>"a" & b"#);
        let svg = picture.finish("<&>");
        assert_eq!(elements(&svg), ["svg", "title", "style", "text"]);
        assert!(svg.contains("&lt;script&gt;&quot;a&quot; &amp; b"), "{svg}");
    }

    #[test]
    fn marks_are_round_and_reach_the_highest() {
        assert_eq!(marks(290.0), [0.0, 80.0, 160.0, 240.0, 320.0]);
        assert_eq!(marks(20.0), [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(marks(0.0).len(), 5);
    }
}
