//! Limits the certificates that a cluster gets without a person, so that an agent that asks each
//! second gets no more than others.

use std::collections::HashMap;
use std::time::Duration;

use net::rate::Window;

/// Certificates of one cluster within [`WINDOW`]. An agent has at most ten open requests.
const MOST: u32 = 10;
const WINDOW: Duration = Duration::from_mins(10);
/// Number of remembered clusters from which those whose window is over are forgotten.
const MANY: usize = 10_000;

/// The clusters for which certificates were approved. Renewals and first joins count separately:
/// joining clusters must not use up the limit of renewals.
#[derive(Debug, Default)]
pub struct Approvals(HashMap<(String, bool), Window<Duration>>);

// === impl Approvals ===

impl Approvals {
    /// Takes one certificate at `now`, a time since any fixed moment. If the limit is reached: the
    /// wait until the next.
    pub fn take(&mut self, cluster: &str, is_renewal: bool, now: Duration) -> Result<(), Duration> {
        if self.0.len() >= MANY {
            self.0.retain(|_, spent| !spent.is_over(now, WINDOW));
        }
        self.0.entry((cluster.to_owned(), is_renewal)).or_default().take(now, MOST, WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_asks_each_second_waits_and_nobody_else_does() {
        let mut approvals = Approvals::default();
        let second = Duration::from_secs(1);
        let answers: Vec<_> = (0..20).map(|number| approvals.take("c1", true, number * second)).collect();
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 10);
        assert_eq!(answers[19], Err(WINDOW.saturating_sub(19 * second)));
        assert_eq!(approvals.take("c2", true, 20 * second), Ok(()), "another cluster");
        assert_eq!(approvals.take("c1", false, 20 * second), Ok(()), "a first join");
        assert_eq!(approvals.take("c1", true, WINDOW), Ok(()), "later");
    }

    #[test]
    fn what_is_remembered_is_bounded_once_it_is_old() {
        let mut approvals = Approvals::default();
        for number in 0..=MANY {
            approvals.take(&number.to_string(), true, Duration::ZERO).unwrap();
        }
        approvals.take("last", true, WINDOW).unwrap();
        assert_eq!(approvals.0.len(), 1);
    }
}
