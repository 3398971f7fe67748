//! Tests that `docs/protocol.md` says what the code does.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::link::LEAVE;
use crate::refusal::{HOP, MESSAGE, REASON};
use crate::register::{PATH, PROTOCOL};
use crate::timing::TIMING;
use crate::{Hop, Reason, Settings, Timing};

const PAGE: &str = include_str!("../../../docs/protocol.md");

/// The cells of the tables under a heading, row by row, with the head.
fn table(heading: &str) -> Vec<Vec<String>> {
    let (_, rest) = PAGE.split_once(&format!("\n## {heading}\n")).expect("the page has the heading");
    let section = rest.split_once("\n## ").map_or(rest, |(section, _)| section);
    let row = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
    section.lines().filter(|line| line.starts_with('|')).map(row).collect()
}

#[test]
fn every_refusal_is_listed_with_its_status() {
    let listed: BTreeSet<_> =
        table("Refusals").into_iter().skip(2).map(|row| (row[0].clone(), row[1].clone())).collect();
    let known = Reason::ALL.map(|reason| (reason.status().as_str().to_owned(), reason.as_str().to_owned()));
    assert_eq!(listed, BTreeSet::from(known));
    for word in [REASON, HOP, MESSAGE, Hop::Server.as_str(), Hop::Agent.as_str()] {
        assert!(PAGE.contains(&format!("`{word}`")), "{word}");
    }
}

#[test]
fn the_times_of_hops_are_written_as_shown() {
    let timing = Timing::of_dial(Duration::from_micros(412)).with_agent(Duration::from_micros(2104));
    let mut headers = http::HeaderMap::new();
    timing.write(&mut headers);
    let value = headers[TIMING].to_str().expect("text");
    assert!(PAGE.contains(&format!("`Server-Timing: {value}`")), "{value}");
    let (values, length) = crate::timing::LIMITS;
    let page = PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains(&format!("at most {values} values of at most {length} bytes")));
}

#[test]
fn the_numbers_are_those_of_the_code() {
    let settings = Settings::default();
    let listed: Vec<_> = table("Numbers").into_iter().skip(2).map(|row| (row[0].clone(), row[1].clone())).collect();
    let known = [
        ("stream window", settings.stream_window.to_string()),
        ("largest stream window", settings.stream_window_max.to_string()),
        ("connection window", settings.connection_window.to_string()),
        ("concurrent streams", settings.max_streams.to_string()),
        ("largest frame", settings.max_frame.to_string()),
        ("header list", Settings::HEADER_LIST.to_string()),
        ("keepalive", format!("{} s", settings.keepalive.as_secs())),
        ("keepalive timeout", format!("{} s", settings.keepalive_timeout.as_secs())),
        ("handshake timeout", format!("{} s", settings.handshake_timeout.as_secs())),
    ];
    assert_eq!(listed, known.map(|(what, value)| (what.to_owned(), value)));
}

#[test]
fn the_registration_is_the_codes() {
    let head = format!("\nGET {PATH} HTTP/1.1\nHost: <server>\nConnection: upgrade\nUpgrade: {PROTOCOL}\n");
    assert!(PAGE.contains(&head));
    let listed: BTreeSet<_> = table("Registration").iter().map(|row| row[0].clone()).collect();
    for header in crate::register::HEADERS {
        assert!(listed.contains(header), "{header}");
    }
    for status in [101, 400, 401, 403, 404, 405, 426, 429, 431, 503] {
        assert!(listed.contains(&status.to_string()), "{status}");
    }
    let (bytes, lines) = crate::register::LIMITS;
    assert!(PAGE.contains(&format!("at most {bytes} bytes and {lines} header lines")));
    assert!(PAGE.contains(&format!("`POST {LEAVE}`")));
}
