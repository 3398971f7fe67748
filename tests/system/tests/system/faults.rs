//! What a user learns when a member fails, and what a failing member must never cause: a retry that
//! acts twice, a redirect elsewhere, an endless wait, a lost request of another user.

mod answers;
mod broken;
mod frames;
mod leaving;
mod left_out;
mod redirects;
mod self_signed;
mod smuggling;
mod switching;
mod unreachable;
mod words;

use system_tests::prelude::*;

/// An immediate event comes within this on a busy machine too, and long before any timer that would
/// make up for it.
const AT_ONCE: Duration = Duration::from_secs(5);

/// Asserts a Status about [`CLUSTER`] that does not invite the client to repeat the request;
/// returns its message.
#[track_caller]
fn assert_names_the_cluster(answer: &Answer, code: u16, reason: &str) -> String {
    let message = answer.status_message(code, reason);
    let details = &answer.json()["details"];
    assert_eq!((&details["name"], &details["kind"]), (&CLUSTER.into(), &"clustergateways".into()), "{details}");
    assert_eq!(details["group"], "cluster.core.oam.dev");
    assert!(message.contains(&format!("cluster {CLUSTER}")), "{message}");
    assert!(!message.contains(MEMBER_TOKEN), "the credential is told: {message}");
    assert_eq!(answer.header("retry-after"), None);
    message
}
