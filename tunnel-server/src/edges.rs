//! The parser of CONNECT requests, for tests on generated input. Not an interface of the library:
//! it changes with the code.

use tunnel::{ClusterName, Destination};

use crate::egress::head;

/// The request at the start of `bytes`, and the length of its head; `None` if the head is not
/// complete.
pub fn connect(bytes: &[u8]) -> Result<Option<(Destination, Option<ClusterName>, usize)>, String> {
    let read = head::parse(bytes).map_err(|error| error.to_string())?;
    Ok(read.map(|(request, length)| (request.destination, request.cluster, length)))
}
