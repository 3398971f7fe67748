//! Agents of Open Cluster Management, whose certificates the hub itself signed.

use super::*;

const EAST: &str = "system:open-cluster-management:east";

/// A hub that lets the agents of a cluster link that one, as an acceptance does.
async fn fixture() -> Fixture {
    let hub = FakeHub::start().await;
    hub.on_access(|spec| {
        let name = spec["resourceAttributes"]["name"].as_str().unwrap_or_default();
        let group = format!("system:open-cluster-management:{name}");
        let is_in = |group: &str| spec["groups"].as_array().is_some_and(|all| all.iter().any(|own| own == group));
        if is_in(&group) || is_in("system:masters") { Decision::allow() } else { Decision::no_opinion("no binding") }
    });
    Fixture::with(Some(hub), |config| config.hub_client_ca = true).await
}

#[tokio::test]
async fn a_certificate_of_the_hub_links_its_own_cluster_alone() {
    let fixture = fixture().await;
    let signed = |leaf: Leaf| fixture.hub().clients().issue(&leaf);
    let own =
        signed(Leaf::client(format!("{EAST}:a")).group(EAST).group("system:open-cluster-management:managed-clusters"));
    becomes(SOON, "the hub's CA", async || fixture.apply("east", Some(&own), None).await.is_ok()).await;
    let agent = fixture.link("east", Some(&own), None).await;
    assert!(!agent.ended.is_finished());
    // The group of another cluster, of a cluster that the name is no agent of, and of everybody.
    let both = signed(Leaf::client(format!("{EAST}:a")).group(EAST).group("system:open-cluster-management:west"));
    let other = signed(Leaf::client(format!("{EAST}:a")).group("system:open-cluster-management:west"));
    let longer = signed(Leaf::client("system:open-cluster-management:east1:a").group(EAST));
    let master = signed(Leaf::client("system:open-cluster-management:west:a").group("system:masters"));
    for (cluster, identity) in [("west", &both), ("west", &other), ("east", &longer), ("west", &master)] {
        let (status, ..) = fixture.refused(cluster, Some(identity), None).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{cluster}");
    }
    // Who is no agent is nobody here, whatever the hub signed for it.
    for name in ["kubernetes-admin", "system:open-cluster-management:east", "system:open-cluster-management:east:a:b"] {
        let identity = signed(Leaf::client(name).group(EAST).group("system:masters"));
        let (status, message, _) = fixture.refused("east", Some(&identity), None).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{name}: {message}");
    }
}

/// What one authority found of a certificate is not taken for the other's word.
#[tokio::test]
async fn the_agents_own_authority_goes_on_beside_it() {
    let fixture = fixture().await;
    let own = fixture.authority.issue(&Leaf::client("one").group("system:open-cluster-management:east"));
    becomes(SOON, "the hub's CA", async || {
        let refused = fixture.apply("east", Some(&own), None).await;
        matches!(refused, Err(RegisterError::Refused { status: StatusCode::FORBIDDEN, .. }))
    })
    .await;
    let stranger = Authority::new("hub-client-ca").issue(&Leaf::client(format!("{EAST}:a")).group(EAST));
    let (status, ..) = fixture.refused("east", Some(&stranger), None).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}
