//! Any times of an agent or a tunnel-server: none, or possible times of a stream's opening.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use tunnel::Timing;

pub const WORDS: &[&str] =
    &["dial", "agent", ";dur=", "0.412", "1e99", "NaN", "-1", "inf", ",", ";", " ", "=", "\"", "desc=", "4294967.295"];

/// Longest reported time: microseconds in 32 bits.
const LONGEST: Duration = Duration::from_micros(u32::MAX as u64);

pub fn check(input: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(input) else { return };
    let timing = Timing::read(&HeaderMap::from_iter([(http::HeaderName::from_static("server-timing"), value)]));
    for told in [timing.agent(), timing.dial()].into_iter().flatten() {
        assert!(!told.is_zero() && told <= LONGEST, "{told:?}");
    }
}
