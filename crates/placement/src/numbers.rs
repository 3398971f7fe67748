//! Conversions between integers and floating point, each with its loss described.

/// The nearest double.
#[expect(clippy::cast_precision_loss, reason = "the nearest is what is asked for")]
pub fn float(value: i64) -> f64 {
    value as f64
}

/// The nearest double.
#[expect(clippy::cast_precision_loss, reason = "the nearest is what is asked for")]
pub fn float_of_unsigned(value: u64) -> f64 {
    value as f64
}

/// The nearest double.
#[expect(clippy::cast_precision_loss, reason = "the nearest is what is asked for")]
pub fn float_of_wide(value: i128) -> f64 {
    value as f64
}

/// Truncates towards zero, as Go's `int64(x)` does for values that fit; otherwise the nearest
/// bound, and 0 for NaN.
#[expect(clippy::cast_possible_truncation, reason = "truncation is what is asked for")]
pub fn truncated(value: f64) -> i64 {
    value as i64
}

/// The same number as an integer, if it is one that fits.
pub fn exact(value: f64) -> Option<i64> {
    let is_inside = (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value);
    (is_inside && value.fract() == 0.0).then(|| truncated(value))
}

/// A count as a double: exact for every count that fits memory.
pub fn count(value: usize) -> f64 {
    float(i64::try_from(value).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_is_towards_zero_and_never_wraps() {
        assert_eq!((truncated(-33.9), truncated(33.9)), (-33, 33));
        assert_eq!((truncated(1e300), truncated(f64::NAN)), (i64::MAX, 0));
        assert_eq!((exact(2.0), exact(2.5), exact(9.3e18), exact(f64::INFINITY)), (Some(2), None, None, None));
    }
}
