//! Single operations: this program runs itself under callgrind, which collects only inside
//! [`Operation::run`](count::micro::Operation::run).

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use count::micro::{self, Operation};

use crate::callgrind::{self, Dump};
use crate::figure::Figure;

/// Prefix of the names of operations.
pub const PREFIX: &str = "op-";
/// Counted of each, after half as many that are not.
const OPERATIONS: u64 = 1000;
const COLLECTED: &str = "*micro::Operation::run";
/// Limit for one operation's run, in seconds.
const PATIENCE: &str = "300";

/// `op-route` and so on.
pub fn names() -> Vec<String> {
    micro::all().into_iter().map(|(name, _)| format!("{PREFIX}{name}")).collect()
}

/// Counts the operation called `name`: instructions, for how many, and where.
pub fn count(directory: &Path, name: &str) -> Result<(Figure, u64, Dump)> {
    if cfg!(debug_assertions) {
        bail!("operations are counted in an optimized build only: cargo run --profile counted -p count");
    }
    let operation = name.strip_prefix(PREFIX).unwrap_or(name);
    let output = directory.join(format!("{name}.callgrind"));
    let mut valgrind = Command::new("timeout");
    valgrind.args([PATIENCE, "valgrind", "--tool=callgrind", &format!("--toggle-collect={COLLECTED}")]);
    valgrind.arg(format!("--callgrind-out-file={}", output.display()));
    valgrind.arg(env::current_exe()?).args(["operate", operation, &OPERATIONS.to_string()]);
    let done = valgrind.stdin(Stdio::null()).output().context("cannot run valgrind")?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let dump = callgrind::read(PathBuf::from(&output), "operation")?;
    ensure!(dump.instructions > 0, "callgrind has not found {COLLECTED}");
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let each = dump.instructions as f64 / OPERATIONS as f64;
    Ok((Figure { median: each, spread: 0.0 }, OPERATIONS, dump))
}

/// Times the operation called `name`, in nanoseconds each: so many rounds of [`OPERATIONS`].
pub fn time(name: &str, rounds: usize) -> Result<Figure> {
    let mut operation = made(name.strip_prefix(PREFIX).unwrap_or(name))?;
    operation.warm_up(OPERATIONS / 2);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let each = |took: Duration| took.as_nanos() as f64 / OPERATIONS as f64;
    Ok(Figure::of((0..rounds.max(1)).map(|_| each(operation.time(OPERATIONS))).collect()))
}

/// Runs under callgrind: does `count` of the operation called `name`.
pub fn operate(name: &str, count: u64) -> Result<()> {
    let mut operation = made(name)?;
    operation.warm_up(count / 2);
    operation.run(count);
    Ok(())
}

fn made(name: &str) -> Result<Operation> {
    let made = micro::all().into_iter().find(|(known, _)| *known == name);
    Ok(made.with_context(|| format!("no operation {name:?}"))?.1())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_timed_by_the_name_it_is_counted_by() {
        let figure = time("op-route", 3).expect("timed");
        assert!(figure.median > 0.0 && figure.spread >= 0.0, "{figure:?}");
        assert!(time("op-none", 3).is_err());
    }
}
