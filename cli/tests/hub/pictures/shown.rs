//! What the page shows, without a browser: its markup without what differs from run to run. It is
//! kept next to the pictures of the documentation, with the pictures' digests, so that a changed
//! page needs new pictures.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use aws_lc_rs::digest::{SHA256, digest};
use hub_tests::testbed::Testbed;
use hub_tests::wait;

use super::{CITIES, LINKED, LOST, expected, used};
use crate::dashboard::{Address, LIMIT, Parts};

/// Directory of the pictures, from the root of the workspace.
pub const PLACE: &str = "docs/pictures";
/// The file with the page as the pictures show it.
const KEPT: &str = "dashboard.txt";
/// The pages in them: name and path.
const PAGES: [(&str, &str); 5] = [
    ("table", ""),
    ("tiles", "?view=tiles"),
    ("cluster", "clusters/berlin"),
    ("tunnelled", "clusters/seoul"),
    ("failing", "clusters/osaka"),
];
/// What else the page is made of: how it looks, and what it does in a browser.
const FILES: [&str; 2] = ["page.css", "page.js"];
const REMEDY: &str = "make them again, with chromium: \
                      SCREENSHOTS=docs/pictures cargo test -p kubectl-clusters --test hub pictures";
/// Most differences that are reported.
const TOLD: usize = 10;

/// Compares the pages with what is kept of them. If `written`, there are new pictures, and the
/// pages are first kept with them.
pub fn compare(testbed: &Testbed, address: &Address, written: bool) -> Result<()> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(PLACE);
    let mut now = String::new();
    settled(address)?;
    for (name, path) in PAGES {
        let city = path.strip_prefix("clusters/");
        if let Some(city) = city {
            inspected(testbed, address, city)?;
        }
        let page = address.get(path, &[])?;
        ensure!(page.status == 200, "{page:?}");
        writeln!(now, "=== {name}\n{}", outline(city.is_some(), &page.body)?)?;
    }
    writeln!(now, "=== digests")?;
    for file in FILES {
        writeln!(now, "{file} {}", digest_of(address.get(file, &[])?.body.as_bytes()))?;
    }
    for picture in pictures(&place)? {
        let name = picture.file_name().unwrap_or_default().to_string_lossy().into_owned();
        writeln!(now, "{name} {}", digest_of(&std::fs::read(&picture)?))?;
    }
    if written {
        std::fs::write(place.join(KEPT), &now)?;
    }
    let before = std::fs::read_to_string(place.join(KEPT)).unwrap_or_default();
    let differences = differences(&before, &now);
    ensure!(differences.is_empty(), "the pictures in {PLACE} show another page: {REMEDY}\n{}", differences.join("\n"));
    Ok(())
}

/// The first lines that only one of the two has, or else the first line that moved.
fn differences(before: &str, now: &str) -> Vec<String> {
    let (all, lines): (BTreeSet<_>, BTreeSet<_>) = (before.lines().collect(), now.lines().collect());
    let gone = all.difference(&lines).map(|line| format!("- {line}"));
    let differences: Vec<_> = gone.chain(lines.difference(&all).map(|line| format!("+ {line}"))).take(TOLD).collect();
    if !differences.is_empty() {
        return differences;
    }
    let moved = before.lines().zip(now.lines()).find(|(before, now)| before != now);
    let ends = (before.lines().count() != now.lines().count()).then(|| "lines come more than once".to_owned());
    moved.map(|(before, now)| format!("{now} where {before} was")).or(ends).into_iter().collect()
}

fn pictures(place: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(place)?.map(|entry| Ok(entry?.path()));
    let mut pictures: Vec<_> = entries.collect::<Result<_>>()?;
    pictures.retain(|path| path.extension().is_some_and(|end| end == "png"));
    pictures.sort();
    Ok(pictures)
}

fn digest_of(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // into a String: it cannot fail
        text
    })
}

/// Waits until the page shows all clusters as the pictures do.
fn settled(address: &Address) -> Result<()> {
    wait::until("all clusters", LIMIT, || {
        let page = address.get("", &[])?.body;
        for (city, ..) in CITIES {
            let begin = format!("<tr id=\"c-{city}\"");
            let row = page.split_once(&begin).and_then(|(_, rest)| rest.split("</tr>").next());
            let row = row.with_context(|| format!("no {city}"))?;
            ensure!(row.contains(&format!("<span data-f=\"status\">{}</span>", expected(city))), "{row}");
            ensure!(row.contains("2/2") == (city == LINKED), "agents: {row}");
        }
        Ok(())
    })
}

/// Looks at a cluster until all there is to see is there; it is remembered for a while.
fn inspected(testbed: &Testbed, address: &Address, city: &str) -> Result<()> {
    let mut events = address.events(&format!("clusters/{city}/events"))?;
    let mut parts = Parts::default();
    if [LINKED, LOST].contains(&city) {
        parts.until(&mut events, "facts", |facts| facts.contains("<dt>Links</dt>"))?;
    }
    if city == LOST {
        parts.until(&mut events, "way", |way| way.contains("not reached"))?;
        parts.until(&mut events, "failures", |failures| failures.contains("<td>"))?;
    } else {
        let _watching = used(testbed, city, "shown")?;
        let timed = |way: &str| city != LINKED || way.contains("connected to its API server in ");
        parts.until(&mut events, "way", |way| way.contains("accepted, as") && timed(way))?;
        parts.until(&mut events, "answers", |answers| answers.contains("<b>200</b>"))?;
    }
    parts.until(&mut events, "traffic", |traffic| traffic.contains("<dt>median</dt>") && !traffic.contains("<dd>…"))
}

/// The page's tags and texts, one each line, each once, without numbers and what depends on the
/// machine or on what else happens on the hub.
fn outline(of_one: bool, page: &str) -> Result<String> {
    let (_, body) = page.split_once("<body").context("no body")?;
    let mut body = cut(&format!("<body{body}"), "<template", "</template>", |_| false);
    body = cut(&body, "<path", "/>", |_| false);
    for (begin, end) in [("<tr id=\"c-", "</tr>"), ("<li id=\"c-", "</li>")] {
        body = cut(&body, begin, end, |rest| CITIES.iter().any(|(city, ..)| rest.starts_with(&format!("{city}\""))));
    }
    if of_one {
        // What fails and how often, others decide too.
        body = cut(&body, "<tbody>", "</tbody>", |_| false);
    }
    let mut lines: Vec<String> = Vec::new();
    for piece in body.split_inclusive('>') {
        let (text, tag) = piece.split_once('<').map_or((piece, String::new()), |(text, tag)| (text, format!("<{tag}")));
        for line in [general(text.trim()), general(&tag)] {
            if !line.is_empty() && !tag_of_end(&line) && !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    Ok(lines.join("\n"))
}

fn tag_of_end(line: &str) -> bool {
    line.starts_with("</")
}

/// Removes what is between `begin` and `end`, unless `kept` is true for what follows `begin`.
fn cut(text: &str, begin: &str, end: &str, kept: impl Fn(&str) -> bool) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(begin) {
        left.push_str(before);
        let (inside, next) = after.split_once(end).unwrap_or((after, ""));
        if kept(inside) {
            left.extend([begin, inside, end]);
        }
        rest = next;
    }
    left + rest
}

/// Replaces numbers by `#`, whatever their unit, and the names of replicas. Removes the seal.
fn general(words: &str) -> String {
    if let Some((before, _)) = words.split_once("data-seal=") {
        return general(before.trim_end());
    }
    if words.starts_with("Counted by ") {
        return "Counted by #".to_owned();
    }
    // Leaves out whether dials pause at this moment.
    let words = words.split(" (the last ").next().unwrap_or_default();
    let mut line = String::new();
    for character in words.chars() {
        match character {
            '0'..='9' if line.ends_with('#') => {}
            '0'..='9' => line.push('#'),
            other => line.push(other),
        }
    }
    for group in ["#.#", "#,#"] {
        while line.contains(group) {
            line = line.replace(group, "#");
        }
    }
    let line = line.replace("#m ago", "#s ago");
    let amount = ["–", "# s", "# µs", "# ms"].contains(&&*line);
    if amount { "#".to_owned() } else { line }
}
