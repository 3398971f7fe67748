//! The kit's frames, with a client of the gateway and a member that speak them.

mod client;
mod member;

pub use kit::frames::*;

pub use self::client::FrameClient;
pub use self::member::{FrameMember, MemberFrames};
