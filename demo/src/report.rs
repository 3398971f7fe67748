//! Output of the demo: what runs where, how each step went, and what to try next.
//!
//! Plain text without terminal codes, written line by line, so that it can be followed, piped and
//! kept.

use std::{
    fmt::Display,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    installation::Installation,
    member::Member,
    steps::{CLUSTERS, Step, Tour, through},
};

/// The demo's output.
#[derive(Debug)]
pub struct Report<W> {
    /// The writer.
    pub out: W,
}

/// How the steps went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Steps that were run.
    pub run: usize,
    /// Steps that failed.
    pub failed: usize,
}

// === impl Tally ===

impl Tally {
    /// How a demo ends: as a failure if a step failed.
    pub fn code(self) -> ExitCode {
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

// === impl Report ===

impl<W: Write> Report<W> {
    /// A report that is written to `out`.
    pub fn new(out: W) -> Self {
        Self { out }
    }

    /// Says what runs where.
    pub fn introduce(&mut self, installation: &Installation) -> io::Result<()> {
        let out = &mut self.out;
        writeln!(out, "Sample clusters and a gateway in front of them, all in this process:\n")?;
        let Tour { members, guest, .. } = &installation.tour;
        let tunnelled = members.last().map(Member::name);
        for member in members.iter().chain([guest]) {
            let (name, address, version) = (member.name(), member.address(), member.version());
            // The address is one that its agent knows, and the gateway does not.
            let note = if tunnelled == Some(name) { ", only its agent dials it" } else { "" };
            writeln!(out, "  {name:<8} https://{address}  Kubernetes {version}{note}")?;
        }
        let ready = installation.ready_after.as_millis();
        writeln!(out, "  {:<8} https://{}  ready in {ready} ms\n", "gateway", installation.address)
    }

    /// Runs every step, in order, and says how each went. A failure does not keep the next ones
    /// from running.
    pub async fn steps(&mut self, tour: &Tour) -> io::Result<Tally> {
        let mut tally = Tally::default();
        for step in Step::ALL {
            let started = Instant::now();
            let outcome = step.run(tour).await;
            self.step(&mut tally, step.title(), started.elapsed(), &outcome)?;
        }
        self.sum(tally)?;
        Ok(tally)
    }

    /// Says how a step went, and counts it.
    pub fn step(
        &mut self,
        tally: &mut Tally,
        title: &str,
        took: Duration,
        outcome: &Result<String, impl Display>,
    ) -> io::Result<()> {
        tally.run += 1;
        tally.failed += usize::from(outcome.is_err());
        let (mark, seen) = match outcome {
            Ok(seen) => ('✓', seen.clone()),
            Err(error) => ('✗', error.to_string()),
        };
        writeln!(self.out, "  {mark} {title:<37} {:>5} ms  {seen}", took.as_millis())
    }

    /// Says how all of them went.
    pub fn sum(&mut self, tally: Tally) -> io::Result<()> {
        writeln!(self.out, "\n{} of {} steps passed.", tally.run - tally.failed, tally.run)
    }

    /// Says what to try, with commands to paste.
    pub fn invite(&mut self, installation: &Installation) -> io::Result<()> {
        let Installation { address, kubeconfig, identities, spare, tour, .. } = installation;
        let (berlin, clusters) = (through("berlin", "/api/v1/nodes"), tour.manifests.directory());
        let out = &mut self.out;
        writeln!(out, "\nTry it, in another terminal:\n")?;
        writeln!(out, "  export KUBECONFIG={}", quoted(kubeconfig))?;
        for line in [
            "--context gateway get clustergateways -o wide",
            "--context berlin get pods -A -o wide",
            "--context osaka get pods -n sensors --watch  # through its agent",
            "--context berlin logs -l app=web --prefix --follow",
            "--context osaka describe nodes",
            "--context osaka --user stranger get nodes",
        ] {
            writeln!(out, "  kubectl {line}")?;
        }
        writeln!(out, "\nAdd and remove a cluster:\n")?;
        let guest = tour.guest.name();
        writeln!(out, "  cp {} {}", quoted(spare), quoted(clusters))?;
        writeln!(out, "  kubectl --context {guest} get pods -A")?;
        writeln!(out, "  rm {}", quoted(&tour.manifests.path(guest)))?;
        writeln!(out, "\nOr without kubectl, with a client certificate:\n")?;
        let curl = format!("curl -K {} https://{address}", quoted(&identities.curl));
        writeln!(out, "  {curl}{CLUSTERS}")?;
        writeln!(out, "  {curl}{berlin}")?;
        writeln!(out, "\nCtrl-C ends it.")
    }
}

/// A path as a shell takes it. `TMPDIR` may hold anything.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::StepError;

    #[test]
    fn a_failed_step_shows_and_says_why() {
        let mut report = Report::new(Vec::new());
        let took = Duration::from_millis(1204);
        let mut tally = Tally::default();
        let outcomes = [Ok("berlin, osaka".into()), Err(StepError::Unexpected("no event: {}".into()))];
        for (step, outcome) in [Step::Clusters, Step::Watch].into_iter().zip(outcomes) {
            report.step(&mut tally, step.title(), took, &outcome).unwrap();
        }
        assert_eq!(tally, Tally { run: 2, failed: 1 });
        insta::assert_snapshot!(String::from_utf8(report.out).unwrap());
    }

    #[test]
    fn paths_survive_a_shell() {
        assert_eq!(quoted(Path::new("/tmp/a-b_c.1/d")), "/tmp/a-b_c.1/d");
        assert_eq!(quoted(Path::new("/tmp/it's $HOME")), r"'/tmp/it'\''s $HOME'");
    }
}
