//! What h2 takes to memory in one turn of the connection, before anybody can count it.
//!
//! h2 reads until nothing is left to read, and only then are requests and answers handed on, to be
//! counted for whose they are. A field of one byte (RFC 7541 §6.1) is 72 by then, a frame of a body
//! 250: a mebibyte on the wire would be 75 of memory, on each of a stranger's connections. So both
//! are counted here, before h2 has them, and few of them end the turn.

/// Frames of one turn: what they are about waits in h2 until the turn is over, 250 bytes for a
/// piece of a body, 700 for a reset that goes out. Those of one more read come with them.
const FRAMES: usize = 4096;
/// Bytes of header blocks of one turn, as they are received.
const HEADS: usize = 64 * 1024;
/// What `http` takes for a field whose name has come before, beside its value.
const FIELD: usize = 72;
/// The same while its list grows, which doubles.
const FIELD_OF_MANY: usize = 2 * FIELD;
/// What h2 takes for a frame that waits to be read.
const SLOT: usize = 250;
/// What a connection has room for anyway: bytes of heads, and frames that wait.
const USUAL: usize = 16 * 1024;
const USUAL_SLOTS: usize = 64;
/// With more of it the connection is looked at again as soon as its requests have been begun, to
/// give it back: nothing else may come for long.
const MUCH: usize = 256 * 1024;

/// Of one connection.
#[derive(Default)]
pub struct Turn {
    number: usize,
    frames: usize,
    /// Bytes of header blocks.
    heads: usize,
    /// What h2 makes of them: gone after the turn, when they are others' to count.
    taken: usize,
    /// Frames that are kept until they are read.
    kept: usize,
    /// The most of these in any turn: h2 never gives their room back.
    slots: usize,
}

// === impl Turn ===

impl Turn {
    /// To be called before each read, in the turn with this number. Whether what the last one took
    /// is to be counted anew.
    pub fn begin(&mut self, number: usize) -> bool {
        if self.number == number {
            return false;
        }
        let had = self.bytes();
        *self = Self { number, slots: self.slots, ..Self::default() };
        self.bytes() != had
    }

    /// It has had its part.
    pub fn is_over(&self) -> bool {
        self.frames > FRAMES || self.heads > HEADS
    }

    pub fn frame(&mut self) {
        self.frames += 1;
    }

    /// A frame of a body, or a head: h2 has it until somebody reads.
    pub fn kept(&mut self) {
        self.kept += 1;
        self.slots = self.slots.max(self.kept);
    }

    /// A head that nobody has looked into, or a part of one: each byte may be a field.
    pub fn head(&mut self, bytes: usize) {
        self.heads += bytes;
        self.taken += bytes * FIELD;
    }

    /// A head of so many bytes and fields, of which `many` are more than an honest one has.
    pub fn head_of(&mut self, bytes: usize, fields: usize, many: usize) {
        self.heads += bytes;
        self.taken += 2 * bytes + fields * FIELD + many * FIELD_OF_MANY;
    }

    /// What h2 has taken.
    pub fn bytes(&self) -> usize {
        self.taken.saturating_sub(USUAL) + self.slots.saturating_sub(USUAL_SLOTS) * SLOT
    }

    /// Whether somebody should look again when the turn is over.
    pub fn is_much(&self) -> bool {
        self.taken > MUCH
    }
}

#[cfg(test)]
mod tests;
