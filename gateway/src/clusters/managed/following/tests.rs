//! How a hub's refusals change the known clusters, in paused time.

mod scripted;

use http::StatusCode;

use self::scripted::{Followed, groups};
use super::*;
use crate::clusters::lines::Lines;

/// The permission that an error must name.
const PERMISSION: &str = "list and watch on managedclusters.cluster.open-cluster-management.io";

#[tokio::test(start_paused = true)]
async fn a_refusal_does_not_move_clusters() {
    let followed = Followed::located(StatusCode::OK, groups(true));
    followed.managed.known().await;
    assert!(followed.knows());
    for code in
        [StatusCode::FORBIDDEN, StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE, StatusCode::NOT_FOUND]
    {
        followed.answering(code, 3600).await;
        assert!(followed.knows() && followed.managed.current().kind().is_some(), "{code}");
    }
    // The group must be gone, too, but these answers do not show that.
    for discovery in [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND, StatusCode::BAD_GATEWAY] {
        *followed.hub.discovery.lock() = (discovery, groups(false).1);
        followed.answering(StatusCode::NOT_FOUND, 3600).await;
        assert!(followed.knows(), "{discovery}");
    }
    *followed.hub.discovery.lock() = (StatusCode::OK, serde_json::json!({"kind": "Status"}));
    followed.answering(StatusCode::NOT_FOUND, 3600).await;
    assert!(followed.knows());
}

#[tokio::test(start_paused = true)]
async fn a_kind_must_stay_gone_before_it_counts() {
    let followed = Followed::located(StatusCode::OK, groups(false));
    followed.managed.known().await;
    followed.answering(StatusCode::NOT_FOUND, 50).await;
    assert!(followed.knows());
    // The time counts from the first 404 in a row, which an answer with the kind, or without
    // certainty, interrupts.
    followed.answering(StatusCode::OK, 60).await;
    followed.answering(StatusCode::NOT_FOUND, 50).await;
    followed.answering(StatusCode::SERVICE_UNAVAILABLE, 10).await;
    followed.answering(StatusCode::NOT_FOUND, 50).await;
    assert!(followed.knows());
    followed.answering(StatusCode::NOT_FOUND, 30).await;
    assert!(!followed.knows() && followed.managed.current().kind().is_none());
    followed.answering(StatusCode::OK, 40).await;
    assert!(followed.knows());
}

#[tokio::test(start_paused = true)]
async fn a_group_seen_in_between_begins_the_minute_anew() {
    let followed = Followed::located(StatusCode::OK, groups(false));
    followed.managed.known().await;
    followed.answering(StatusCode::NOT_FOUND, 40).await;
    *followed.hub.discovery.lock() = groups(true);
    followed.answering(StatusCode::NOT_FOUND, 10).await;
    *followed.hub.discovery.lock() = groups(false);
    followed.answering(StatusCode::NOT_FOUND, 50).await;
    assert!(followed.knows());
    followed.answering(StatusCode::NOT_FOUND, 50).await;
    assert!(!followed.knows());
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_may_not_know_where_clusters_are_is_not_ready_and_says_why() {
    let (lines, _guard) = Lines::collect();
    let followed = Followed::located(StatusCode::FORBIDDEN, groups(false));
    assert!(timeout(Duration::from_mins(10), followed.managed.known()).await.is_err());
    assert_eq!(followed.readiness.blocked_by(), ["managedclusters"]);
    let told = lines.take();
    assert!((15..40).contains(&told.len()), "{}", told.len());
    for line in told {
        assert!(line.starts_with("WARN") && line.contains(PERMISSION) && line.contains("not ready"), "{line}");
    }
    *followed.hub.list.lock() = StatusCode::OK;
    assert!(timeout(Duration::from_secs(40), followed.managed.known()).await.is_ok());
    assert!(followed.is_ready() && followed.knows());
}

#[tokio::test(start_paused = true)]
async fn there_are_none_only_where_discovery_says_so_too() {
    let followed = Followed::located(StatusCode::NOT_FOUND, groups(true));
    assert!(timeout(Duration::from_mins(10), followed.managed.known()).await.is_err());
    assert!(!followed.is_ready());
    *followed.hub.discovery.lock() = groups(false);
    assert!(timeout(Duration::from_secs(40), followed.managed.known()).await.is_ok());
    assert!(followed.is_ready() && followed.managed.current().kind().is_none());
    let none = Followed::located(StatusCode::NOT_FOUND, groups(false));
    assert!(timeout(Duration::from_secs(1), none.managed.known()).await.is_ok(), "nothing is to be waited for");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_look_asks_ever_more_seldom_and_alarms_nobody() {
    let (lines, _guard) = Lines::collect();
    let followed = Followed::displayed(StatusCode::FORBIDDEN, groups(true));
    followed.managed.known().await;
    sleep(Duration::from_hours(1)).await;
    let asked = followed.asked();
    let pauses: Vec<_> = asked.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect();
    assert_eq!(pauses, [30, 60, 120, 240, 480, 600, 600, 600, 600]);
    let told = lines.take();
    assert!(told.is_empty(), "{told:?}");
    // A reader has seen the kind: with other permissions, or because the gateway has new ones.
    followed.managed.look();
    followed.answering(StatusCode::OK, 1).await;
    assert!(followed.knows());
    // No credential depends on it.
    followed.answering(StatusCode::FORBIDDEN, 5).await;
    assert!(!followed.knows());
}

#[tokio::test(start_paused = true)]
async fn a_hub_without_the_group_has_nothing_to_refuse() {
    let followed = Followed::displayed(StatusCode::FORBIDDEN, groups(false));
    followed.managed.known().await;
    sleep(Duration::from_hours(1)).await;
    assert_eq!(followed.asked(), []);
    // A reader has seen the kind before discovery lists it.
    followed.managed.look();
    followed.answering(StatusCode::FORBIDDEN, 1).await;
    assert_eq!(followed.asked().len(), 1);
    // Open Cluster Management is installed.
    *followed.hub.discovery.lock() = groups(true);
    followed.answering(StatusCode::OK, 31).await;
    assert!(followed.knows());
    // Discovery that fails does not keep the gateway from asking.
    for discovery in [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND] {
        let followed = Followed::displayed(StatusCode::OK, (discovery, groups(false).1));
        followed.managed.known().await;
        assert!(followed.knows(), "{discovery}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_list_and_not_watch_does_not_list_without_pause() {
    for code in [StatusCode::FORBIDDEN, StatusCode::NOT_FOUND] {
        for followed in
            [Followed::located(StatusCode::OK, groups(true)), Followed::displayed(StatusCode::OK, groups(true))]
        {
            *followed.hub.watch.lock() = code;
            sleep(Duration::from_mins(10)).await;
            followed.asked();
            sleep(Duration::from_mins(10)).await;
            let requests = followed.asked().len();
            assert!((1..=45).contains(&requests), "{code}: {requests}");
        }
    }
}
