//! Where the instructions went: functions, the most expensive first, and their callers.
//!
//! `callgrind_annotate` is of no use here: it counts calls that began before the counters were set
//! to zero (`calls=0`) as the function's own cost. The format is described in valgrind's manual,
//! "Callgrind Format Specification".

mod parse;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::{Context as _, Result};

use crate::callgrind::Dump;
use crate::record::grouped;

/// Longer names of functions end in dots.
const WIDTH: usize = 130;
/// Callers listed for each function.
const CALLERS: usize = 5;
/// A listed caller's least share of a function's cost.
const WORTH_TELLING: f64 = 0.05;

/// Instructions by function.
#[derive(Debug, Default)]
struct Profile {
    total: u64,
    functions: HashMap<String, Function>,
}

#[derive(Debug, Default)]
struct Function {
    /// Spent itself.
    own: u64,
    /// Spent by its callees, itself excepted.
    below: u64,
    /// Cost of its calls, by caller.
    callers: HashMap<String, u64>,
}

/// The first `count` functions, with their cost per unit of `units` and their share.
pub fn top(dump: &Dump, units: u64, count: usize, inclusive: bool) -> Result<String> {
    let text = fs::read_to_string(&dump.file).with_context(|| format!("cannot read {}", dump.file.display()))?;
    let profile = Profile::parse(&text);
    let spent =
        |function: &Function| if inclusive { (function.own + function.below).min(profile.total) } else { function.own };
    let mut functions: Vec<_> =
        profile.functions.iter().map(|(name, function)| (spent(function), name, function)).collect();
    functions.sort_by_key(|(spent, name, _)| (std::cmp::Reverse(*spent), *name));
    let kind = if inclusive { "with what they call" } else { "alone" };
    let mut table = format!("  {}: functions {kind}, instructions per unit\n", dump.program);
    for (spent, name, function) in functions.into_iter().take(count) {
        let (each, share) = (ratio(spent, units), ratio(spent, profile.total) * 100.0);
        let _ = writeln!(table, "  {:>11} {share:5.1} %  {}", grouped(each), cut(name)); // into a String
        for (share, caller) in function.callers() {
            let _ = writeln!(table, "  {:>24.0} % of its calls' cost from {}", share * 100.0, cut(caller));
        }
    }
    Ok(table)
}

// === impl Function ===

impl Function {
    /// The callers that matter, with their shares.
    fn callers(&self) -> Vec<(f64, &str)> {
        let total = self.callers.values().sum();
        let mut callers: Vec<_> =
            self.callers.iter().map(|(name, cost)| (ratio(*cost, total), name.as_str())).collect();
        callers.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        callers.retain(|(share, _)| *share >= WORTH_TELLING);
        callers.truncate(CALLERS);
        callers
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let (part, whole) = (part as f64, whole.max(1) as f64);
    part / whole
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(WIDTH) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}
