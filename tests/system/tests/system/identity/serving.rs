//! The gateway's own certificate is replaced on disk while it serves.

use kit::client::Client;
use kit::pki::{Authority, Trust};
use kit::wait::{WAIT, becomes};
use system_tests::{CLUSTER, Http, Testbed, TestbedBuilder, across_http, proxied};

across_http!(new_connections_see_the_new_certificate_and_open_watches_live_on);

async fn new_connections_see_the_new_certificate_and_open_watches_live_on(http: Http) {
    let member = Http::H2.member().await;
    let mut watches = member.streams("/api/v1/pods");
    let testbed = Testbed::with(&member).await;
    let mut connection = testbed.connect(http).await;
    let mut watch = connection.open("GET", &proxied(CLUSTER, "/api/v1/pods?watch=1"), &[]).await.unwrap();
    let (_, sender) = watches.next().await;
    assert!(sender.send("before\n").await);
    assert_eq!(watch.event().await, "before\n");

    let renewed = Authority::new("renewed-serving-ca");
    let client = Client::new(testbed.address(), Trust::Authority(&renewed), None);
    assert!(http.connect(&client).await.is_err(), "the new authority is not in use yet");
    testbed.replace_serving_certificate(&renewed.issue(&TestbedBuilder::serving_leaf()));
    becomes(WAIT, "the new certificate", async || http.connect(&client).await.is_ok()).await;

    assert!(sender.send("after\n").await);
    assert_eq!(watch.event().await, "after\n");
    drop(sender);
    assert_eq!(watch.line().await.unwrap(), None, "a proper end");
}

#[tokio::test]
async fn files_that_do_not_fit_together_change_nothing() {
    let testbed = Testbed::builder().start().await;
    let renewed = Authority::new("renewed-serving-ca");
    let issued = renewed.issue(&TestbedBuilder::serving_leaf());
    let certificate = testbed.directory().join("serving.crt");
    std::fs::write(&certificate, &issued.chain_pem).unwrap();
    // The reload is noticed by nothing outside: the pair that follows it is.
    assert!(Http::H2.connect(&testbed.client()).await.is_ok(), "the old pair still serves");
    testbed.replace_serving_certificate(&issued);
    let client = Client::new(testbed.address(), Trust::Authority(&renewed), None);
    becomes(WAIT, "the new certificate", async || Http::H2.connect(&client).await.is_ok()).await;
}
