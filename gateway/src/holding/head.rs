//! Heads that are held: their size, and the account that counts it until they are dropped.

use auth::User;
use bytes::Bytes;
use http::header::DATE;
use http::{HeaderMap, HeaderValue};

use super::backlog::HeldBytes;
use super::{Account, COPIES_OF_TABLE};

/// Bytes of a header line in addition to its text and its place in a table. A value counts twice,
/// because one that arrived in Huffman code has a buffer of twice the coded length.
const LINE: usize = 64;
/// Bytes of an entry of a table of headers: `Bucket` in `header/map.rs` of http 1.5.0.
const ENTRY: usize = 104;
/// Bytes of each further value of one name: `ExtraValue` there.
const FURTHER: usize = 72;
/// Bytes of a table for which other counts, such as that of a request, have room: some 48 lines.
const USUAL_TABLE: usize = 5 * 1024;
/// Bytes of a head for which a connection has room anyway.
const USUAL_HEAD: usize = 16 * 1024;
/// Size of a response head, by [`size`], that is negligible beside its request's count.
const SMALL_HEAD: usize = 2 * 1024;

/// Bytes of memory for these headers.
pub fn size(headers: &HeaderMap) -> usize {
    lines(headers) + table(headers)
}

/// Bytes of memory for the table of these headers, beyond a usual one: thousands of lines of a few
/// bytes have most of their memory there. It grows by doubling, and earlier if names collide, so
/// its capacity counts.
pub fn table(headers: &HeaderMap) -> usize {
    let further = headers.len().saturating_sub(headers.keys_len());
    (ENTRY * headers.capacity() + FURTHER * further).saturating_sub(USUAL_TABLE)
}

/// Bytes of memory for the lines of these headers without their table, as HTTP/1.1 writes them.
pub fn lines(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| LINE + name.as_str().len() + 2 * value.len()).sum()
}

/// Bytes of memory for the headers that tell a member who `user` is: those of one request, with all
/// copies of their table.
pub fn identity(user: &User) -> usize {
    let lines = user.groups.len() + user.extra.values().map(Vec::len).sum::<usize>();
    user.bytes() + COPIES_OF_TABLE * FURTHER * lines
}

/// Memory that a buffer keeps after a head of this many bytes. Usual heads are part of
/// [`CONNECTION`](super::CONNECTION).
pub fn room(head: usize) -> usize {
    if head > USUAL_HEAD { head.next_power_of_two() } else { 0 }
}

/// Counts a response head until HTTP/2 drops it, written or void, and keeps the request's account
/// until then. Pieces of a body ([`hold_piece`](super::hold_piece)) do so too, so a small head
/// counts only if it `is_all` of the response.
pub fn hold_head(account: &Account, headers: &mut HeaderMap, is_all: bool) {
    let bytes = size(headers);
    if bytes <= SMALL_HEAD && !is_all {
        return;
    }
    // Each response has one by now (RFC 9110 §6.6.1).
    let Some(value) = headers.get_mut(DATE) else { return };
    hold_with(account, bytes, value);
}

/// Counts trailers like [`hold_head`]: their sender has finished, and has dropped the request.
pub fn hold_trailers(account: &Account, trailers: &mut HeaderMap) {
    let bytes = size(trailers);
    if let Some(value) = trailers.values_mut().next() {
        hold_with(account, bytes, value);
    }
}

/// Counts a head or trailers of this many bytes for as long as HTTP/2 keeps `value` of them.
fn hold_with(account: &Account, bytes: usize, value: &mut HeaderValue) {
    hold_in(value, |text| HeldBytes::counted(text, account.tally(), bytes));
}

/// Replaces a value by what `held` makes of a copy of its text: the same text, in memory that also
/// keeps what is to be dropped when HTTP/2 drops the head.
pub fn hold_in(value: &mut HeaderValue, held: impl FnOnce(Bytes) -> Bytes) {
    if let Ok(mut held) = HeaderValue::from_maybe_shared(held(Bytes::copy_from_slice(value.as_bytes()))) {
        // Otherwise HPACK's table would keep it.
        held.set_sensitive(true);
        *value = held;
    }
}
