//! A request and its answer on the other side: byte for byte the same, except for what must not
//! cross.

mod bodies;
mod credentials;
mod framing;
mod headers;
mod heads;
mod paths;

pub(crate) use self::framing::{AMBIGUOUS, statuses};
pub(crate) use self::headers::{DROPPED, KEPT, RELAYED};
pub(crate) use self::paths::{DOTTED, TARGETS};

use system_tests::prelude::*;

/// A member that says 200 to everything.
async fn agreeable(http: Http) -> FakeMember {
    let member = http.member().await;
    // The kit's server would send the body of an answer to HEAD over HTTP/2.
    member.on_any(|request| match request.method {
        Method::HEAD => Reply::full(200, &[("content-type", "application/json")], ""),
        _ => Reply::json(200, &json!({"kind": "PodList"})),
    });
    member
}
