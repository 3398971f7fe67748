//! How far a head is followed: where its block ends, and when that is not looked for.

use super::{CONTINUATION, END_HEADERS, FRAME, Frame};

/// How far heads are followed. Beyond, they pass as they are, frame by frame, and h2 judges them.
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

/// A header block, as far as it is there.
pub enum Block {
    Part,
    /// It ends here.
    Whole(usize),
    TooLong,
    /// It is not followed any further, or is none: its frames pass like any others.
    Beyond,
}

/// We announce no larger frames; h2 takes 80 CONTINUATION frames (1 MiB of 16 KiB, and a quarter).
pub const OF_CLIENTS: Reach = Reach { frames: 100, frame: FRAME, held: 2 * 1024 * 1024 };
/// API servers relay heads of up to 10 MiB (`net/http.Transport.MaxResponseHeaderBytes`), which
/// their frames make a little longer. The size of frames is what we announce to members.
pub const OF_MEMBERS: Reach = Reach { frames: 1024, frame: 64 * 1024, held: 12 * 1024 * 1024 };

/// The block that `bytes` begin with.
pub fn block(bytes: &[u8], reach: Reach) -> Block {
    let mut at = 0;
    for number in 0..reach.frames {
        let Some(frame) = Frame::read(&bytes[at..]) else { return Block::Part };
        let follows = number > 0;
        if at > reach.held {
            return Block::TooLong;
        }
        if frame.length > reach.frame || (follows && frame.kind != CONTINUATION) {
            return Block::Beyond;
        }
        at += frame.size();
        if bytes.len() < at {
            return Block::Part;
        }
        if frame.flags & END_HEADERS != 0 {
            return Block::Whole(at);
        }
    }
    Block::Beyond
}
