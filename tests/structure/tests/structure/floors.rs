//! Dependencies lead downwards only: crates depend on lower crates, and modules of a crate use each
//! other in one direction.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use structure_tests::arrow::Arrow;
use structure_tests::circles::circles;
use structure_tests::floors::{CRATE_EXCEPTIONS, CRATES, EXEMPT, ROOMS};
use structure_tests::manifests::{Package, packages};
use structure_tests::modules::{Tree, trees};
use structure_tests::rooms::climbs;
use structure_tests::workspace;

fn all() -> Vec<Package> {
    packages(&workspace())
}

fn modules(package: &Package) -> Vec<Tree> {
    trees(&workspace(), &package.directory)
}

fn floor(name: &str) -> Option<usize> {
    CRATES.iter().position(|floor| floor.contains(&name))
}

fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n\n{}\n", wrong.join("\n\n"));
}

#[test]
fn every_crate_has_a_floor() {
    let packages = all();
    let mut wrong = Vec::new();
    for package in packages.iter().filter(|package| floor(&package.name).is_none()) {
        wrong.push(format!("`{}` stands on no floor: give it one in `floors::CRATES`", package.name));
    }
    for name in CRATES.iter().copied().flatten().filter(|name| packages.iter().all(|package| package.name != **name)) {
        wrong.push(format!("`{name}` has a floor in `floors::CRATES` and is no member of the workspace"));
    }
    none(&wrong);
}

#[test]
fn crates_stand_on_lower_floors() {
    let excepted = |from: &str, to: &str| CRATE_EXCEPTIONS.iter().any(|(a, b, _)| (*a, *b) == (from, to));
    let mut wrong = Vec::new();
    for arrow in all().iter().flat_map(|package| &package.arrows) {
        if floor(&arrow.from) >= floor(&arrow.to) && !excepted(&arrow.from, &arrow.to) {
            wrong.push(format!("{arrow}\n  a crate depends on crates of lower floors only (`floors::CRATES`)"));
        }
    }
    none(&wrong);
}

#[test]
fn modules_of_a_crate_point_in_no_circle() {
    let mut wrong = Vec::new();
    for package in all().iter().filter(|package| !EXEMPT.contains(&package.name.as_str())) {
        wrong.extend(modules(package).iter().flat_map(|tree| told_circles(&package.name, &tree.arrows)));
    }
    none(&wrong);
}

#[test]
fn modules_of_a_module_point_in_no_circle() {
    let mut wrong = Vec::new();
    for package in &all() {
        for (module, arrows) in modules(package).iter().flat_map(|tree| &tree.below) {
            wrong.extend(told_circles(&format!("{}::{module}", package.name), arrows));
        }
    }
    none(&wrong);
}

fn told_circles(of: &str, arrows: &[Arrow]) -> Vec<String> {
    let mut told = Vec::new();
    for circle in circles(arrows) {
        let names: Vec<&str> = circle.names.iter().copied().collect();
        let arrows: Vec<String> = circle.arrows.iter().map(|arrow| format!("  {arrow}")).collect();
        told.push(format!(
            "`{of}`: {} of its modules point in a circle, and imports between them must go one way: {}\n{}",
            names.len(),
            names.join(", "),
            arrows.join("\n"),
        ));
    }
    told
}

#[test]
fn rooms_point_down() {
    let packages = all();
    let mut wrong = Vec::new();
    for rooms in ROOMS.iter().filter(|rooms| !EXEMPT.contains(&rooms.package)) {
        let Some(package) = packages.iter().find(|package| package.name == rooms.package) else {
            wrong.push(format!("`floors::ROOMS` orders `{}`, which is no member of the workspace", rooms.package));
            continue;
        };
        let trees = modules(package);
        for room in rooms.floors.iter().copied().flatten() {
            if !trees.iter().any(|tree| tree.modules.iter().any(|module| module == room)) {
                wrong.push(format!(
                    "`floors::ROOMS` gives `{room}` a floor in `{}`, which has no such module",
                    package.name
                ));
            }
        }
        for module in trees.iter().flat_map(|tree| &tree.modules) {
            if !rooms.floors.iter().copied().flatten().any(|room| room == module) {
                wrong.push(format!("`{module}` of `{}` has no floor in `floors::ROOMS`", package.name));
            }
        }
        for way in trees.iter().flat_map(|tree| climbs(rooms.floors, &tree.arrows)) {
            let way: Vec<String> = way.iter().map(ToString::to_string).collect();
            wrong.push(format!("{}\n  a room imports from lower floors only (`floors::ROOMS`)", way.join("\n")));
        }
    }
    none(&wrong);
}

#[test]
fn no_exception_outlives_its_reason() {
    let packages = all();
    let mut wrong = Vec::new();
    for (from, to, _) in CRATE_EXCEPTIONS {
        if !packages.iter().flat_map(|package| &package.arrows).any(|arrow| arrow.from == *from && arrow.to == *to) {
            wrong
                .push(format!("`{from}` no longer depends on `{to}`: take the pair out of `floors::CRATE_EXCEPTIONS`"));
        }
    }
    for name in EXEMPT {
        if packages.iter().filter(|package| package.name == *name).all(straight) {
            wrong.push(format!("the modules of `{name}` point one way: take it out of `floors::EXEMPT`"));
        }
    }
    none(&wrong);
}

fn straight(package: &Package) -> bool {
    let rooms = ROOMS.iter().find(|rooms| rooms.package == package.name);
    modules(package).iter().all(|tree| {
        circles(&tree.arrows).is_empty() && rooms.is_none_or(|rooms| climbs(rooms.floors, &tree.arrows).is_empty())
    })
}

#[test]
fn the_documentation_draws_these_floors() {
    let document = fs::read_to_string(workspace().join("docs/architecture.md")).expect("docs/architecture.md");
    assert_eq!(drawn(&document, "Crates").as_deref(), Some(owned(CRATES).as_slice()), "`floors::CRATES`");
    for rooms in ROOMS.iter().filter(|rooms| !EXEMPT.contains(&rooms.package)) {
        let section = format!("Modules of the {}", rooms.package);
        assert_eq!(drawn(&document, &section).as_deref(), Some(owned(rooms.floors).as_slice()), "`floors::ROOMS`");
    }
}

fn owned(floors: &[&[&str]]) -> Vec<Vec<String>> {
    floors.iter().map(|floor| floor.iter().map(|name| (*name).to_owned()).collect()).collect()
}

#[test]
fn the_documentation_says_what_each_library_uses() {
    let packages = all();
    let is_library =
        |name: &str| packages.iter().any(|package| package.name == name && package.directory.starts_with("crates"));
    let mut used = BTreeMap::new();
    for package in packages.iter().filter(|package| is_library(&package.name)) {
        let dependencies = package.dependencies.iter().filter(|one| !one.is_for_tests && is_library(&one.name));
        used.insert(package.name.clone(), dependencies.map(|one| one.name.clone()).collect::<BTreeSet<_>>());
    }
    let document = fs::read_to_string(workspace().join("docs/architecture.md")).expect("docs/architecture.md");
    let (_, text) = document.split_once("\nThe libraries depend on each other as follows").expect("the sentence");
    let drawing = text.split("```\n").nth(1).expect("its drawing");
    let mut said = BTreeMap::new();
    for line in drawing.lines() {
        let (names, uses) = line.split_once("  ").expect("two columns");
        let uses: BTreeSet<_> = uses.trim().split(", ").filter(|name| *name != "nothing").map(str::to_owned).collect();
        said.extend(names.split(" | ").map(|name| (name.to_owned(), uses.clone())));
    }
    assert_eq!(said, used);
}

/// The first drawing of a section: each line is a floor, followed by two spaces and its purpose.
fn drawn(document: &str, section: &str) -> Option<Vec<Vec<String>>> {
    let (_, text) = document.split_once(&format!("\n## {section}\n"))?;
    let text = text.split("\n## ").next()?;
    let drawing = text.split("```\n").nth(1)?;
    let names = |line: &str| line.split("  ").next().unwrap_or_default().split(" | ").map(str::to_owned).collect();
    Some(drawing.lines().map(names).collect())
}

/// Checks the reader: one that finds nothing would let everything pass.
#[test]
fn the_reader_finds_the_arrows_that_are_there() {
    let packages = all();
    let auth = packages.iter().find(|package| package.name == "auth").expect("the crate `auth`");
    assert!(auth.arrows.iter().any(|arrow| arrow.to == "api"), "{:?}", auth.arrows);
    let trees = modules(auth);
    let [tree] = trees.as_slice() else { panic!("one library: {trees:?}") };
    assert_eq!(tree.root, Path::new("crates/auth/src/lib.rs"));
    let arrow = tree.arrows.iter().find(|arrow| arrow.from == "assembly" && arrow.to == "authorize");
    assert!(arrow.is_some_and(|arrow| arrow.line > 1), "{:?}", tree.arrows);
    let gateway = packages.iter().find(|package| package.name == "gateway").expect("the gateway");
    let below = &modules(gateway)[0].below["upstream"];
    // An arrow by its name in `upstream`, which re-exports it from `lost`.
    assert!(below.iter().any(|arrow| arrow.from == "connect" && arrow.to == "lost"), "{below:?}");
}
