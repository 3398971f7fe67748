//! Length of a string in Huffman code after decoding (RFC 7541 §5.2).

use crate::headers::size::CODE_BITS;

/// Longest code, in bits.
const LONGEST: usize = 30;

/// For each length, the first code and their number. The code is canonical (appendix B): codes of
/// one length are consecutive, and follow all shorter ones.
const CODES: [(u32, u32); LONGEST + 1] = codes();

const fn codes() -> [(u32, u32); LONGEST + 1] {
    let mut codes = [(0, 0); LONGEST + 1];
    let mut byte = 0;
    while byte < CODE_BITS.len() {
        codes[CODE_BITS[byte] as usize].1 += 1;
        byte += 1;
    }
    let mut length = 1;
    while length <= LONGEST {
        let (first, count) = codes[length - 1];
        codes[length].0 = (first + count) << 1;
        length += 1;
    }
    codes
}

/// Whether `text` decodes to more than `most` bytes, up to the first invalid code. Stops as soon as
/// that is known, because strangers may send megabytes.
pub fn is_longer(text: &[u8], most: usize) -> bool {
    if text.len() > most.saturating_mul(LONGEST) / 8 + 1 {
        return true;
    }
    let (mut code, mut length, mut bytes) = (0_u32, 0, 0);
    for bit in text.iter().flat_map(|byte| (0..8).rev().map(move |at| u32::from(byte >> at) & 1)) {
        code = (code << 1) | bit;
        length += 1;
        let Some((first, count)) = CODES.get(length) else { return false };
        if code.wrapping_sub(*first) < *count {
            bytes += 1;
            if bytes > most {
                return true;
            }
            (code, length) = (0, 0);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7541 appendix C, and codes of all lengths.
    #[test]
    fn it_is_as_long_as_what_was_encoded() {
        let known: [(&[u8], usize); 3] = [
            (&[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff], "www.example.com".len()),
            (&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf], "no-cache".len()),
            (&[0xae, 0xc3, 0x77, 0x1a, 0x4b], "private".len()),
        ];
        for (text, length) in known {
            assert!(is_longer(text, length - 1) && !is_longer(text, length), "{text:?}");
        }
        assert!(!is_longer(&[0xff; 10], 3), "no code");
        assert!(is_longer(&[0xff; 10], 1), "more than one byte can take, whatever it is");
        let lengths: Vec<u32> = CODES.iter().map(|(_, count)| *count).collect();
        assert_eq!(lengths.iter().sum::<u32>(), 256);
        // All codes are used, except the end of a string, which is 30 bits of 1.
        let (first, count) = CODES[LONGEST];
        assert_eq!(first + count, (1 << LONGEST) - 1);
    }
}
