//! The span that a request says it belongs to: W3C Trace Context, `traceparent` and `tracestate`.

use std::str::FromStr as _;

use http::{HeaderMap, HeaderName, HeaderValue};
use opentelemetry::Context;
use opentelemetry::propagation::{Extractor, Injector, TextMapPropagator as _};
use opentelemetry::trace::{SpanContext, TraceContextExt as _};
use opentelemetry_sdk::propagation::TraceContextPropagator;

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Longest `tracestate` that is kept, in bytes: what every participant has to pass on (Trace
/// Context §3.3.1.5). Each span of the request holds it.
const LONGEST_STATE: usize = 512;

struct Sent<'a>(&'a HeaderMap);
struct Sending<'a>(&'a mut HeaderMap);

/// Whether a request says anything of the kind.
pub fn is_in(headers: &HeaderMap) -> bool {
    headers.contains_key(TRACEPARENT)
}

/// The caller's span. `None`: it names none, or not in the only way that there is.
pub fn read(headers: &HeaderMap) -> Option<SpanContext> {
    // The propagator pads ids that are too short, and takes "+0" for a version.
    if !headers.get(TRACEPARENT).is_some_and(|value| has_ids(value.as_bytes())) {
        return None;
    }
    let context = TraceContextPropagator::new().extract_with_context(&Context::new(), &Sent(headers));
    let span = context.span().span_context().clone();
    span.is_valid().then_some(span)
}

/// Whether the ids are where they are in every version, and as long; version 0 has nothing after
/// them (Trace Context §3.2.2).
fn has_ids(parent: &[u8]) -> bool {
    let is_hex = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut parts = parent.split(|byte| *byte == b'-');
    let mut is_next = |length| parts.next().is_some_and(|part| part.len() == length && is_hex(part));
    [2, 32, 16, 2].into_iter().all(&mut is_next) && (parts.next().is_none() || !parent.starts_with(b"00"))
}

/// Makes `span` the parent of what the receiver records.
pub fn write(span: &SpanContext, headers: &mut HeaderMap) {
    let context = Context::new().with_remote_span_context(span.clone());
    TraceContextPropagator::new().inject_context(&context, &mut Sending(headers));
}

/// The receiver of these shall decide by itself.
pub fn remove(headers: &mut HeaderMap) {
    headers.remove(TRACEPARENT);
    headers.remove(TRACESTATE);
}

// === impl Sent ===

impl Extractor for Sent<'_> {
    /// A header that comes twice says nothing (Trace Context §3.2.1), nor does a long state.
    fn get(&self, key: &str) -> Option<&str> {
        let mut values = self.0.get_all(key).iter();
        let (value, None) = (values.next()?, values.next()) else { return None };
        value.to_str().ok().filter(|text| text.len() <= LONGEST_STATE)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}

// === impl Sending ===

impl Injector for Sending<'_> {
    fn set(&mut self, key: &str, value: String) {
        let Ok(name) = HeaderName::from_str(key) else { return };
        // An empty state is as good as none, and a line less.
        match HeaderValue::try_from(value) {
            Ok(value) if !value.is_empty() => drop(self.0.insert(name, value)),
            _ => drop(self.0.remove(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        let line = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        lines.iter().map(line).collect()
    }

    #[test]
    fn a_parent_is_read_as_it_was_written() {
        let sent = headers(&[("traceparent", PARENT), ("tracestate", "a=1,b=2")]);
        let span = read(&sent).unwrap();
        let mut passed = headers(&[("traceparent", "another"), ("accept", "*/*")]);
        write(&span, &mut passed);
        assert_eq!((&passed["traceparent"], &passed["tracestate"]), (&sent["traceparent"], &sent["tracestate"]));
        remove(&mut passed);
        assert_eq!(passed.keys().collect::<Vec<_>>(), ["accept"]);
    }

    #[test]
    fn what_names_no_single_span_is_no_parent() {
        for lines in [
            &[][..],
            &[("tracestate", "a=1")],
            &[("traceparent", PARENT), ("traceparent", PARENT)],
            &[("traceparent", "00-00000000000000000000000000000000-0000000000000000-01")],
            &[("traceparent", "00-4bf92f35-00f067aa0ba902b7-01")],
            &[("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x")],
            &[("traceparent", "+0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")],
            &[("traceparent", "garbage")],
            &[("traceparent", "")],
        ] {
            assert_eq!(read(&headers(lines)), None, "{lines:?}");
        }
    }

    #[test]
    fn a_state_is_kept_as_long_as_it_is_short() {
        for (length, kept) in [(LONGEST_STATE, true), (LONGEST_STATE + 1, false)] {
            let state = format!("a={}", "x".repeat(254)) + "," + &format!("b={}", "y".repeat(length - 259));
            assert_eq!(state.len(), length);
            let span = read(&headers(&[("traceparent", PARENT), ("tracestate", &state)])).unwrap();
            let mut passed = headers(&[("tracestate", &state)]);
            write(&span, &mut passed);
            assert_eq!(passed.contains_key("tracestate"), kept, "{length}");
        }
    }

    proptest::proptest! {
        /// Whatever is sent: what is read of it is one span, and is read again as it was written.
        #[test]
        fn what_is_read_is_written_as_it_was_read(
            parent in "(00|01|ff|0g)-[0-9a-fA-F]{31,33}-[0-9a-f]{15,17}-[0-9a-f]{1,3}(-x)?|[ -~]{0,60}",
            state in "([a-z]{1,3}=[ -~]{0,8},?){0,5}",
        ) {
            let sent = headers(&[("traceparent", &parent), ("tracestate", &state)]);
            if let Some(span) = read(&sent) {
                let mut passed = HeaderMap::new();
                write(&span, &mut passed);
                proptest::prop_assert_eq!(read(&passed), Some(span.clone()), "{}", parent);
                let id = parent.to_lowercase();
                proptest::prop_assert!(id.contains(&span.trace_id().to_string()), "{} of {}", span.trace_id(), id);
            }
        }
    }
}
