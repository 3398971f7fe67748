//! Fields of a cluster's Secret that somebody else has set.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::calls::MANAGER;

const TEAM: Fault = Fault::Owned(".metadata.labels.example.com/team");
const KIND: Fault = Fault::Owned(".metadata.labels.cluster.core.oam.dev/cluster-credential-type");
const TOKEN: Fault = Fault::Owned(".data.token");

fn has_token(hub: &Hub, token: &str) -> bool {
    hub.field("c0", "/data/token").is_some_and(|written| written == STANDARD.encode(token))
}

#[tokio::test(start_paused = true)]
async fn a_label_of_somebody_else_stops_no_rotation_and_is_tried_once_for_each() {
    let (hub, leader) = registered(1).await;
    hub.label(FLEET, "c0", "example.com/team", "a");
    hub.label(FLEET, "c0", "region", "north");
    let team = || hub.field("c0", "/metadata/labels/example.com~1team");
    let region = || hub.field("c0", "/metadata/labels/region");
    until("its labels", || team().is_some() && region().is_some()).await;
    sleep(LOOK).await;
    hub.forget_asked();
    hub.fail(Call::Write, CLUSTERS, [TEAM]);
    hub.rotate("c0", "second");
    until("the other token", || has_token(&hub, "second")).await;
    assert!(team().is_none() && region().is_some(), "the document of the second write");
    let looks = hub.asked(Call::Read, FLEET).len();
    hub.annotate(FLEET, "c0");
    until("another look", || hub.asked(Call::Read, FLEET).len() > looks).await;
    sleep(PATIENCE).await;
    assert_eq!((writes(&hub), leader.registered()), (2, 1), "written again");
}

#[tokio::test(start_paused = true)]
async fn what_the_secret_needs_is_refused_until_its_managers_change() {
    for fault in [TOKEN, KIND] {
        let (hub, leader) = registered(1).await;
        hub.manage("c0", &[MANAGER, "somebody"]);
        sleep(LOOK).await;
        // The waits grow to minutes.
        hub.fail(Call::Write, CLUSTERS, [fault; 9]);
        hub.rotate("c0", "second");
        until("some tries", || hub.is_sound()).await;
        hub.annotate(CLUSTERS, "c0");
        sleep(Duration::from_secs(5)).await;
        assert_eq!((writes(&hub), leader.registered()), (9, 0), "{fault:?}: tried again for a change of no manager");
        hub.manage("c0", &[MANAGER]);
        let given_up = Instant::now();
        until("the other token", || has_token(&hub, "second")).await;
        assert!(given_up.elapsed() < Duration::from_secs(1), "{fault:?}: {:?}", given_up.elapsed());
        assert_eq!((writes(&hub), leader.registered()), (10, 1), "{fault:?}");
    }
}
