//! Finds HTTP/2 frames in a byte stream, and reads only their heads (RFC 9113 §4.1).

use std::ops::ControlFlow;

/// The fields of a frame's head that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Length of the payload.
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
}

/// Finds the frames of a byte stream that arrives in any pieces.
#[derive(Debug, Default)]
pub struct Passing {
    /// Bytes before the next frame begins.
    left: usize,
    /// The incomplete head, with this many bytes.
    head: [u8; HEAD],
    known: usize,
}

pub const HEADERS: u8 = 1;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;
/// Flag of SETTINGS.
pub const ACK: u8 = 1;
const HEAD: usize = 9;

// === impl FrameHead ===

impl FrameHead {
    /// Whether the frame has a header block, or a part of one.
    pub fn is_of_a_block(self) -> bool {
        matches!(self.kind, HEADERS | CONTINUATION)
    }
}

// === impl Passing ===

impl Passing {
    /// The first frame begins after this many bytes.
    pub fn behind(bytes: usize) -> Self {
        Self { left: bytes, ..Self::default() }
    }

    /// Returns how many of these bytes pass: all, or those before `frame` breaks off. `frame` gets
    /// each frame as soon as its head is complete; those 9 bytes pass in any case.
    pub fn pass(&mut self, bytes: &[u8], mut frame: impl FnMut(FrameHead) -> ControlFlow<()>) -> usize {
        let mut at = 0;
        while at < bytes.len() {
            let here = self.left.min(bytes.len() - at);
            at += here;
            self.left -= here;
            if self.left > 0 {
                break;
            }
            let more = (HEAD - self.known).min(bytes.len() - at);
            self.head[self.known..self.known + more].copy_from_slice(&bytes[at..at + more]);
            at += more;
            self.known += more;
            if self.known == HEAD {
                self.known = 0;
                let [a, b, c, kind, flags, ..] = self.head;
                let length = u32::from_be_bytes([0, a, b, c]) as usize;
                self.left = length;
                if frame(FrameHead { length, kind, flags }).is_break() {
                    break;
                }
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DATA of 0, 3 and 300 bytes, and a head, after a preface of 5 bytes.
    fn stream() -> Vec<u8> {
        let frame = |kind: u8, length: usize| {
            let [_, _, a, b] = u32::try_from(length).unwrap().to_be_bytes();
            [&[0, a, b, kind, 0, 0, 0, 0, 1], vec![HEADERS; length].as_slice()].concat()
        };
        [b"hello".to_vec(), frame(0, 0), frame(0, 3), frame(HEADERS, 2), frame(0, 300)].concat()
    }

    const FRAMES: [(u8, usize); 4] = [(0, 0), (0, 3), (HEADERS, 2), (0, 300)];

    #[test]
    fn frames_are_found_however_the_bytes_are_cut() {
        let stream = stream();
        for size in 1..stream.len() {
            let (mut passing, mut seen) = (Passing::behind(5), Vec::new());
            for piece in stream.chunks(size) {
                let passed = passing.pass(piece, |frame| {
                    seen.push((frame.kind, frame.length));
                    ControlFlow::Continue(())
                });
                assert_eq!(passed, piece.len());
            }
            assert_eq!(seen, FRAMES, "in pieces of {size}");
        }
    }

    #[test]
    fn who_breaks_off_goes_on_where_it_was() {
        let stream = stream();
        let (mut passing, mut seen, mut rest) = (Passing::behind(5), Vec::new(), stream.as_slice());
        while !rest.is_empty() {
            let passed = passing.pass(rest, |frame| {
                seen.push((frame.kind, frame.length));
                ControlFlow::Break(())
            });
            assert!(passed > 0);
            rest = &rest[passed..];
        }
        assert_eq!(seen, FRAMES);
    }
}
