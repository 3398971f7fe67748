//! The screens of `kubectl clusters` on the pages in `docs`, compared with those of a run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::kubectl::Output;
use anyhow::{Context as _, Result, bail};

/// Screens that differ from the documented ones.
#[derive(Default)]
pub struct Screens(Vec<String>);

// === impl Screens ===

impl Screens {
    /// Compares the output of `command` with each block of the pages that begins with it; `cli.md`
    /// has one. What differs between runs (times, versions, addresses, widths) is ignored.
    pub fn compare(&mut self, command: &str, output: &Output) -> Result<()> {
        // Progress is printed before the results, and failures after them.
        let (first, second) =
            if output.status == 0 { (&output.stderr, &output.stdout) } else { (&output.stdout, &output.stderr) };
        let printed = format!("{first}{second}");
        for page in pages()? {
            let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
            let documented: Vec<_> = text.split("```").filter_map(|block| screen(block, command)).collect();
            let is_missing = documented.is_empty() && page.ends_with("cli.md");
            if is_missing || documented.iter().any(|documented| lasting(documented) != lasting(&printed)) {
                self.0.push(format!("{}:\n$ kubectl clusters {command}\n{printed}", page.display()));
            }
        }
        Ok(())
    }

    /// An error with the screens that differ from the documented ones.
    pub fn finish(self) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        bail!("the pages show these screens otherwise, or not at all:\n\n{}", self.0.join("\n"))
    }
}

fn pages() -> Result<Vec<PathBuf>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let entries = fs::read_dir(&docs)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(entries.into_iter().filter(|page| page.extension().is_some_and(|kind| kind == "md")).collect())
}

/// The part of a page's block below `command`, if it begins with that.
fn screen<'a>(block: &'a str, command: &str) -> Option<&'a str> {
    let (first, rest) = block.strip_prefix("console\n$ kubectl clusters ")?.split_once('\n')?;
    (first == command).then_some(rest)
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
    let is_address =
        bare.starts_with("https://") || ["127.0.0.1:", "10.0.0.7:", "10.0.0.3:"].iter().any(|host| bare.contains(host));
    let is_file = bare.starts_with('/') && bare.len() > 30;
    if is_time || is_version || is_address || is_file || bare.len() > 200 {
        return word.replace(bare, "…");
    }
    // Names that the API server generates have five characters after the last dash.
    match bare.rsplit_once("-token-") {
        Some((kept, _)) => format!("{kept}-token-…"),
        None => word.to_owned(),
    }
}
