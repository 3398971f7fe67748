//! Chance that a seed repeats: `SplitMix64` (Steele, Lea, Flood: Fast Splittable Pseudorandom
//! Number Generators, OOPSLA 2014).

/// A row of numbers, the same for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

// === impl Dice ===

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A row of its own, the same for the same seed and `name`.
    #[must_use]
    pub fn apart(&self, name: &str) -> Self {
        let mut dice = self.clone();
        for byte in name.bytes() {
            dice.0 = dice.next() ^ u64::from(byte);
        }
        dice
    }

    #[expect(clippy::should_implement_trait, reason = "it has no end, and nobody iterates over it")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            let other = usize::try_from(self.below(last as u64 + 1)).expect("an index");
            things.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_names_differ() {
        let row = |mut dice: Dice| (0..4).map(|_| dice.below(1000)).collect::<Vec<_>>();
        let dice = Dice::new(7);
        assert_eq!(row(dice.clone()), row(Dice::new(7)));
        assert_eq!(row(dice.apart("writer")), row(Dice::new(7).apart("writer")));
        assert_ne!(row(dice.apart("writer")), row(dice.apart("reader")));
    }

    #[test]
    fn nothing_is_lost_in_a_shuffle() {
        let mut things: Vec<u32> = (0..20).collect();
        Dice::new(1).shuffle(&mut things);
        assert_ne!(things, (0..20).collect::<Vec<_>>());
        things.sort_unstable();
        assert_eq!(things, (0..20).collect::<Vec<_>>());
    }
}
