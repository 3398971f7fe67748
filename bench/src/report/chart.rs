//! A scenario's chart, and the file it is in.

use super::{Section, bars, lines};

/// A scenario's chart, if there is something to draw.
pub(super) fn chart(section: &Section) -> Option<String> {
    match &section.axis {
        Some(axis) => lines::chart(section, axis),
        None => bars::chart(section),
    }
}

pub(super) fn file(section: &Section) -> String {
    format!("{}.svg", section.name)
}
