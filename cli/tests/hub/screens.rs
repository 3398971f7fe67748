//! The screens of `docs/cli.md` beside those of a run.

use std::path::Path;

use anyhow::{Result, bail};
use hub_tests::kubectl::Output;

/// Screens that differ from the documented ones.
#[derive(Default)]
pub struct Screens(Vec<String>);

// === impl Screens ===

impl Screens {
    /// Compares what `command` printed with the block of the page that begins with it. What differs
    /// between runs (times, versions, addresses, widths) is left out of the comparison.
    pub fn compare(&mut self, command: &str, output: &Output) -> Result<()> {
        let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli.md"))?;
        // What is done is told before what came of it, and what failed after.
        let (first, second) =
            if output.status == 0 { (&output.stderr, &output.stdout) } else { (&output.stdout, &output.stderr) };
        let printed = format!("{first}{second}");
        let documented = page.split("```").find_map(|block| {
            let (first, rest) = block.strip_prefix("console\n$ kubectl clusters ")?.split_once('\n')?;
            (first == command).then_some(rest)
        });
        if documented.map(lasting) != Some(lasting(&printed)) {
            self.0.push(format!("$ kubectl clusters {command}\n{printed}"));
        }
        Ok(())
    }

    /// An error with the screens that are not as documented.
    pub fn finish(self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        bail!("docs/cli.md shows these screens otherwise, or not at all:\n\n{}", self.0.join("\n"))
    }
}

/// The words of each line that are the same in each run.
fn lasting(text: &str) -> Vec<Vec<String>> {
    text.lines().map(|line| line.split_whitespace().map(word).collect()).collect()
}

fn word(word: &str) -> String {
    let bare = word.trim_end_matches([',', ';', ':', ')']).trim_start_matches('(');
    let is_time =
        bare.trim_end_matches(['m', 's', 'h', 'd']).parse::<f64>().is_ok() && !bare.ends_with(char::is_numeric);
    let is_version = bare.strip_prefix("v1.").is_some_and(|rest| rest.starts_with(char::is_numeric));
    let is_address = bare.starts_with("https://") || bare.contains("127.0.0.1:") || bare.contains("10.0.0.7:");
    let is_file = bare.starts_with('/') && bare.len() > 30;
    if is_time || is_version || is_address || is_file || bare.len() > 200 {
        return word.replace(bare, "…");
    }
    // Names that the API server made: five characters after the last dash.
    match bare.rsplit_once("-token-") {
        Some((kept, _)) => format!("{kept}-token-…"),
        None => word.to_owned(),
    }
}
