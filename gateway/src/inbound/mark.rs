//! The field that takes the place of what was found in a head: the request or the answer is
//! refused.

use http::HeaderValue;

use crate::headers::size::Unfit;

/// The field's name.
pub const NAME: &str = "cluster-gateway-unfit";
const TOO_LARGE: &[u8] = b"too large";

/// The field, encoded (RFC 7541 §6.2.2). Its value says why.
pub fn mark(why: Unfit) -> Vec<u8> {
    literal(0, NAME.as_bytes(), if why == Unfit::TooLarge { TOO_LARGE } else { b"" })
}

/// Why a head with this mark is refused.
pub fn cause(mark: &HeaderValue) -> Unfit {
    if mark.as_bytes() == TOO_LARGE { Unfit::TooLarge } else { Unfit::LongName }
}

/// A literal with a name of its own, of kind `first`, as it is. Names are shorter than 127 bytes.
pub fn literal(first: u8, name: &[u8], value: &[u8]) -> Vec<u8> {
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
