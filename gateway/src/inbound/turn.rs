//! Bounds what h2 takes into memory in one turn of the connection, before it can count for a user.
//!
//! h2 reads until nothing is left to read, and only then are requests and responses passed on and
//! counted for their owners. By then, a field of one byte (RFC 7541 §6.1) takes 72 bytes, and a
//! frame of a body 250: a mebibyte on the wire would take 75 in memory, on each of a stranger's
//! connections. So both are counted here, before h2 has them, and a moderate number of them ends
//! the turn.

/// Most frames of one turn. Their contents wait in h2 until the turn is over: 250 bytes for a piece
/// of a body, 700 for a reset that is sent. The frames of one more read may be added.
const FRAMES: usize = 4096;
/// Most bytes of header blocks in one turn, as they are received.
const HEADS: usize = 64 * 1024;
/// Memory that `http` takes for a field whose name was seen before, besides its value.
const FIELD: usize = 72;
/// The same while its list grows by doubling.
const FIELD_OF_MANY: usize = 2 * FIELD;
/// Memory that h2 takes for a frame that waits to be read.
const SLOT: usize = 250;
/// What a connection has room for anyway: bytes of heads, and waiting frames.
const USUAL: usize = 16 * 1024;
const USUAL_SLOTS: usize = 64;
/// Above this, the connection is polled again as soon as its requests have begun, to count the
/// bytes down: otherwise the next poll may come much later.
const MUCH: usize = 256 * 1024;

/// The counts of one connection.
#[derive(Default)]
pub struct Turn {
    number: usize,
    frames: usize,
    /// Bytes of header blocks.
    heads: usize,
    /// Bytes that h2 makes of them. Dropped after the turn, when they count elsewhere.
    taken: usize,
    /// Frames that are kept until they are read.
    kept: usize,
    /// The most of these in any turn: h2 never frees their slots.
    slots: usize,
    /// The longest value in Huffman code, in bytes as encoded: h2 never frees the buffer into which
    /// it decodes.
    coded: usize,
}

// === impl Turn ===

impl Turn {
    /// Must be called before each read, with the number of the turn. Returns whether the bytes of
    /// the last turn must be counted again.
    pub fn begin(&mut self, number: usize) -> bool {
        if self.number == number {
            return false;
        }
        let had = self.bytes();
        *self = Self { number, slots: self.slots, coded: self.coded, ..Self::default() };
        self.bytes() != had
    }

    /// Whether the turn has read enough.
    pub fn is_over(&self) -> bool {
        self.frames > FRAMES || self.heads > HEADS
    }

    pub fn frame(&mut self) {
        self.frames += 1;
    }

    /// Counts a frame of a body, or a head: h2 keeps it until it is read.
    pub fn kept(&mut self) {
        self.kept += 1;
        self.slots = self.slots.max(self.kept);
    }

    /// Counts an unparsed head, or a part of one: each byte may be a field.
    pub fn head(&mut self, bytes: usize) {
        self.heads += bytes;
        self.taken += bytes * FIELD;
    }

    /// Counts a head with this many bytes and fields; `many` is the number of fields beyond an
    /// honest head.
    pub fn head_of(&mut self, bytes: usize, fields: usize, many: usize) {
        self.heads += bytes;
        self.taken += 2 * bytes + fields * FIELD + many * FIELD_OF_MANY;
    }

    /// Counts a value of this many bytes of Huffman code, of which each five bits may be a byte.
    pub fn coded(&mut self, bytes: usize) {
        self.coded = self.coded.max(bytes);
    }

    /// Bytes that h2 has taken.
    pub fn bytes(&self) -> usize {
        let decoding = self.coded.saturating_sub(USUAL) * 8 / 5;
        self.taken.saturating_sub(USUAL) + self.slots.saturating_sub(USUAL_SLOTS) * SLOT + decoding
    }

    /// Whether the connection must be polled again when the turn is over.
    pub fn is_much(&self) -> bool {
        self.taken > MUCH
    }
}

#[cfg(test)]
mod tests;
