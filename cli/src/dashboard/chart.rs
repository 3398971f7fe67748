//! Lines and bars, in SVG.

use super::html::Html;
use super::traffic::Point;
use super::words;

/// Size of the drawing, in its own units.
const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 60.0;
/// Points across the whole width.
const POINTS: usize = 60;

/// Requests, and those answered 5xx, over time.
pub fn lines(points: &(impl ExactSizeIterator<Item = Point> + Clone)) -> Html {
    let mut html = Html::default();
    let most = points.clone().map(|point| point.requests).fold(0.0, f64::max);
    let failed = points.clone().map(|point| point.errors).fold(0.0, f64::max);
    let label = format!(
        "Requests per second: {} at most; answered 5xx (dashed): {} at most",
        words::rate(most),
        words::rate(failed)
    );
    html.raw("<svg class=\"chart\" viewBox=\"0 0 600 60\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"");
    html.text(&label).raw("\"><path class=\"base\" d=\"M0 59.5H600\"/>");
    let first = POINTS.saturating_sub(points.len());
    for (class, value) in [("all", requests as fn(Point) -> f64), ("errors", errors)] {
        if class == "errors" && points.clone().all(|point| point.errors <= 0.0) {
            continue;
        }
        html.raw("<path class=\"").raw(class).raw("\" d=\"");
        let mut command = 'M';
        for (place, point) in points.clone().enumerate() {
            html.text(&coordinates(command, first + place, value(point), most));
            command = 'L';
        }
        html.raw("\"/>");
    }
    html.raw("</svg><p class=\"scale muted\"><span>").text(&label).raw("</span></p>");
    html
}

fn requests(point: Point) -> f64 {
    point.requests
}

fn errors(point: Point) -> f64 {
    point.errors
}

#[allow(clippy::cast_precision_loss, reason = "few points")]
fn coordinates(command: char, place: usize, value: f64, most: f64) -> String {
    let x = place as f64 * WIDTH / (POINTS - 1) as f64;
    let part = if most > 0.0 { value / most } else { 0.0 };
    format!("{command}{x:.0} {:.1}", (HEIGHT - 2.0) * (1.0 - part) + 1.0)
}

/// A bar whose length is the share of `count` in `most`.
pub fn bar(count: u64, most: u64) -> Html {
    let percent = (u128::from(count) * 100).div_ceil(u128::from(most.max(1)));
    let mut html = Html::default();
    html.raw(
        "<svg class=\"bar-of\" viewBox=\"0 0 100 4\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <rect height=\"4\" width=\"",
    );
    html.text(&percent.to_string()).raw("\"/></svg>");
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_point_is_at_the_right_and_the_most_at_the_top() {
        let at = |requests, errors| Point { requests, errors, ..Point::default() };
        let html = lines(&[at(5.0, 0.0), at(10.0, 5.0)].into_iter()).into_string();
        assert!(html.contains("class=\"all\" d=\"M590 30.0L600 1.0\""), "{html}");
        assert!(html.contains("class=\"errors\" d=\"M590 59.0L600 30.0\""), "{html}");
        assert!(
            html.contains("aria-label=\"Requests per second: 10.0 at most; answered 5xx (dashed): 5.0 at most\""),
            "{html}"
        );
    }

    #[test]
    fn the_smallest_count_has_a_bar() {
        assert!(bar(1, 100_000).as_str().contains("width=\"1\"") && bar(7, 7).as_str().contains("width=\"100\""));
    }
}
