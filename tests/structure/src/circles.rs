//! Circles of arrows.

use std::collections::{BTreeMap, BTreeSet};

use crate::arrow::Arrow;

/// Names that reach each other, with the first arrow between each two of them. A name alone is no
/// circle.
#[derive(Debug)]
pub struct Circle<'a> {
    pub names: BTreeSet<&'a str>,
    pub arrows: Vec<&'a Arrow>,
}

/// Every circle of `arrows`, whole: two circles that share a name are one.
pub fn circles(arrows: &[Arrow]) -> Vec<Circle<'_>> {
    let next = neighbours(arrows);
    let reached: BTreeMap<&str, BTreeSet<&str>> = next.keys().map(|name| (*name, reach(name, &next))).collect();
    let mut taken = BTreeSet::new();
    let mut circles = Vec::new();
    for (name, far) in &reached {
        if !far.contains(name) || taken.contains(name) {
            continue;
        }
        let names: BTreeSet<&str> =
            far.iter().copied().filter(|other| reached.get(other).is_some_and(|back| back.contains(name))).collect();
        taken.extend(names.iter().copied());
        circles.push(Circle { arrows: between(&names, arrows), names });
    }
    circles
}

/// The names that arrows from each name lead to; an arrow to itself does not count.
fn neighbours(arrows: &[Arrow]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in arrows.iter().filter(|arrow| arrow.from != arrow.to) {
        next.entry(&arrow.from).or_default().insert(&arrow.to);
    }
    next
}

fn reach<'a>(start: &str, next: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = next.get(start).into_iter().flatten().copied().collect();
    while let Some(name) = open.pop() {
        if reached.insert(name) {
            open.extend(next.get(name).into_iter().flatten());
        }
    }
    reached
}

fn between<'a>(names: &BTreeSet<&str>, arrows: &'a [Arrow]) -> Vec<&'a Arrow> {
    let mut seen = BTreeSet::new();
    let inside = |arrow: &&Arrow| names.contains(arrow.from.as_str()) && names.contains(arrow.to.as_str());
    arrows
        .iter()
        .filter(inside)
        .filter(|arrow| arrow.from != arrow.to && seen.insert((&arrow.from, &arrow.to)))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn arrows(pairs: &[(&str, &str)]) -> Vec<Arrow> {
        let arrow = |(line, (from, to)): (usize, &(&str, &str))| Arrow {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            file: PathBuf::from("a.rs"),
            line,
        };
        pairs.iter().enumerate().map(arrow).collect()
    }

    #[test]
    fn one_way_down_is_no_circle() {
        let arrows = arrows(&[("a", "b"), ("b", "c"), ("a", "c"), ("a", "a")]);
        assert!(circles(&arrows).is_empty(), "{:?}", circles(&arrows));
    }

    #[test]
    fn a_circle_is_told_with_the_first_place_of_each_of_its_arrows() {
        let arrows = arrows(&[("top", "a"), ("a", "b"), ("b", "c"), ("a", "b"), ("c", "a"), ("c", "bottom")]);
        let found = circles(&arrows);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].names, BTreeSet::from(["a", "b", "c"]));
        assert_eq!(found[0].arrows.iter().map(|arrow| arrow.line).collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn circles_apart_are_told_apart() {
        let arrows = arrows(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "d"), ("d", "c")]);
        let names: Vec<_> = circles(&arrows).into_iter().map(|circle| circle.names).collect();
        assert_eq!(names, [BTreeSet::from(["a", "b"]), BTreeSet::from(["c", "d"])]);
    }
}
