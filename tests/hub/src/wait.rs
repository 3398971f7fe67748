//! Waits with a limit for a condition of the outside world that sends no notice: a port that
//! answers, an object that appears.
//!
//! The condition is checked again after a short pause until it holds; after the limit, the error
//! names what was awaited and the last reason why it did not hold.

use std::time::Duration;

use anyhow::{Result, anyhow};
use tokio::time::Instant;

/// The pause between two checks of a condition. Short at first, because tests measure delays of
/// about a second with it; later a fraction of the time waited so far, because each check costs a
/// request or a program's start, and many tests wait at once.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);
const PART: u32 = 8;
/// After a check that takes long, such as a program, the longest pause is this many times as long:
/// checks take at most a quarter of the later time.
const CHECKS: u32 = 3;
/// The longest pause, however long a check takes.
const LONGEST_PAUSE_OF_ALL: Duration = Duration::from_secs(2);

/// Checks `condition` until it returns `Ok`, for at most `limit`.
pub fn until<T>(what: &str, limit: Duration, mut condition: impl FnMut() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        let check = Instant::now();
        match condition() {
            Ok(value) => return Ok(value),
            Err(reason) if start.elapsed() >= limit => {
                return Err(reason.context(format!("gave up after {limit:?} waiting for {what}")));
            }
            Err(_) => std::thread::park_timeout(pause(start.elapsed(), check.elapsed())),
        }
    }
}

/// Waits like [`until`]. Returns the last moment at which the condition did not hold, as far as was
/// seen: the look that found that it holds may be late.
pub fn last_before(what: &str, limit: Duration, mut condition: impl FnMut() -> Result<()>) -> Result<Instant> {
    let mut before = Instant::now();
    until(what, limit, || {
        let look = Instant::now();
        condition().inspect_err(|_| before = look)
    })?;
    Ok(before)
}

/// The pause after a wait of `waited`, whose last check took `took`.
fn pause(waited: Duration, took: Duration) -> Duration {
    let longest = (CHECKS * took).clamp(LONGEST_PAUSE, LONGEST_PAUSE_OF_ALL);
    (waited / PART).clamp(PAUSE, longest)
}

/// Runs `run`, which returns the duration to check, until that is less than `limit`, a few times at
/// most: a program that is too slow is so each time, a busy machine is not.
pub fn timely(what: &str, limit: Duration, mut run: impl FnMut() -> Result<Duration>) -> Result<()> {
    const RUNS: usize = 3;
    let mut took = Vec::new();
    while took.len() < RUNS {
        took.push(run()?);
        if took.last().is_some_and(|last| *last < limit) {
            return Ok(());
        }
    }
    Err(anyhow!("{what}: {took:?}, never less than {limit:?}"))
}

/// Like [`until`], for conditions without a reason.
pub fn until_true(what: &str, limit: Duration, mut condition: impl FnMut() -> Result<bool>) -> Result<()> {
    until(what, limit, || if condition()? { Ok(()) } else { Err(anyhow!("not yet")) })
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;

    #[test]
    fn the_error_names_what_was_awaited_and_why_it_did_not_come() {
        let error = until("the moon", Duration::ZERO, || Err::<(), _>(anyhow!("it is cloudy"))).unwrap_err();
        assert_eq!(format!("{error:#}"), "gave up after 0ns waiting for the moon: it is cloudy");
    }

    #[test]
    fn the_moment_before_is_that_of_the_last_look_in_vain() {
        let mut looks = Vec::new();
        let before = last_before("the third look", Duration::from_secs(10), || {
            looks.push(Instant::now());
            ensure!(looks.len() == 3, "not yet");
            Ok(())
        });
        assert!((looks[0]..=looks[1]).contains(&before.unwrap()));
    }

    #[test]
    fn one_run_in_time_is_enough_and_none_is_not() {
        let second = Duration::from_secs(1);
        let mut runs = [second, Duration::ZERO].into_iter();
        timely("a bus", second, || Ok(runs.next().unwrap())).unwrap();
        let error = timely("a bus", second, || Ok(second)).unwrap_err();
        assert_eq!(error.to_string(), "a bus: [1s, 1s, 1s], never less than 1s");
    }

    #[test]
    fn pauses_grow_with_the_wait_and_with_what_a_check_takes() {
        let millis = Duration::from_millis;
        for (waited, took, expected) in
            [(0, 1000, 20), (2000, 500, 250), (60_000, 10, 400), (60_000, 500, 1500), (60_000, 5000, 2000)]
        {
            assert_eq!(pause(millis(waited), millis(took)), millis(expected), "{waited} ms, {took} ms");
        }
    }

    #[test]
    fn a_condition_that_comes_true_ends_the_wait() {
        let mut looks = 0;
        let condition = || {
            looks += 1;
            Ok(looks == 3)
        };
        until_true("the third look", Duration::from_secs(10), condition).unwrap();
        assert_eq!(looks, 3);
    }
}
