//! Inputs made from a corpus, always the same ones: libFuzzer's mutations without its feedback.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use crate::Target;

/// Bytes of an input: long enough for a certificate.
const LONGEST: usize = 4096;
/// Changes to a seed.
const MOST_CHANGES: u64 = 6;

/// Xorshift (Marsaglia 2003, 64 bits).
struct Numbers(u64);

/// Checks the target's corpus and `cases` inputs made of it.
///
/// # Panics
///
/// What must hold does not: the input is on standard error. The corpus is empty or cannot be read.
pub fn run(target: &Target) {
    let seeds = corpus(target.name);
    assert!(!seeds.is_empty(), "{} has no corpus", target.name);
    for seed in &seeds {
        check(target, seed);
    }
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for _ in 0..target.cases {
        check(target, &mutated(&seeds, target.words, &mut numbers));
    }
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
fn check(target: &Target, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.check)(input))) {
        eprintln!("{}: \"{}\"", target.name, input.escape_ascii());
        resume_unwind(panic);
    }
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
            // Twice as often as each of the others: no chance finds a word.
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
