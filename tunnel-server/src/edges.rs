//! Heads of CONNECT requests, as they are read, for tests on generated ones. No interface of the
//! library: it follows the code.

use tunnel::{ClusterName, Destination};

use crate::egress::head;

/// What is asked for at the start of `bytes`, and the head's length; `None` if it is not complete.
pub fn connect(bytes: &[u8]) -> Result<Option<(Destination, Option<ClusterName>, usize)>, String> {
    let read = head::parse(bytes).map_err(|error| error.to_string())?;
    Ok(read.map(|(request, length)| (request.destination, request.cluster, length)))
}
