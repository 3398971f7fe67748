//! First of all the probes fail, while everything else goes on: load balancers need time to look
//! elsewhere.

use system_tests::prelude::*;

/// Long compared to what happens meanwhile, on a slow machine too.
const DELAY: Duration = Duration::from_secs(10);

across_http!(it_serves_on_for_the_delay_but_is_not_ready);

async fn it_serves_on_for_the_delay_but_is_not_ready(http: Http) {
    let member = http.member().await;
    member.on_any(|_| Reply::full(200, &[], ""));
    let testbed = Testbed::builder()
        .cluster(CLUSTER, cluster(CLUSTER, &member))
        .arg(&format!("--shutdown-delay-duration={}s", DELAY.as_secs()))
        .start()
        .await;
    let mut probe = testbed.anonymous(http).await;
    let mut user = testbed.connect(http).await;
    let (client, target) = (testbed.client(), proxied(CLUSTER, "/api/v1/pods"));
    let started = Instant::now();
    let ended = tokio::spawn(testbed.stop());

    let answer = probe.until(DELAY, "/readyz?verbose", |answer| answer.status != 200).await;
    assert_eq!(answer.status, 503);
    assert!(answer.text().contains("[-]shutdown"), "{}", answer.text());
    assert_eq!(probe.get("/livez").await.status, 200, "a pod that leaves must not be killed for it");

    let answer = user.get(&target).await;
    assert_eq!((answer.status, answer.header("connection")), (200, None));
    let mut late = http.connect(&client).await.expect("endpoints still point here").bearer(ADMIN);
    assert_eq!(late.get(&target).await.status, 200);
    assert!(started.elapsed() < DELAY, "this machine is too slow for this test");

    drop((probe, user, late));
    within(WAIT, "the end of the gateway", ended).await.unwrap();
    assert!(started.elapsed() >= DELAY);
    assert!(tokio::net::TcpStream::connect(client.address()).await.is_err());
}
