//! How long we lead, by the responses and their times.

use api::hub_status::HubStatus;

use super::*;

const TERM: Duration = Duration::from_secs(12);

enum Answer {
    Written,
    Refused,
    Failed,
}
use Answer::{Failed, Refused, Written};

/// The state of the term: led until a second, over, or not begun.
#[derive(Debug, PartialEq, Eq)]
enum Led {
    NotYet,
    Until(u64),
    Lapsed,
    Taken,
    Unclaimed,
}
use Led::{Lapsed, NotYet, Taken, Unclaimed, Until};

/// Responses to the claim (sent at 0) and to renewals: when each was sent, the response, when it
/// arrived, and the resulting state.
fn table(rows: &[(u64, Answer, u64, Led)]) {
    let (start, mut proof) = (Instant::now(), Proof::new(TERM));
    let at = |second: u64| start + Duration::from_secs(second);
    for (sent, answer, now, expected) in rows {
        let cause = || Cause::Status(HubStatus { code: 400, ..HubStatus::default() });
        let answer = match answer {
            Written => Ok(()),
            Refused => Err(Setback::Refused(cause())),
            Failed => Err(Setback::Failed(Cause::Timeout(TERM))),
        };
        let sent = Sent { at: at(*sent), claim: *sent == 0 };
        let led = match proof.answered(sent, answer, at(*now)) {
            Ok(()) => proof.until().map_or(NotYet, |until| Until((until - start).as_secs())),
            Err(Loss::Lapsed) => Lapsed,
            Err(Loss::Taken(_)) => Taken,
            Err(Loss::Unclaimed(_)) => Unclaimed,
        };
        assert_eq!(led, *expected, "sent {sent:?}, answered at {now}");
    }
}

#[test]
fn a_write_counts_from_when_it_was_sent() {
    table(&[(0, Written, 1, Until(12)), (2, Written, 10, Until(14)), (4, Written, 13, Until(16))]);
    table(&[(0, Written, 9, Until(12)), (2, Written, 11, Until(14))]);
}

#[test]
fn an_older_answer_takes_nothing_back() {
    table(&[(0, Written, 1, Until(12)), (6, Written, 7, Until(18)), (2, Written, 8, Until(18))]);
}

#[test]
fn an_answer_that_comes_when_the_term_is_over_changes_nothing() {
    table(&[(0, Written, 1, Until(12)), (11, Written, 12, Lapsed)]);
    table(&[(0, Written, 12, Lapsed)]);
}

#[test]
fn failures_leave_what_was_proven() {
    table(&[(0, Written, 1, Until(12)), (2, Failed, 3, Until(12)), (4, Failed, 11, Until(12))]);
}

#[test]
fn a_refusal_ends_the_term_at_once() {
    table(&[(0, Written, 1, Until(12)), (2, Refused, 3, Taken)]);
}

/// The hub may have processed these before the claim.
#[test]
fn refusals_of_what_was_sent_before_the_first_acknowledgment_say_nothing() {
    table(&[(2, Refused, 3, NotYet), (0, Written, 9, Until(12)), (4, Refused, 10, Until(12)), (9, Refused, 11, Taken)]);
}

#[test]
fn a_claim_that_is_not_acknowledged_is_none() {
    table(&[(0, Refused, 1, Unclaimed)]);
    table(&[(2, Failed, 3, NotYet), (0, Failed, 9, Unclaimed)]);
}

/// The claim's response was lost, or is still to come.
#[test]
fn a_renewal_proves_the_claim() {
    table(&[(2, Written, 3, Until(14)), (0, Failed, 10, Until(14))]);
}
