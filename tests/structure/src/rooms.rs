//! Arrows that climb in a declared order.

use std::collections::BTreeSet;

use crate::arrow::Arrow;

/// Ways from one crate or module with a floor to another that is not below it: an arrow, or several
/// through names that have no place in `floors`.
///
/// `floors` is read from the top down. Each forbidden pair is reported once, by its shortest way.
pub fn climbs<'a>(floors: &[&[&str]], arrows: &'a [Arrow]) -> Vec<Vec<&'a Arrow>> {
    let floor = |name: &str| floors.iter().position(|floor| floor.contains(&name));
    let mut found = Vec::new();
    for (height, room) in floors.iter().enumerate().flat_map(|(at, floor)| floor.iter().map(move |room| (at, *room))) {
        let mut seen = BTreeSet::from([room]);
        let mut open: Vec<Vec<&Arrow>> = vec![Vec::new()];
        while let Some(way) = (!open.is_empty()).then(|| open.remove(0)) {
            let end = way.last().map_or(room, |arrow| arrow.to.as_str());
            for arrow in arrows.iter().filter(|arrow| arrow.from == end) {
                if !seen.insert(&arrow.to) {
                    continue;
                }
                let longer: Vec<&Arrow> = way.iter().copied().chain([arrow]).collect();
                match floor(&arrow.to) {
                    Some(there) if there <= height => found.push(longer),
                    Some(_) => {}
                    None => open.push(longer),
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const FLOORS: &[&[&str]] = &[&["top"], &["left", "right"], &["bottom"]];

    fn climbing(pairs: &[(&str, &str)]) -> Vec<String> {
        let arrow = |(from, to): &(&str, &str)| Arrow {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            file: PathBuf::from("a.rs"),
            line: 1,
        };
        let arrows: Vec<Arrow> = pairs.iter().map(arrow).collect();
        let told = |way: &Vec<&Arrow>| {
            let steps: Vec<String> = way.iter().map(|arrow| format!("{}>{}", arrow.from, arrow.to)).collect();
            steps.join(" ")
        };
        climbs(FLOORS, &arrows).iter().map(told).collect()
    }

    #[test]
    fn down_any_number_of_floors_is_free() {
        assert_eq!(climbing(&[("top", "left"), ("top", "bottom"), ("left", "bottom"), ("other", "top")]), [""; 0]);
    }

    #[test]
    fn up_and_aside_are_told() {
        assert_eq!(climbing(&[("bottom", "top")]), ["bottom>top"]);
        assert_eq!(climbing(&[("left", "right")]), ["left>right"]);
    }

    #[test]
    fn up_through_rooms_without_a_place_is_told() {
        assert_eq!(climbing(&[("bottom", "a"), ("a", "b"), ("b", "left")]), ["bottom>a a>b b>left"]);
    }
}
