//! The authority of the hub's aggregator changes while its users are served.

use kit::frames::Wire;
use kit::pki::ALPN_H2;
use system_tests::prelude::*;

use super::{Fixture, Victim};

#[tokio::test]
async fn what_is_open_goes_on_when_the_hub_has_another_authority() {
    let fixture = Fixture::with(FakeHub::start().await, &[]).await;
    let mut before = fixture.shared("victim").await;
    let mut victim = Victim::begin(&mut before, &fixture).await;

    let renewed = Authority::new("front-proxy-ca");
    let root = renewed.root_pem();
    fixture.hub.change_authentication(|data| drop(data.insert("requestheader-client-ca-file".to_owned(), root)));
    let identity = renewed.issue(&Leaf::client("front-proxy-client"));
    let ask = async || {
        let io = fixture.testbed.client_with(&identity).raw(ALPN_H2).await.expect("a connection");
        let mut after = Wire::over(io, Fixture::places(), &[("x-remote-user", "another")]).await.expect("a connection");
        let target = after.places.quick.clone();
        let stream = after.request("GET", &target, &[], true).await;
        (after.outcome(stream).await.status, after)
    };
    becomes(WAIT, "the new authority", async || ask().await.0 == Some(200)).await;
    victim.goes_on(&mut before, "another authority").await;

    // A request that relies on the old authority is refused, and takes nothing from what was
    // permitted before.
    let asked = fixture.member.request_count();
    let target = before.places.quick.clone();
    let stream = before.request("GET", &target, &[], true).await;
    assert_eq!(before.outcome(stream).await.status, Some(401));
    assert_eq!(fixture.member.request_count(), asked);
    victim.goes_on(&mut before, "a refusal on the old connection").await;
    assert_eq!(ask().await.0, Some(200));
}
