//! What h2 takes for heads that will be refused for the number of their fields.

/// Of one turn of the connection: after it the refused heads are gone.
#[derive(Default)]
pub struct Surplus {
    bytes: usize,
    is_of_last_turn: bool,
}

// === impl Surplus ===

impl Surplus {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
    }

    /// Nothing more is there to be read.
    pub fn end_turn(&mut self) {
        self.is_of_last_turn = self.bytes > 0;
    }

    /// To be asked before something is read: whether there was some, in the turn before.
    pub fn is_gone(&mut self) -> bool {
        let is_gone = std::mem::take(&mut self.is_of_last_turn);
        if is_gone {
            self.bytes = 0;
        }
        is_gone
    }
}
