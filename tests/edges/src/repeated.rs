//! Inputs that stand for longer ones: most limits are beyond what a fuzzer writes by itself.

/// Bytes of what is made of an input, besides those of the input.
const LONGEST: usize = 256 << 10;

/// `input` with each `<Ntext>` as `text` ten to the power of N times, N up to 5, or as often as
/// [`LONGEST`] permits. What does not have this form stands for itself.
pub fn repeated(input: &[u8]) -> Vec<u8> {
    let (mut longer, mut rest) = (Vec::with_capacity(input.len()), input);
    while let Some(at) = rest.iter().position(|byte| *byte == b'<') {
        longer.extend_from_slice(&rest[..at]);
        let Some((times, text, behind)) = part(&rest[at..]) else {
            longer.push(b'<');
            rest = &rest[at + 1..];
            continue;
        };
        let most = LONGEST.saturating_sub(longer.len()) / text.len().max(1);
        longer.extend(text.repeat(times.min(most)));
        rest = behind;
    }
    longer.extend_from_slice(rest);
    longer
}

/// How often a text is there, the text, and what is behind it.
fn part(from: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let [b'<', power @ b'0'..=b'5', text @ ..] = from else { return None };
    let end = text.iter().position(|byte| *byte == b'>')?;
    Some((10_usize.pow(u32::from(power - b'0')), &text[..end], &text[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_repeated_and_anything_else_is_itself() {
        assert_eq!(repeated(b"a<1bc>d<0e>"), [b"a".to_vec(), b"bc".repeat(10), b"de".to_vec()].concat());
        for same in ["", "<", "<<1", "<9a>", "<1a", "a>", "<ab>"] {
            assert_eq!(repeated(same.as_bytes()), same.as_bytes());
        }
        assert_eq!(repeated(b"<5123><5456>").len(), LONGEST / 3 * 3);
    }
}
