//! No request waits for another: not for streams that never end, not for clients that do not read,
//! not for members that do not.

mod bytewise;
mod bytewise_uploads;
mod cancelled;
mod early;
mod heads;
mod hub;
mod room;
mod shared;
mod unread;
mod uploads;
mod watches;

use system_tests::prelude::*;

/// Time that a small request may take while others are stuck: less than a client waits for them (a
/// dial is given ten seconds), more than a busy machine needs.
const SOON: Duration = Duration::from_secs(5);
/// A sender without room for this long counts as stuck.
const QUIET: Duration = Duration::from_millis(300);

/// Asserts that a GET is answered soon: beside the open streams of `connection` if that is HTTP/2,
/// and on a new connection.
async fn assert_others_are_served(testbed: &Testbed, connection: Option<&Connection>) {
    if let Some(connection) = connection {
        let small = async { connection.open_beside("GET", &proxied(CLUSTER, "/small")).await?.whole().await };
        let answer = within(SOON, "an answer on the same connection", small).await.expect("an answer");
        assert_eq!(answer.status, 200);
    }
    for http in [Http::H1, Http::H2] {
        let mut other = testbed.connect(http).await;
        let answer = within(SOON, "an answer on another connection", other.get(&proxied(CLUSTER, "/small"))).await;
        assert_eq!(answer.status, 200);
    }
}
