//! Inputs made from a corpus, other ones in each run: libFuzzer's mutations without its feedback.

use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::Target;

/// Bytes of an input: long enough for a certificate.
const LONGEST: usize = 4096;
/// Changes to a seed.
const MOST_CHANGES: u64 = 6;
/// Processor time after which a target gets no more inputs in a run: those that take long for one
/// would take most of the time of all.
const MOST_TIME: Duration = Duration::from_secs(1);
/// One in so many of its cases is the least that a target gets in that time: with fewer, it has
/// become slow.
const PART: usize = 50;

/// The number that a run's inputs follow from.
const SEED: &str = "EDGES_SEED";
/// The seed of this run: the time, unless one is given.
static OF_RUN: LazyLock<u64> = LazyLock::new(|| {
    let given = std::env::var(SEED).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{SEED} is a number")));
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    given.unwrap_or_else(|| u64::try_from(since.as_nanos() % u128::from(u64::MAX)).unwrap_or_default())
});

/// Xorshift (Marsaglia 2003, 64 bits).
struct Numbers(u64);

/// Checks the target's corpus, and inputs made of it: `cases` of them, or as many as there is time
/// for. A run that repeats another one has time for all.
///
/// # Panics
///
/// A condition does not hold: the input, and how to repeat the run, are on standard error. There
/// was time for few inputs. The corpus is empty or cannot be read.
#[expect(clippy::print_stdout, reason = "how much was checked is what a pass is worth")]
pub fn run(target: &Target) {
    let seeds = corpus(target.name);
    assert!(!seeds.is_empty(), "{} has no corpus", target.name);
    for seed in &seeds {
        check(target, *OF_RUN, seed);
    }
    let (is_repeated, begun) = (std::env::var_os(SEED).is_some(), time_of_thread());
    let (mut count, mut took) = (0, Duration::ZERO);
    for input in inputs(target, &seeds, *OF_RUN) {
        check(target, *OF_RUN, &input);
        (count, took) = (count + 1, time_of_thread().saturating_sub(begun));
        if !is_repeated && took >= MOST_TIME {
            break;
        }
    }
    println!("{}: {count} of {} inputs in {took:?}", target.name, target.cases);
    assert!(is_enough(count, target.cases), "{}: only {count} inputs in {took:?}: it is slow", target.name);
}

fn is_enough(count: usize, cases: usize) -> bool {
    count >= cases.div_ceil(PART)
}

/// Processor time that this thread has used: what else runs on the machine makes no difference.
fn time_of_thread() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default()
}

/// The same for the same seed.
fn inputs(target: &Target, seeds: &[Vec<u8>], seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut numbers = Numbers::of(seed);
    (0..target.cases).map(move |_| mutated(seeds, target.words, &mut numbers))
}

/// The target's seeds, in order of their files' names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).expect("a seed")).collect()
}

#[expect(clippy::print_stderr, reason = "the input is what a failure is worth")]
fn check(target: &Target, seed: u64, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.check)(input))) {
        eprintln!("{}", told(target.name, seed, input));
        resume_unwind(panic);
    }
}

/// Text that `.ci/run` takes for final: a pass with another seed proves nothing.
fn told(name: &str, seed: u64, input: &[u8]) -> String {
    let mut hex = String::with_capacity(2 * input.len());
    for byte in input {
        let _ = write!(hex, "{byte:02x}");
    }
    format!(
        "VIOLATION  {name}: \"{}\"\n    again: {SEED}={seed} cargo test -p edges {name}\n    \
         to keep it: echo {hex} | xxd -r -p >tests/edges/corpus/{name}/found",
        input.escape_ascii()
    )
}

fn mutated(seeds: &[Vec<u8>], words: &[&str], numbers: &mut Numbers) -> Vec<u8> {
    let mut input = numbers.one_of(seeds).clone();
    for _ in 0..=numbers.below(MOST_CHANGES) {
        let at = numbers.index(input.len() + 1);
        let end = (at + numbers.index(16)).min(input.len());
        match numbers.below(7) {
            0 if at < input.len() => input[at] ^= 1 << numbers.below(8),
            1 if at < input.len() => input[at] = numbers.byte(),
            2 => drop(input.drain(at..end)),
            3 => {
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            4 => {
                let other = numbers.one_of(seeds);
                let from = numbers.index(other.len() + 1);
                input.splice(at..end, other[from..].iter().copied());
            }
            // Twice as often as each of the others: chance alone finds no word.
            _ if !words.is_empty() => {
                let word = numbers.one_of(words).bytes();
                let end = if numbers.below(2) == 0 { at } else { end };
                input.splice(at..end, word);
            }
            _ => input.insert(at, numbers.byte()),
        }
        input.truncate(LONGEST);
    }
    input
}

// === impl Numbers ===

impl Numbers {
    /// Seeds beside each other begin far from each other, and none with 0, where the row ends
    /// (`SplitMix64`'s finalizer).
    fn of(seed: u64) -> Self {
        let mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)).max(1))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    fn index(&mut self, end: usize) -> usize {
        usize::try_from(self.below(end as u64)).unwrap_or_default()
    }

    fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap_or_default()
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.index(all.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TARGETS;

    #[test]
    fn a_seed_repeats_its_inputs_and_another_one_makes_others() {
        let target = TARGETS.first().expect("a target");
        let seeds = corpus(target.name);
        let some = |seed| inputs(target, &seeds, seed).take(50).collect::<Vec<_>>();
        assert_eq!(some(7), some(7));
        assert_ne!(some(7), some(8));
        assert_eq!(some(0).len(), 50);
    }

    #[test]
    fn few_inputs_are_not_enough() {
        let cases = [(500, 10), (501, 11), (100_000, 2_000)];
        for (cases, least) in cases {
            assert!(is_enough(least, cases) && !is_enough(least - 1, cases), "{least} of {cases}");
        }
        assert!(TARGETS.iter().all(|target| !is_enough(0, target.cases)));
    }

    /// With one seed for all runs, no run would find more than the others.
    #[test]
    fn each_run_has_a_seed_of_its_own() {
        if std::env::var(SEED).is_err() {
            let before = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_nanos();
            let hour = 3_600_000_000_000;
            assert!(u128::from(*OF_RUN).abs_diff(before) < hour, "{} is not of this time", *OF_RUN);
        }
    }

    #[test]
    fn what_was_found_can_be_repeated_and_kept() {
        let told = told("link", 7, b"a\0\xff");
        assert!(told.starts_with("VIOLATION  link: \"a\\x00\\xff\""), "{told}");
        assert!(told.contains("EDGES_SEED=7 cargo test -p edges link"));
        assert!(told.contains("echo 6100ff | xxd -r -p >tests/edges/corpus/link/found"));
    }
}
