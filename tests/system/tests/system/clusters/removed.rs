//! What a cluster leaves behind when it is removed, replaced or wrong for a while.

use kit::hub::ClusterSecret;
use kit::member::{MemberOptions, Reply};
use kit::wait::{WAIT, eventually};
use system_tests::{ADMIN, CLUSTER, Http, MEMBER_TOKEN, Rig, cluster, proxied};

use super::{EFFECTIVE, PATH, is_ok, member};

/// Requests made after the correction.
const REQUESTS: u64 = 20;

#[tokio::test]
async fn a_corrected_cluster_is_still_counted() {
    let member = member(MemberOptions::default()).await;
    let mut watches = member.streams("/watch");
    let rig = Rig::with(&member).await;
    let target = proxied(CLUSTER, PATH);
    let connection = rig.connect(Http::H2).await;
    let watch = connection.open_beside("GET", &proxied(CLUSTER, "/watch?watch=1")).await.expect("a head");
    let (_, events) = watches.next().await;
    rig.register(CLUSTER, ClusterSecret::new("vela-system", CLUSTER).endpoint("nonsense").token(MEMBER_TOKEN));
    rig.until(EFFECTIVE, &target, |answer| answer.status == 503).await;
    rig.register(CLUSTER, cluster(CLUSTER, &member));
    rig.until(EFFECTIVE, &target, is_ok).await;
    // The last thing that belongs to the registration before the mistake.
    drop((watch, connection));
    events.gone().await;
    let before = counted(&rig).await;
    for _ in 0..REQUESTS {
        assert_eq!(rig.get(&target).await.status, 200);
    }
    let after = counted(&rig).await;
    assert!(after >= before + REQUESTS, "{before}, {REQUESTS} requests, {after}");
}

/// The requests of [`CLUSTER`], as the metrics have them.
async fn counted(rig: &Rig) -> u64 {
    let metrics = rig.get("/metrics").await.text();
    let series = format!("cluster_gateway_requests_total{{cluster=\"{CLUSTER}\"");
    let values = metrics.lines().filter(|line| line.starts_with(&series));
    values.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}

#[tokio::test]
async fn an_open_exec_does_not_keep_the_connections_of_a_removed_cluster() {
    let member = member(MemberOptions::default()).await;
    member.on("/exec", |_| Reply::upgrade_echo("websocket"));
    let rig = Rig::with(&member).await;
    assert_eq!(rig.get(&proxied(CLUSTER, PATH)).await.status, 200);
    let mut exec = rig.client().h1().await.expect("the gateway accepts connections");
    let bearer = format!("Bearer {ADMIN}");
    let headers = [("Authorization", bearer.as_str())];
    let head = exec.upgrade("GET", &proxied(CLUSTER, "/exec"), "websocket", &headers).await.expect("an answer");
    assert_eq!(head.status, 101);
    // The member does not count what it upgraded.
    eventually(WAIT, || member.connections_open() == 1).await;
    rig.unregister(CLUSTER);
    eventually(WAIT, || member.connections_open() == 0).await;
    exec.send("still here").await.expect("taken");
    assert_eq!(exec.read_exact(10).await.expect("the exec goes on"), "still here");
}
