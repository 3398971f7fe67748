//! Header blocks (RFC 7541): the first request's, which teaches the peer's table, and that of all
//! others, which point into it.

use anyhow::{Result, ensure};
use bytes::{BufMut as _, Bytes, BytesMut};
use http::Request;

/// Size of a peer's table unless it names another, and the size of an entry besides its texts
/// (§4.1, §4.2).
const TABLE: usize = 4096;
const ENTRY: usize = 32;
/// Indexes of the table that every peer has (appendix A).
const METHOD_GET: u8 = 2;
const SCHEME_HTTPS: u8 = 7;
const AUTHORITY: u8 = 1;
const PATH: u8 = 4;
const STATUS_200: u8 = 8;
/// The newest entry of the taught table.
const NEWEST: usize = 62;
/// First bits of a field (§6).
const INDEXED: u8 = 0x80;
const TAUGHT: u8 = 0x40;
const PLAIN: u8 = 0x00;
const SIZE_UPDATE: u8 = 0x20;

#[derive(Clone)]
pub struct Blocks {
    pub first: Bytes,
    pub again: Bytes,
}

/// Whether an answer's block begins with the status 200.
pub fn is_ok(block: &[u8]) -> bool {
    let field = block.iter().find(|byte| *byte & 0xe0 != SIZE_UPDATE);
    field == Some(&(INDEXED | STATUS_200))
}

// === impl Blocks ===

impl Blocks {
    /// The blocks of a GET. The path is sent each time, as Go's clients do with one they have not
    /// asked for: a hub's requests differ in it.
    pub fn of(request: &Request<()>) -> Result<Self> {
        let (authority, path) = (request.uri().authority(), request.uri().path_and_query());
        let authority = authority.map_or("", |authority| authority.as_str());
        let mut taught = vec![(":authority", authority.as_bytes())];
        taught.extend(request.headers().iter().map(|(name, value)| (name.as_str(), value.as_bytes())));
        let size: usize = taught.iter().map(|(name, value)| name.len() + value.len() + ENTRY).sum();
        ensure!(size <= TABLE, "{size} bytes of headers do not fit a table of {TABLE}");

        let mut first = BytesMut::new();
        pseudo(&mut first, |block| {
            block.put_u8(TAUGHT | AUTHORITY);
            text(block, authority.as_bytes());
        });
        let mut again = BytesMut::new();
        pseudo(&mut again, |block| number(block, INDEXED, 7, NEWEST + taught.len() - 1));
        for block in [&mut first, &mut again] {
            block.put_u8(PLAIN | PATH);
            text(block, path.map_or("/", |path| path.as_str()).as_bytes());
        }
        for (at, (name, value)) in taught.iter().enumerate().skip(1) {
            first.put_u8(TAUGHT);
            text(&mut first, name.as_bytes());
            text(&mut first, value);
            number(&mut again, INDEXED, 7, NEWEST + taught.len() - 1 - at);
        }
        Ok(Self { first: first.freeze(), again: again.freeze() })
    }
}

/// Writes the pseudo-header fields of a request; `authority` writes the authority.
fn pseudo(block: &mut BytesMut, authority: impl FnOnce(&mut BytesMut)) {
    block.put_u8(INDEXED | METHOD_GET);
    block.put_u8(INDEXED | SCHEME_HTTPS);
    authority(block);
}

/// §5.2, without Huffman's code.
fn text(block: &mut BytesMut, text: &[u8]) {
    number(block, 0, 7, text.len());
    block.put_slice(text);
}

/// §5.1, in the last `bits` of a byte that begins with `first`, and as many more as it takes.
fn number(block: &mut BytesMut, first: u8, bits: u32, number: usize) {
    let most = (1 << bits) - 1;
    if number < most {
        block.put_u8(first | low(number));
        return;
    }
    block.put_u8(first | low(most));
    let mut rest = number - most;
    while rest >= 0x80 {
        block.put_u8(0x80 | low(rest & 0x7f));
        rest >>= 7;
    }
    block.put_u8(low(rest));
}

fn low(number: usize) -> u8 {
    number.to_le_bytes()[0]
}
