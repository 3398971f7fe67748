//! The kit's frames, with a client of the gateway and a member that speak them.

mod client;
mod member;

pub use kit::frames::*;

pub use self::client::FrameClient;
pub use self::member::{FrameMember, MemberFrames};

use crate::{ADMIN, CLUSTER, proxied};

/// The block of a request of the administrator to [`CLUSTER`], with encoded lines behind it.
pub fn admin_block(method: &str, more: &[u8]) -> Vec<u8> {
    let authorization = format!("Bearer {ADMIN}");
    [&request(method, &proxied(CLUSTER, "/x"), &[("authorization", &authorization)]), more].concat()
}
