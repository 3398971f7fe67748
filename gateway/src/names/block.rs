//! A header block, read as far as its fields begin and end (RFC 7541 §5 and §6). Neither tables nor Huffman code are needed for that.

use super::{CONTINUATION, END_HEADERS, FRAME, FRAME_HEAD, Frame, HEADERS};

/// The name that stands for what was taken out.
pub const MARK: &str = "cluster-gateway-name-too-long";

/// Encoded bytes. A name of 64 KiB takes 40 KiB in the shortest code, and nobody's takes one of them.
const MOST_NAME: usize = 32 * 1024;
/// What the table of a connection holds, as we announce no more (RFC 9113 §6.5.2). A longer entry empties it (RFC 7541 §4.4).
const TABLE: usize = 4096;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

/// A field of a block.
struct Field {
    end: usize,
    is_long: bool,
    is_indexed: bool,
}

/// The same block in frames without the fields whose names are too long; `None` if there are none, or if it is not a block.
pub fn without_long_names(frames: &[u8]) -> Option<Vec<u8>> {
    let first = Frame::read(frames)?;
    let stream = frames.get(5..FRAME_HEAD)?;
    let block = payloads(frames)?;
    let (mut kept, mut at, mut found) = (Vec::new(), 0, false);
    while at < block.len() {
        let field = field(&block, at)?;
        if field.is_long {
            found = true;
            if field.is_indexed {
                literal(&mut kept, 0x40, b"x", &[b'x'; TABLE]);
            }
        } else {
            kept.extend_from_slice(&block[at..field.end]);
        }
        at = field.end;
    }
    if !found {
        return None;
    }
    literal(&mut kept, 0, MARK.as_bytes(), b"");
    let mut mended = Vec::with_capacity(kept.len() + 1024);
    let last = kept.len().div_ceil(FRAME) - 1;
    for (number, part) in kept.chunks(FRAME).enumerate() {
        let kind = if number == 0 { HEADERS } else { CONTINUATION };
        let flags = if number == 0 { first.flags & !(PADDED | PRIORITY) } else { 0 };
        let flags = if number == last { flags | END_HEADERS } else { flags };
        mended.extend_from_slice(&u32::try_from(part.len()).ok()?.to_be_bytes()[1..]);
        mended.extend_from_slice(&[kind, flags]);
        mended.extend_from_slice(stream);
        mended.extend_from_slice(part);
    }
    Some(mended)
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
    let plain = |end| Some(Field { end, is_long: false, is_indexed: false });
    let (prefix, is_indexed) = match first {
        0x80.. => return plain(integer(block, at, 7)?.1),
        0x40.. => (6, true),
        0x20.. => return plain(integer(block, at, 5)?.1),
        _ => (4, false),
    };
    let (index, mut end) = integer(block, at, prefix)?;
    let mut is_long = false;
    if index == 0 {
        let (length, begins) = integer(block, end, 7)?;
        is_long = length > MOST_NAME;
        end = begins + length;
    }
    let (length, begins) = integer(block, end, 7)?;
    let end = begins + length;
    (end <= block.len()).then_some(Field { end, is_long, is_indexed })
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
fn literal(block: &mut Vec<u8>, first: u8, name: &[u8], value: &[u8]) {
    block.push(first);
    block.push(u8::try_from(name.len()).unwrap_or_default());
    block.extend_from_slice(name);
    let length = value.len();
    if length < 127 {
        block.push(u8::try_from(length).unwrap_or_default());
    } else {
        let rest = length - 127;
        let low = u8::try_from(rest & 0x7f).unwrap_or_default() | 0x80;
        block.extend_from_slice(&[127, low, u8::try_from(rest >> 7).unwrap_or_default()]);
    }
    block.extend_from_slice(value);
}
