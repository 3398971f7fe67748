//! A header block, read as far as its fields begin and end (RFC 7541 §5 and §6). Neither tables nor
//! Huffman code are needed for that.

use http::HeaderValue;

use super::frames::Frames;
use super::{FRAME_HEAD, Frame, HEADERS};
use crate::headers::size::Unfit;

/// The name of a field that has the head refused.
pub const MARK: &str = "cluster-gateway-unfit";
const TOO_LARGE: &[u8] = b"too large";

/// Encoded bytes. A name of 64 KiB takes 40 KiB in the shortest code, and nobody's takes one of
/// them.
pub const MOST_NAME: usize = 32 * 1024;
/// What the table of a connection holds, as we announce no more (RFC 9113 §6.5.2). A longer entry
/// empties it (RFC 7541 §4.4).
const TABLE: usize = 4096;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

/// A field of a block.
struct Field {
    end: usize,
    is_long: bool,
    is_indexed: bool,
    /// Its name may be a pseudo-header's.
    may_be_pseudo: bool,
}

/// A block as it is passed on.
pub struct Mended {
    pub frames: Vec<u8>,
    /// [`MARK`] was put in.
    pub is_marked: bool,
    /// Bytes that what is remembered of it may keep in memory: h2 remembers pseudo-headers as
    /// slices of the block they came in. In honest blocks they stand at the beginning, which is
    /// read before the rest has come.
    pub pinned: usize,
}

/// The same block without the fields whose names are too long, in frames of at most so many bytes.
/// `None` if it is not a block.
pub fn mended(frames: &[u8], most: usize) -> Option<Mended> {
    let first = Frame::read(frames)?;
    let stream = frames.get(5..FRAME_HEAD)?.try_into().ok()?;
    let block = payloads(frames)?;
    let mut mended = Frames::new(first.flags & !(PADDED | PRIORITY), stream, most, block.len());
    let (mut at, mut found, mut pins) = (0, false, false);
    while at < block.len() {
        let field = field(&block, at)?;
        if !field.is_long {
            mended.put(&block[at..field.end]);
        } else if field.is_indexed {
            mended.put(&literal(0x40, b"x", &[b'x'; TABLE]));
        }
        found |= field.is_long;
        pins |= at > most && field.is_indexed && field.may_be_pseudo;
        at = field.end;
    }
    if found {
        mended.put(&mark(Unfit::LongName));
    }
    let (frames, is_marked) = mended.end(found);
    Some(Mended { frames, is_marked, pinned: if pins { block.len() } else { 0 } })
}

/// For the one request or answer to be refused. The value says why.
pub fn mark(why: Unfit) -> Vec<u8> {
    literal(0, MARK.as_bytes(), if why == Unfit::TooLarge { TOO_LARGE } else { b"" })
}

/// Why a head with this mark is refused.
pub fn cause(mark: &HeaderValue) -> Unfit {
    if mark.as_bytes() == TOO_LARGE { Unfit::TooLarge } else { Unfit::LongName }
}

/// The block without frames, padding and priority.
fn payloads(mut frames: &[u8]) -> Option<Vec<u8>> {
    let mut block = Vec::with_capacity(frames.len());
    while !frames.is_empty() {
        let frame = Frame::read(frames)?;
        let mut payload = frames.get(FRAME_HEAD..frame.size())?;
        if frame.kind == HEADERS {
            if frame.flags & PADDED != 0 {
                let (padding, rest) = payload.split_first()?;
                payload = rest.get(..rest.len().checked_sub(usize::from(*padding))?)?;
            }
            if frame.flags & PRIORITY != 0 {
                payload = payload.get(5..)?;
            }
        }
        block.extend_from_slice(payload);
        frames = &frames[frame.size()..];
    }
    Some(block)
}

fn field(block: &[u8], at: usize) -> Option<Field> {
    let first = *block.get(at)?;
    let plain = |end| Some(Field { end, is_long: false, is_indexed: false, may_be_pseudo: false });
    let (prefix, is_indexed) = match first {
        0x80.. => return plain(integer(block, at, 7)?.1),
        0x40.. => (6, true),
        0x20.. => return plain(integer(block, at, 5)?.1),
        _ => (4, false),
    };
    let (index, mut end) = integer(block, at, prefix)?;
    let mut is_long = false;
    // By the static table (RFC 7541 appendix A), or one that is not known here.
    let mut may_be_pseudo = matches!(index, 1..=7 | 62..);
    if index == 0 {
        let (length, begins) = integer(block, end, 7)?;
        is_long = length > MOST_NAME;
        // A colon, as it is or in Huffman code (1011100).
        may_be_pseudo = block.get(begins).is_some_and(|first| *first == b':' || first >> 1 == 0b101_1100);
        end = begins + length;
    }
    let (length, begins) = integer(block, end, 7)?;
    let end = begins + length;
    (end <= block.len()).then_some(Field { end, is_long, is_indexed, may_be_pseudo })
}

/// An integer of RFC 7541 §5.1, and where it ends. None that is longer than a block may be.
fn integer(block: &[u8], mut at: usize, prefix: u32) -> Option<(usize, usize)> {
    let most = (1_usize << prefix) - 1;
    let mut value = usize::from(*block.get(at)?) & most;
    at += 1;
    if value < most {
        return Some((value, at));
    }
    for shift in [0, 7, 14, 21] {
        let byte = *block.get(at)?;
        at += 1;
        value += usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value, at));
        }
    }
    None
}

/// A literal with a name of its own, of kind `first`, as it is. Names are shorter than 127 bytes.
fn literal(first: u8, name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut literal = vec![first, u8::try_from(name.len()).unwrap_or_default()];
    literal.extend_from_slice(name);
    let length = value.len();
    if length < 127 {
        literal.push(u8::try_from(length).unwrap_or_default());
    } else {
        let rest = length - 127;
        let low = u8::try_from(rest & 0x7f).unwrap_or_default() | 0x80;
        literal.extend_from_slice(&[127, low, u8::try_from(rest >> 7).unwrap_or_default()]);
    }
    literal.extend_from_slice(value);
    literal
}
