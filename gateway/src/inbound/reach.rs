//! Finds the end of a head's block, within limits.
//!
//! h2 would find the same errors, but only after it has taken everything before them into memory.

use super::{CONTINUATION, END_HEADERS, FRAME, Frame};
use crate::headers::size::MOST_BYTES;

/// The limits for one head. A head beyond the first three ends the connection, as in h2; beyond the
/// others it is cut and refused.
#[derive(Clone, Copy)]
pub struct Reach {
    /// Most frames: held bytes are searched again with each read.
    pub frames: usize,
    /// Largest payload of a frame: peers may send no more.
    pub frame: usize,
    /// Most bytes of one head. A longer one ends the connection: h2 would take several times as
    /// much into memory until the head ends, and that counts for no user.
    pub held: usize,
    /// Most bytes of a header list, as we announce it (RFC 9113 §6.5.2): h2 keeps no field beyond
    /// it. A block of more bytes is refused in any case, see [`OF_CLIENTS`].
    pub list: usize,
    /// Longest encoded field, in bytes. h2 never frees the buffer into which it decodes.
    pub field: usize,
}

/// Most bytes of a header list from a member. h2 reads more, and resets the stream; it ends the
/// *connection* at four times this, or when 1.25 times this arrives in frames (`max_continuation`
/// of its `codec/framed_read.rs`), which is more than [`OF_MEMBERS`] passes on.
pub const LIST_OF_MEMBERS: u32 = 12 * 1024 * 1024;
/// We announce no larger frames. h2 takes 80 CONTINUATION frames (1 MiB of 16 KiB, and a quarter).
///
/// h2 answers a header list beyond the one that we announce by itself: 431, without a word. So the
/// gateway cuts and answers what no member may get: a field of more than [`MOST_BYTES`], and a
/// block of more than twice that. Of such a block, more than [`MOST_BYTES`] are plain or more than
/// [`MOST_BYTES`] are in Huffman code; either is too much for a member, whatever the block decodes
/// to.
pub const OF_CLIENTS: Reach =
    Reach { frames: 100, frame: FRAME, held: 2 * 1024 * 1024, list: 2 * MOST_BYTES, field: MOST_BYTES };
/// API servers relay heads of up to 10 MiB (`net/http.Transport.MaxResponseHeaderBytes`), of which
/// HPACK makes at most 11.7 (lines of six bytes take seven), and frame headers slightly more. The
/// frame size is the one that we announce to members. A head with a longer field is not passed on.
pub const OF_MEMBERS: Reach =
    Reach { frames: 1024, frame: 64 * 1024, held: 12 * 1024 * 1024, list: LIST_OF_MEMBERS as usize, field: MOST_BYTES };
/// A field counts at least as much in a header list: 32 bytes more than its name.
const LEAST_FIELD: usize = 33;

// === impl Reach ===

impl Reach {
    /// Most fields of one head that h2 keeps.
    pub fn most_fields(self) -> usize {
        self.list / LEAST_FIELD
    }
}

/// Where the block at the beginning of `bytes` ends; `None` if its end has not arrived yet.
///
/// # Errors
/// Why the block is invalid.
pub fn block(bytes: &[u8], reach: Reach) -> Result<Option<usize>, &'static str> {
    let mut at = 0;
    for number in 0..reach.frames {
        let Some(frame) = Frame::read(&bytes[at..]) else { return Ok(None) };
        if at > reach.held {
            return Err("a head beyond the limit");
        }
        if frame.length > reach.frame {
            return Err("a frame beyond the limit");
        }
        if number > 0 && frame.kind != CONTINUATION {
            return Err("another frame within a head");
        }
        at += frame.size();
        if bytes.len() < at {
            return Ok(None);
        }
        if frame.flags & END_HEADERS != 0 {
            return Ok(Some(at));
        }
    }
    Err("a head in too many frames")
}
