//! Members that leave in good order, restart or refuse: the next request finds its way.

use kit::member::raw::{Act, RawMember};
use kit::pki::ALPN_H2;
use kit::wait::free_port;
use system_tests::prelude::*;
use tokio::task::JoinSet;

across_http!(a_member_that_restarts_is_found_again, a_member_that_says_goodbye_is_asked_on_a_new_connection);

async fn a_member_that_restarts_is_found_again(speaks: Http) {
    let authority = Some(Arc::new(Authority::new("member-ca")));
    let address = ([127, 0, 0, 1], free_port().await).into();
    let options = MemberOptions { authority, address, ..speaks.member_options() };
    let mut member = FakeMember::start(options.clone()).await;
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(Http::H2).await;
    for life in 0..3 {
        member.on_any(move |_| Reply::json(200, &json!({"life": life})));
        assert_eq!(connection.get(&proxied(CLUSTER, "/x")).await.json(), json!({"life": life}));
        drop(member);
        // A request may have been on its way while the member went (502); then the connection's end
        // is noticed.
        testbed.until(WAIT, &proxied(CLUSTER, "/x"), |answer| answer.status == 503).await;
        member = FakeMember::start(options.clone()).await;
    }
}

async fn a_member_that_says_goodbye_is_asked_on_a_new_connection(speaks: Http) {
    let member = speaks.member().await;
    let gate = Gate::new();
    let slow = gate.clone();
    member.on("/slow", move |_| Reply::json(200, &json!({})).after(&slow));
    member.on("/x", |_| Reply::json(200, &json!({})));
    let testbed = Testbed::with(&member).await;
    let connection = testbed.connect(Http::H2).await;
    let target = proxied(CLUSTER, "/slow");
    let asking = async { connection.open_beside("GET", &target).await?.whole().await };
    let leaving = async {
        let held = member.next_request().await;
        member.goaway();
        if speaks == Http::H2 {
            // The second GOAWAY ends the connection once its last request is done; until then no
            // request may join it.
            within(WAIT, "a request on another connection", async {
                let mut other = testbed.connect(Http::H2).await;
                loop {
                    assert_eq!(other.get(&proxied(CLUSTER, "/x")).await.status, 200);
                    if member.next_request().await.connection != held.connection {
                        break;
                    }
                }
            })
            .await;
        }
        gate.open();
    };
    let (answer, ()) = tokio::join!(asking, leaving);
    assert_eq!(answer.expect("what was under way is finished").status, 200);
    eventually(WAIT, || member.connections_open() <= 1).await;
    for _ in 0..3 {
        assert_eq!(testbed.get(&proxied(CLUSTER, "/x")).await.status, 200);
    }
    assert_eq!(member.connections_accepted(), 2);
}

#[tokio::test]
async fn goodbyes_under_load_cost_no_request() {
    const CLIENTS: usize = 4;
    const REQUESTS: usize = 250;
    let member = Http::H2.member().await;
    member.on_any(|_| Reply::json(200, &json!({})));
    let testbed = Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, &member)).threads(2).start().await;
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let mut connection = testbed.connect(Http::H2).await;
        clients.spawn(async move {
            for _ in 0..REQUESTS {
                let answer = connection.get(&proxied(CLUSTER, "/x")).await;
                assert_eq!(answer.status, 200, "{}", answer.text());
            }
        });
    }
    for goodbye in 1..10 {
        eventually(WAIT, || member.request_count() >= goodbye * CLIENTS * REQUESTS / 10).await;
        member.goaway();
    }
    clients.join_all().await;
    assert_eq!(member.request_count(), CLIENTS * REQUESTS, "each was asked once");
    assert!(member.connections_accepted() > 1);
}

/// Its connections count as made, so no dial fails: the request must not dial for ever.
#[tokio::test]
async fn a_member_that_closes_each_connection_at_once_is_dialled_a_few_times() {
    /// SETTINGS, and GOAWAY in the same breath.
    const GOODBYE: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const MOST_DIALS: usize = 16;
    let member = RawMember::always(vec![Act::Tls(ALPN_H2), Act::Write(GOODBYE.into()), Act::ReadToEnd]).await;
    let testbed = Testbed::with(&member).await;
    let answer = testbed.get(&proxied(CLUSTER, "/x")).await;
    super::assert_names_the_cluster(&answer, 503, "ServiceUnavailable");
    assert!((1..=MOST_DIALS).contains(&member.connection_count()), "{}", member.connection_count());
}
