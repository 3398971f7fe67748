//! Targets: their length, and their lookups by the thousand.

use super::{Expected, Outcome, Row};
use crate::frames::Wire;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "a path of 8 KiB",
        by_hub: true,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(path(wire, 8 << 10)),
    },
    Row {
        name: "a path of 60 KiB",
        by_hub: true,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(path(wire, 60 << 10)),
    },
    Row {
        name: "a path of 64 KiB",
        by_hub: true,
        expected: &[Expected::Told(414, "64 KiB")],
        attack: |wire| Box::pin(path(wire, 64 << 10)),
    },
    Row {
        name: "a path of a megabyte",
        by_hub: true,
        expected: &[Expected::Told(414, "64 KiB"), Expected::Told(431, "")],
        attack: |wire| Box::pin(path(wire, 1 << 20)),
    },
    Row {
        name: "10,000 parameters",
        by_hub: true,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(parameters(wire, 10_000)),
    },
    Row {
        name: "10,001 parameters",
        by_hub: true,
        expected: &[Expected::Told(400, "10000")],
        attack: |wire| Box::pin(parameters(wire, 10_001)),
    },
    Row {
        name: "a path that is none",
        by_hub: false,
        expected: &[Expected::Reset, Expected::Told(400, "")],
        attack: |wire| Box::pin(target(wire, "no-path")),
    },
];

async fn target(wire: &mut Wire, target: &str) -> Outcome {
    let stream = wire.request("GET", target, &[], true).await;
    Outcome::of(wire, stream).await
}

async fn path(wire: &mut Wire, bytes: usize) -> Outcome {
    let path = format!("{}/{}", wire.places.quick, "p".repeat(bytes));
    target(wire, &path).await
}

async fn parameters(wire: &mut Wire, number: usize) -> Outcome {
    let path = format!("{}?{}", wire.places.quick, vec!["a=1"; number].join("&"));
    target(wire, &path).await
}
