//! A log of numbered lines as its reader has to take it: from 0 on, each line whole.

/// Widths of the text that fills lines: lines end anywhere in a frame.
const WIDTHS: usize = 256;
/// The longest of that.
const DOTS: &str = {
    const BYTES: [u8; WIDTHS] = [b'.'; WIDTHS];
    match std::str::from_utf8(&BYTES) {
        Ok(dots) => dots,
        Err(_) => panic!("dots are text"),
    }
};

/// A reader of one stream.
#[derive(Debug, Default)]
pub struct Lines {
    next: u64,
    partial: Vec<u8>,
}

/// When a stream may end as one that is whole does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// After so many lines, which are all.
    Lines(u64),
    /// It may not end: a followed log that goes on.
    Nothing,
}

/// The line of this number, with its end.
pub fn line(number: u64) -> String {
    // A hundred thousand a second are compared: no padding, which is written sign by sign.
    let width = usize::try_from(number).unwrap_or_default() % WIDTHS;
    [&number.to_string(), " ", &DOTS[..width], "\n"].concat()
}

// === impl Lines ===

impl Lines {
    /// Number of lines.
    pub fn count(&self) -> u64 {
        self.next
    }

    /// Takes bytes. An error: bytes that are not the log. It does not look at each byte, which took
    /// most of a run's own time.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.partial.extend_from_slice(bytes);
        let mut whole = 0;
        loop {
            let (left, expected) = (&self.partial[whole..], line(self.next));
            let came = &left[..left.len().min(expected.len())];
            if came != &expected.as_bytes()[..came.len()] {
                return Err(format!("{:?} instead of {expected:?}", String::from_utf8_lossy(came)));
            }
            if came.len() < expected.len() {
                break;
            }
            whole += expected.len();
            self.next += 1;
        }
        self.partial.drain(..whole);
        Ok(())
    }

    /// The stream has ended as one that is whole does.
    pub fn end(&self, after: After) -> Result<(), String> {
        let (came, rest) = (self.next, String::from_utf8_lossy(&self.partial));
        let is_right = match after {
            After::Lines(lines) => lines == came,
            After::Nothing => false,
        };
        if is_right && rest.is_empty() {
            return Ok(());
        }
        Err(format!("it ended as if it were whole after {came} lines and {rest:?}; right is {after:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_log_in_pieces() {
        let text: String = (0..40).map(line).collect();
        let mut lines = Lines::default();
        for piece in text.as_bytes().chunks(7) {
            lines.take(piece).unwrap();
        }
        assert_eq!(lines.end(After::Lines(40)), Ok(()));
    }

    #[test]
    fn a_lost_line_is_found() {
        let mut lines = Lines::default();
        lines.take(line(0).as_bytes()).unwrap();
        assert!(lines.take(line(2).as_bytes()).unwrap_err().contains("instead of \"1 "));
    }

    #[test]
    fn an_end_that_only_looks_whole_is_found() {
        let mut lines = Lines::default();
        lines.take(line(0).as_bytes()).unwrap();
        assert!(lines.end(After::Lines(2)).is_err());
        assert!(lines.end(After::Nothing).is_err());
        lines.take(b"1").unwrap();
        assert!(lines.end(After::Lines(1)).is_err());
    }
}
