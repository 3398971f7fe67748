//! Any trace context of a caller: none, or one in the only form there is, sent on as it came.
//!
//! Input: `traceparent`, and in a second line `tracestate`.

use http::{HeaderMap, HeaderName, HeaderValue};
use traces::edges::continued;

pub const WORDS: &[&str] = &[
    "00-",
    "01-",
    "ff-",
    "4bf92f3577b34da6a3ce929d0e0e4736",
    "00f067aa0ba902b7",
    "-00f067aa0ba902b7-",
    "00000000000000000000000000000000",
    "0000000000000000",
    "4BF92F3577B34DA6A3CE929D0E0E4736",
    "-01",
    "-00",
    "-01-more",
    "\n",
    "a=1",
    ",",
    "vendor@x=",
    "a=1,a=2",
    " ",
    "\t",
];

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
/// Longest state that is sent on, in bytes.
const LONGEST_STATE: usize = 512;
/// Position of the flags in version 00: after a version, a trace's id and a span's.
const FLAGS: usize = 2 + 1 + 32 + 1 + 16 + 1;

pub fn check(input: &[u8]) {
    let (parent, state) = match input.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&input[..at], Some(&input[at + 1..])),
        None => (input, None),
    };
    let Ok(parent) = HeaderValue::from_bytes(parent) else { return };
    let mut headers = HeaderMap::from_iter([(TRACEPARENT, parent.clone())]);
    if let Some(state) = state.and_then(|state| HeaderValue::from_bytes(state).ok()) {
        headers.insert(TRACESTATE, state);
    }
    let Some(sent) = continued(&headers) else {
        assert!(!is_exact(&parent), "{parent:?} was lost");
        return;
    };
    // Otherwise, a hub's or member's collector would join others' spans.
    let (came, goes) = (ids(&headers[TRACEPARENT]), ids(&sent[TRACEPARENT]));
    assert!(came == goes && goes.is_some(), "{parent:?} went on as {:?}", sent[TRACEPARENT]);
    assert!(sent.get(TRACESTATE).is_none_or(|state| state.len() <= LONGEST_STATE));
    assert_eq!(continued(&sent).map(|again| again[TRACEPARENT].clone()).as_ref(), sent.get(TRACEPARENT));
    headers.append(TRACEPARENT, parent);
    assert!(continued(&headers).is_none(), "one that comes twice says nothing");
}

/// In the form of version 00, which every party has to continue, whatever its flags and the state
/// beside it are (Trace Context §3.2.2, §4.3).
fn is_exact(value: &HeaderValue) -> bool {
    let flags = value.as_bytes().get(FLAGS..).filter(|_| value.len() == FLAGS + 2);
    let flags = flags.is_some_and(|flags| flags.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
    flags && value.as_bytes().starts_with(b"00-") && value.as_bytes()[FLAGS - 1] == b'-' && ids(value).is_some()
}

/// Ids of the trace and the span (Trace Context §3.2.2).
fn ids(value: &HeaderValue) -> Option<(&str, &str)> {
    let mut parts = value.to_str().ok()?.trim().split('-');
    let (version, trace, span) = (parts.next()?, parts.next()?, parts.next()?);
    let is = |text: &str, length| {
        text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    let some = |text: &str| text.bytes().any(|byte| byte != b'0');
    (is(version, 2) && version != "ff" && is(trace, 32) && is(span, 16) && some(trace) && some(span))
        .then_some((trace, span))
}
