//! Load generators: programs that run for a known time and print their results at the end.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

/// Time that one may take beyond the plan: to connect, and until the last answer.
const GRACE: Duration = Duration::from_mins(1);

/// Returns the standard output of `program`. It is killed when it takes much longer than `planned`.
pub fn said(program: &Path, arguments: &[String], planned: Duration) -> Result<String> {
    let name = program.display();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let output = runtime.block_on(async {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        tokio::time::timeout(planned + GRACE, command.output()).await
    });
    let output =
        output.with_context(|| format!("{name} does not end"))?.with_context(|| format!("cannot run {name}"))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{name}: {}: {said}{}", output.status, String::from_utf8_lossy(&output.stderr));
    Ok(said)
}

/// A number with its unit, as load generators print times: `512us`, `1.50ms`, `3.02s`, `1.50m`.
pub fn duration(text: &str) -> Option<Duration> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0)];
    let (number, scale) = units.into_iter().find_map(|(unit, scale)| Some((text.trim().strip_suffix(unit)?, scale)))?;
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * scale).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        let known = [("512us", 512), ("1.50ms", 1500), (" 3.02s", 3_020_000), ("1.50m", 90_000_000)];
        for (text, micros) in known {
            assert_eq!(duration(text), Some(Duration::from_micros(micros)), "{text}");
        }
        assert_eq!(duration("3"), None);
        assert_eq!(duration("us"), None);
    }

    #[test]
    fn one_that_fails_is_quoted() {
        let script = ["-c".to_owned(), "echo no such host; exit 7".to_owned()];
        let error = said(Path::new("/bin/sh"), &script, Duration::ZERO).unwrap_err().to_string();
        assert!(error.contains("exit status: 7") && error.contains("no such host"), "{error}");
    }
}
