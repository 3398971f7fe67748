//! Another client writes the status of a work. The status is then reported again: at once the first
//! time, and with growing waits if it happens repeatedly.

use std::hash::{DefaultHasher, Hasher as _};
use std::io;
use std::time::Duration;

use delivery::condition::Condition;
use delivery::work::{ManifestWorkStatus, is_made};
use tokio::time::Instant;

use super::contest::Contest;
use crate::parts::watched::is_older;

/// Edits of one work.
#[derive(Debug, Default)]
pub struct Edits {
    /// The status that the hub got, as a number.
    told: Option<u64>,
    /// The newest version of the work that was read, or written.
    version: Option<String>,
    contest: Contest,
    again: Option<Instant>,
}

/// What happened to the reported status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edit {
    None,
    /// Report it again now.
    Now,
    /// Report it again after this wait.
    In(Duration),
}

/// A hasher as a writer: turns written bytes into a number.
#[derive(Default)]
struct Print(DefaultHasher);

// === impl Edits ===

impl Edits {
    /// The work was read, or written, at this version.
    pub fn know(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }

    /// Whether that version is newer (KEP-5504). A version that is no number is not.
    pub fn are_behind(&self, version: &str) -> bool {
        self.version.as_deref().is_some_and(|known| is_older(Some(known), version))
    }

    /// The hub has this status.
    pub fn reported(&mut self, status: &ManifestWorkStatus) {
        (self.told, self.again) = (Some(print(status)), None);
    }

    /// Compares the reported status with the hub's present one, unless another report `is_owed` to
    /// the hub.
    pub fn judge(&mut self, status: &ManifestWorkStatus, is_owed: bool, now: Instant) -> Edit {
        self.again = None;
        if is_owed || self.told.is_none_or(|told| told == print(status)) {
            return Edit::None;
        }
        if let Some(wait) = self.contest.wait(now) {
            self.again = Some(now + wait);
            return Edit::In(wait);
        }
        self.contest.repaired(now);
        self.told = None;
        Edit::Now
    }

    /// Time of the next repeated report.
    pub fn again(&self) -> Option<Instant> {
        self.again
    }
}

/// The parts of the status that we report: others may add conditions of their own.
fn print(status: &ManifestWorkStatus) -> u64 {
    let ours: Vec<&Condition> = status.conditions.iter().filter(|one| is_made(one)).collect();
    let mut print = Print::default();
    let told = (ours, &status.resource_status);
    // This writer never fails.
    let _ = serde_json::to_writer(&mut print, &told);
    print.0.finish()
}

// === impl Print ===

impl io::Write for Print {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use delivery::condition::Status;
    use delivery::work::kind;

    use super::*;

    fn status(of: &[(&str, &str)]) -> ManifestWorkStatus {
        let conditions = of.iter().map(|(kind, reason)| Condition::new(kind, Status::True, reason, "")).collect();
        ManifestWorkStatus { conditions, ..ManifestWorkStatus::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn what_somebody_edits_each_time_is_told_less_and_less_often() {
        let (mut edits, begin, mut count) = (Edits::default(), Instant::now(), 0);
        let (ours, theirs) = (status(&[(kind::APPLIED, "x")]), status(&[]));
        assert_eq!(edits.judge(&theirs, false, begin), Edit::None, "nothing was told yet");
        edits.reported(&ours);
        assert_eq!(edits.judge(&theirs, true, begin), Edit::None);
        while begin.elapsed() < Duration::from_mins(10) {
            match edits.judge(&theirs, false, Instant::now()) {
                Edit::Now => edits.reported(&ours),
                Edit::In(wait) => assert_eq!(edits.again(), Some(Instant::now() + wait)),
                Edit::None => panic!("it is another one"),
            }
            count += usize::from(edits.again().is_none());
            tokio::time::advance(Duration::from_millis(500)).await;
        }
        assert!((4..=7).contains(&count), "{count}");
        assert_eq!((edits.judge(&ours, false, Instant::now()), edits.again()), (Edit::None, None));
    }

    #[tokio::test]
    async fn others_have_conditions_of_their_own_beside_ours() {
        let mut edits = Edits::default();
        let rule = ("Odd", "ConditionRulesAggregated");
        edits.reported(&status(&[(kind::AVAILABLE, "x"), rule]));
        let mut judge = |of: &[(&str, &str)]| edits.judge(&status(of), false, Instant::now());
        assert_eq!(judge(&[(kind::AVAILABLE, "x"), ("Theirs", "y"), rule]), Edit::None);
        assert_eq!(judge(&[(kind::AVAILABLE, "x"), ("Odd", "y")]), Edit::Now);
    }

    #[test]
    fn a_version_is_news_if_it_is_newer_than_what_was_looked_at_or_written() {
        let mut edits = Edits::default();
        assert!(!edits.are_behind("7"), "it was not looked at yet");
        edits.know("9");
        assert!(edits.are_behind("10") && !edits.are_behind("9") && !edits.are_behind("x"));
    }
}
