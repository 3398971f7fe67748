//! A member that switches protocols without being asked to: the bytes after that are no HTTP, and
//! no client's business.

use system_tests::prelude::*;

use super::assert_names_the_cluster;

across_http!(a_switch_that_nobody_asked_for_is_no_answer);

async fn a_switch_that_nobody_asked_for_is_no_answer(client: Http) {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\ntunnelled";
    let member = RawMember::always(Act::answer(switch, Act::ReadToEnd)).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(client).await;
    let answer = within(WAIT, "an answer", connection.get(&proxied(CLUSTER, "/x"))).await;
    assert_names_the_cluster(&answer, 502, "InternalError");
    assert!(!answer.text().contains("tunnelled"));
}
