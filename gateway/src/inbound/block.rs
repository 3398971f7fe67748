//! Parses a header block far enough to find where its fields begin and end (RFC 7541 §5 and §6).
//! That needs neither tables nor Huffman decoding.

use super::frames::{Frames, literal, mark};
use super::reach::Reach;
use super::{FRAME_HEAD, Frame, HEADERS, huffman};
use crate::headers::size::{MOST_BYTES, Unfit};

/// Longest encoded name, in bytes. A name of 64 KiB takes 40 KiB in the shortest code, and no
/// honest name takes 32 KiB.
pub const MOST_NAME: usize = 32 * 1024;
/// Size of a connection's table, because we announce no more (RFC 9113 §6.5.2). A longer entry
/// empties it (RFC 7541 §4.4).
const TABLE: usize = 4096;
/// Most fields: each counts 32 bytes plus its own (RFC 9113 §6.5.2), so a head with more is
/// refused. h2 would first read all of them, and makes a hundred bytes of a field of one byte.
const MOST_FIELDS: usize = MOST_BYTES / 32;
/// Most bytes that are passed on of a head that is refused for its length: far less than the list
/// for which h2 itself answers, without a word of why.
const MOST_OF_REFUSED: usize = MOST_BYTES / 2;
/// Longest path with its query that `http` takes. h2 resets the stream of a longer one, and Go's
/// client, including the hub's, repeats such a reset request for half a minute.
const MOST_PATH: usize = 65_534;
const PATH: &[u8] = b":path";
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

/// A field of a block.
struct Field {
    end: usize,
    /// Why it is removed.
    unfit: Option<Unfit>,
    entry: Entry,
    /// Its name may be that of a pseudo-header.
    may_be_pseudo: bool,
    /// Bytes of its value in Huffman code.
    coded: usize,
}

/// Its effect on the table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entry {
    /// None.
    No,
    /// It becomes an entry.
    New,
    /// It is no field, but a new size of the table.
    Resize,
}

/// A block in the form in which it is passed on.
pub struct Mended {
    pub frames: Vec<u8>,
    /// Whether a [mark](super::mark) was added.
    pub is_marked: bool,
    /// Bytes that entries of the table may keep in memory: h2 remembers pseudo-headers as slices of
    /// their block. Honest blocks begin with them, and h2 parses that part before the rest has
    /// arrived.
    pub pinned: usize,
    /// Fields that are passed on, up to [`MOST_FIELDS`].
    pub fields: usize,
    /// Fields beyond that limit that had to be passed on.
    pub surplus: usize,
    /// The longest value in Huffman code that is passed on, in bytes as encoded.
    pub coded: usize,
}

/// Copies the block without fields that have no name, are too long or have too long a name, and
/// with another path instead of one that is too long, in frames of the size that `reach` has. Of a
/// block beyond its list, only the beginning. `None` if it is not a valid block, or if h2 would
/// read later blocks with another table than their sender's.
pub fn mended(frames: &[u8], reach: Reach) -> Option<Mended> {
    let most = reach.frame;
    let first = Frame::read(frames)?;
    let stream = frames.get(5..FRAME_HEAD)?.try_into().ok()?;
    let block = payloads(frames)?;
    let mut mended = Frames::new(first.flags & !(PADDED | PRIORITY), stream, most, block.len());
    let (mut at, mut found, mut spared, mut pins) = (0, None, false, false);
    let (mut fields, mut surplus, mut passed, mut coded) = (0, 0, 0, 0);
    // Entries of this block, while none of them may have the name of a pseudo-header.
    let mut known = Some(0);
    while at < block.len() {
        let mut field = field(&block, at, known.unwrap_or(0))?;
        if field.unfit == Some(Unfit::NoName) && field.entry == Entry::New {
            return None;
        }
        let length = field.end - at;
        if length > reach.field {
            field.unfit = field.unfit.or(Some(Unfit::TooLarge));
        }
        fields += usize::from(field.entry != Entry::Resize);
        // Changes of the table are passed on, because otherwise later heads would mean something
        // else.
        let is_beyond = block.len() > reach.list && passed + length > MOST_OF_REFUSED;
        let is_spare = (fields > MOST_FIELDS || is_beyond) && field.entry == Entry::No;
        if fields > MOST_FIELDS && field.entry == Entry::New {
            surplus += 1;
        }
        match (field.unfit, field.entry) {
            (None, _) if !is_spare => {
                mended.put(&block[at..field.end]);
                coded = coded.max(field.coded);
                passed += length;
            }
            (Some(Unfit::LongPath), Entry::New) => mended.put(&literal(0x40, PATH, &[b'/'; TABLE])),
            (Some(Unfit::LongPath), _) => mended.put(&literal(0, PATH, b"/")),
            (_, Entry::New) => mended.put(&literal(0x40, b"x", &[b'x'; TABLE])),
            _ => {}
        }
        found = found.or(field.unfit);
        spared |= is_spare || is_beyond;
        if field.entry == Entry::New {
            pins |= at > most && field.may_be_pseudo;
            known = known.filter(|_| !field.may_be_pseudo).map(|known| known + 1);
        }
        at = field.end;
    }
    let found = found.or(spared.then_some(Unfit::TooLarge));
    if let Some(why) = found {
        mended.put(&mark(why));
    }
    let (frames, is_marked) = mended.end(found.is_some());
    Some(Mended {
        frames,
        is_marked,
        pinned: if pins { block.len() } else { 0 },
        fields: fields.min(MOST_FIELDS),
        surplus,
        coded,
    })
}

/// The block without frame headers, padding and priority.
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

/// `known`: the newest entries of the table that are no pseudo-headers.
fn field(block: &[u8], at: usize, known: usize) -> Option<Field> {
    let first = *block.get(at)?;
    let plain = |entry, prefix| {
        let end = integer(block, at, prefix)?.1;
        Some(Field { end, unfit: None, entry, may_be_pseudo: false, coded: 0 })
    };
    let (prefix, entry) = match first {
        0x80.. => return plain(Entry::No, 7),
        0x40.. => (6, Entry::New),
        0x20.. => return plain(Entry::Resize, 5),
        _ => (4, Entry::No),
    };
    let (index, mut end) = integer(block, at, prefix)?;
    let (mut unfit, mut is_path) = (None, matches!(index, 4 | 5));
    // An index of the static table (RFC 7541 appendix A), or one that is unknown here.
    let mut may_be_pseudo = matches!(index, 1..=7) || index >= 62 + known;
    if index == 0 {
        let (length, begins) = integer(block, end, 7)?;
        unfit = match length {
            0 => Some(Unfit::NoName),
            _ => (length > MOST_NAME).then_some(Unfit::LongName),
        };
        // A colon, plain or in Huffman code (1011100).
        may_be_pseudo = block.get(begins).is_some_and(|first| *first == b':' || first >> 1 == 0b101_1100);
        is_path = block.get(begins..begins + length).is_some_and(|name| name == PATH);
        end = begins + length;
    }
    let is_coded = block.get(end)? & 0x80 != 0;
    let (length, begins) = integer(block, end, 7)?;
    let end = begins + length;
    let value = block.get(begins..end)?;
    if is_path && is_long_path(value, is_coded) {
        unfit = Some(Unfit::LongPath);
    }
    Some(Field { end, unfit, entry, may_be_pseudo, coded: if is_coded { length } else { 0 } })
}

/// A byte takes at least five bits of Huffman code.
fn is_long_path(value: &[u8], is_coded: bool) -> bool {
    if is_coded {
        value.len() > MOST_PATH * 5 / 8 && huffman::is_longer(value, MOST_PATH)
    } else {
        value.len() > MOST_PATH
    }
}

/// Reads an integer (RFC 7541 §5.1). Returns it and its end. `None` if it is longer than any block.
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
