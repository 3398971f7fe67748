//! Reads a quantity as Kubernetes writes it.

use std::str::FromStr;

use super::{DIGITS, NANO, Quantity};

/// The text is not a quantity, or is beyond about ±10^29.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
pub struct InvalidQuantity;

/// 10^0 to 10^30, the nearest double each: multiplying would add errors.
pub(super) const POWERS: [f64; 31] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30,
];
/// 10^0 to 10^-9.
pub(super) const FRACTIONS: [f64; 10] = [1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9];

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

pub(super) fn power(exponent: i32) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// `mantissa` without its last `digits`, rounded away from zero.
pub(super) fn rounded(mantissa: i128, digits: i32) -> i128 {
    let Some(one) = power(digits) else { return mantissa.signum() };
    mantissa / one + if mantissa % one == 0 { 0 } else { mantissa.signum() }
}
