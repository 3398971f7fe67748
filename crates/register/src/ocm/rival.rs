//! Whether upstream's hub controllers run: they hold a Lease. Times are milliseconds since 1970.

/// Name of their Lease, in whichever namespace they run.
pub const LEASE: &str = "registration-controller-lock";
/// What upstream sets where the Lease says nothing.
const DEFAULT_SECONDS: i32 = 137;

/// A Lease of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold<'a> {
    /// Empty when they gave it up.
    pub holder: &'a str,
    /// As they wrote it.
    pub renewed: Option<i64>,
    pub seconds: Option<i32>,
}

// === impl Hold ===

impl Hold<'_> {
    /// Until when somebody holds it, unless they renew; none if nobody does.
    ///
    /// `changed` is when we saw it change, if we did: their clock may be behind.
    pub fn until(&self, changed: Option<i64>) -> Option<i64> {
        if self.holder.is_empty() {
            return None;
        }
        let since = self.renewed.max(changed)?;
        let seconds = self.seconds.filter(|seconds| *seconds > 0).unwrap_or(DEFAULT_SECONDS);
        Some(since.saturating_add(i64::from(seconds) * 1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_held_until_it_runs_out_or_is_given_up() {
        let hold = Hold { holder: "them", renewed: Some(10_000), seconds: Some(15) };
        assert_eq!(hold.until(None), Some(25_000));
        assert_eq!(hold.until(Some(20_000)), Some(35_000), "seen to change");
        assert_eq!(Hold { holder: "", ..hold }.until(Some(20_000)), None);
        assert_eq!(Hold { seconds: None, ..hold }.until(None), Some(147_000));
        assert_eq!(Hold { renewed: None, ..hold }.until(None), None, "nobody has ever renewed it");
    }
}
