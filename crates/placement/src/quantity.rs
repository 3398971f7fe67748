//! Quantities of resources as Kubernetes writes them: `1500m`, `8Gi`, `1e3`.

mod notation;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use self::notation::{FRACTIONS, InvalidQuantity, POWERS, power, rounded};
use crate::numbers;

/// A decimal number with its suffix applied: `mantissa` × 10^`scale`, exactly.
///
/// Parts finer than nano are rounded away from zero, as Kubernetes does. The scale is that of the
/// text, since the nearest double depends on it ([`Quantity::approximate`]).
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    mantissa: i128,
    scale: i32,
    /// The value in units of 10^-9.
    nanos: i128,
}

const NANO: i32 = -9;
/// Most digits of a quantity: more would not fit.
const DIGITS: usize = 30;

// === impl Quantity ===

impl Quantity {
    fn new(mantissa: i128, scale: i32) -> Result<Self, InvalidQuantity> {
        let (mantissa, scale) = if scale < NANO { (rounded(mantissa, NANO - scale), NANO) } else { (mantissa, scale) };
        let up = power(scale - NANO).ok_or(InvalidQuantity)?;
        let nanos = mantissa.checked_mul(up).ok_or(InvalidQuantity)?;
        Ok(Self { mantissa, scale, nanos })
    }

    /// The nearest double as Go's `AsApproximateFloat64` finds it: the digits times a power of ten.
    /// `0.3` and `300m` differ in the last bit by this.
    pub fn approximate(&self) -> f64 {
        let at = usize::try_from(self.scale.unsigned_abs()).unwrap_or(usize::MAX);
        let table: &[f64] = if self.scale < 0 { &FRACTIONS } else { &POWERS };
        numbers::float_of_wide(self.mantissa) * table.get(at).copied().unwrap_or(f64::NAN)
    }

    /// The value, if it is whole and fits.
    pub fn integer(&self) -> Option<i64> {
        let one = power(-NANO)?;
        (self.nanos % one == 0).then(|| i64::try_from(self.nanos / one).ok()).flatten()
    }

    pub fn sign(&self) -> i64 {
        i64::try_from(self.nanos.signum()).unwrap_or(0)
    }

    pub fn plus(&self, other: &Self) -> Option<Self> {
        Self::new(self.nanos.checked_add(other.nanos)?, NANO).ok()
    }

    pub fn minus(&self, other: &Self) -> Option<Self> {
        Self::new(self.nanos.checked_sub(other.nanos)?, NANO).ok()
    }
}

impl From<i64> for Quantity {
    fn from(value: i64) -> Self {
        let mantissa = i128::from(value);
        Self { mantissa, scale: 0, nanos: mantissa * 1_000_000_000 }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Quantity {
        text.parse().unwrap_or_else(|_| panic!("{text} is a quantity"))
    }

    #[test]
    fn suffixes_are_worked_in() {
        for (text, same) in [
            ("1k", "1000"),
            ("1Ki", "1024"),
            ("1500m", "1.5"),
            ("1.5Gi", "1610612736"),
            ("1e3", "1000"),
            ("1E3", "1000"),
            ("1E", "1e18"),
            ("100u", "0.1m"),
            ("+2", "2"),
            ("0.1n", "1n"),
            ("-0.1n", "-1n"),
            (".5", "500m"),
            ("5.", "5"),
        ] {
            assert_eq!(parsed(text), parsed(same), "{text}");
        }
        assert!(parsed("1Gi") > parsed("1G") && parsed("-1") < parsed("0"));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "-", ".", "1.2.3", "1 Gi", "Gi", "1gi", "1e", "1e99", "0x1", "1K", "١"] {
            assert_eq!(text.parse::<Quantity>(), Err(InvalidQuantity), "{text}");
        }
    }

    #[test]
    fn the_nearest_double_is_the_one_that_go_finds() {
        let bits = |text: &str| parsed(text).approximate().to_bits();
        assert_eq!(bits("8Gi"), 8_589_934_592_f64.to_bits());
        assert_eq!(bits("300m"), (300.0 * 1e-3_f64).to_bits());
        assert_eq!(bits("0.3"), (3.0 * 1e-1_f64).to_bits());
        assert_ne!(bits("0.3"), bits("300m"));
    }

    #[test]
    fn whole_numbers_sums_and_signs() {
        assert_eq!((parsed("2k").integer(), parsed("1m").integer()), (Some(2000), None));
        assert_eq!((parsed("-1m").sign(), parsed("0").sign()), (-1, 0));
        assert_eq!(parsed("1k").plus(&parsed("24")).unwrap(), parsed("1024"));
        assert_eq!(parsed("1").minus(&Quantity::from(3)).unwrap(), parsed("-2"));
    }
}
