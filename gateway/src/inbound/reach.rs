//! How far a head is followed: where its block ends, and what is none.
//!
//! h2 would say so as well, but only when it has taken to memory what comes before.

use super::{CONTINUATION, END_HEADERS, FRAME, Frame};

/// How far heads are followed. One that goes further ends the connection, as it would in h2.
#[derive(Clone, Copy)]
pub struct Reach {
    /// Frames of one head: what is held is looked through again at each read.
    pub frames: usize,
    /// Bytes of a frame's payload: no peer may send more.
    pub frame: usize,
    /// Bytes of one head. One that is longer ends the connection: h2 would take some times as much
    /// to memory for as long as it has no end, and nobody counts that.
    pub held: usize,
}

/// We announce no larger frames; h2 takes 80 CONTINUATION frames (1 MiB of 16 KiB, and a quarter).
pub const OF_CLIENTS: Reach = Reach { frames: 100, frame: FRAME, held: 2 * 1024 * 1024 };
/// API servers relay heads of up to 10 MiB (`net/http.Transport.MaxResponseHeaderBytes`), which
/// their frames make a little longer. The size of frames is what we announce to members.
pub const OF_MEMBERS: Reach = Reach { frames: 1024, frame: 64 * 1024, held: 12 * 1024 * 1024 };

/// Where the block ends that `bytes` begin with; `None` if that has not come yet.
///
/// # Errors
/// Why it is none.
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
