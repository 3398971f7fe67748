//! Where the instructions went: functions, the most expensive first.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use super::callgrind::Dump;
use super::record::grouped;

/// Longer names of functions end in dots.
const WIDTH: usize = 150;

/// The first `count` functions, with what they spent per unit of `units` and their share.
pub fn top(dump: &Dump, units: u64, count: usize, inclusive: bool) -> Result<String> {
    let mut annotate = Command::new("callgrind_annotate");
    annotate.args(["--threshold=100", "--auto=no", if inclusive { "--inclusive=yes" } else { "--inclusive=no" }]);
    let output = annotate.arg(&dump.file).output().context("cannot run callgrind_annotate")?;
    ensure!(output.status.success(), "callgrind_annotate: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let kind = if inclusive { "with what they call" } else { "alone" };
    let mut table = format!("  {}: functions {kind}, instructions per unit\n", dump.program);
    for (spent, function) in text.lines().filter_map(row).take(count) {
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let (each, share) = (spent as f64 / units as f64, spent as f64 / dump.instructions as f64 * 100.0);
        let _ = writeln!(table, "  {:>11} {share:5.1} %  {}", grouped(each), cut(&function)); // into a String
    }
    Ok(table)
}

/// `1,234 (5.6%)  file:function [object]`: the count and the function.
fn row(line: &str) -> Option<(u64, String)> {
    let line = line.trim_start();
    let (count, rest) = line.split_once(" (")?;
    let count = count.replace(',', "").parse().ok()?;
    let (_, place) = rest.split_once("%)")?;
    let place = place.trim_start();
    if place.starts_with("PROGRAM TOTALS") {
        return None;
    }
    let place = place.rsplit_once(" [").map_or(place, |(place, _object)| place);
    // Files have no colon, functions may.
    let function = place.split_once(':').map_or(place, |(_file, function)| function);
    Some((count, function.to_owned()))
}

fn cut(function: &str) -> String {
    match function.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &function[..end]),
        None => function.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_told_from_headings() {
        let line = " 1,234 ( 5.60%)  /src/h2/lib.rs:h2::poll::<T as U>::f'2 [/bin/gateway]";
        assert_eq!(row(line), Some((1234, "h2::poll::<T as U>::f'2".to_owned())));
        assert_eq!(row("9 (0.1%)  ???:0x0000000000002600 [libc.so]"), Some((9, "0x0000000000002600".to_owned())));
        for heading in ["Ir  file:function", "", "10,000 (100.0%)  PROGRAM TOTALS", "-----", "Thresholds: 100"] {
            assert_eq!(row(heading), None, "{heading}");
        }
    }
}
