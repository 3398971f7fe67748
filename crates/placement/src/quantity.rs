//! Quantities of resources as Kubernetes writes them: `1500m`, `8Gi`, `1e3`.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

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

/// The text is not a quantity, or is beyond about ±10^29.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
pub struct InvalidQuantity;

const NANO: i32 = -9;
/// Most digits of a quantity: more would not fit.
const DIGITS: usize = 30;
/// 10^0 to 10^30, the nearest double each: multiplying would add errors.
const POWERS: [f64; 31] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30,
];
/// 10^0 to 10^-9.
const FRACTIONS: [f64; 10] = [1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9];

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

impl FromStr for Quantity {
    type Err = InvalidQuantity;

    fn from_str(text: &str) -> Result<Self, InvalidQuantity> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let length = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(length);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = || whole.bytes().chain(fraction.bytes());
        if digits().count() == 0 || digits().count() > DIGITS || fraction.contains('.') {
            return Err(InvalidQuantity);
        }
        let mantissa = digits().fold(0, |value: i128, digit| value * 10 + i128::from(digit - b'0'));
        let (factor, exponent) = factor(suffix).ok_or(InvalidQuantity)?;
        let mantissa = mantissa.checked_mul(factor).ok_or(InvalidQuantity)?;
        let signed = if text.starts_with('-') { -mantissa } else { mantissa };
        Self::new(signed, exponent - i32::try_from(fraction.len()).map_err(|_| InvalidQuantity)?)
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

/// The meaning of a suffix: a factor, and a power of ten.
fn factor(suffix: &str) -> Option<(i128, i32)> {
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(at) = decimal.iter().position(|known| *known == suffix) {
        return Some((1, i32::try_from(at).ok()? * 3 + NANO));
    }
    if let Some(at) = binary.iter().position(|known| *known == suffix) {
        return Some((1 << (10 * (at + 1)), 0));
    }
    let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    (-30..=30).contains(&exponent).then_some((1, exponent))
}

fn power(exponent: i32) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// `mantissa` without its last `digits`, rounded away from zero.
fn rounded(mantissa: i128, digits: i32) -> i128 {
    let Some(one) = power(digits) else { return mantissa.signum() };
    mantissa / one + if mantissa % one == 0 { 0 } else { mantissa.signum() }
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
