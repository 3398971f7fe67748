//! Tests of Open Cluster Management's agents, whose certificates the hub itself signs.

use super::*;

const EAST: &str = "system:open-cluster-management:east";

/// A hub that allows agents to link their own cluster, as an acceptance does.
async fn fixture() -> Fixture {
    let hub = FakeHub::start().await;
    hub.on_access(|spec| {
        let name = spec["resourceAttributes"]["name"].as_str().unwrap_or_default();
        let group = format!("system:open-cluster-management:{name}");
        let is_in = |group: &str| spec["groups"].as_array().is_some_and(|all| all.iter().any(|own| own == group));
        // Both groups of a cluster, as an acceptance binds them.
        let is_agent = is_in(&group) || is_in(group.trim_start_matches("system:"));
        if is_agent || is_in("system:masters") { Decision::allow() } else { Decision::no_opinion("no binding") }
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
    // Groups of another cluster, of a cluster that does not match the name, and `system:masters`.
    let both = signed(Leaf::client(format!("{EAST}:a")).group(EAST).group("system:open-cluster-management:west"));
    let other = signed(Leaf::client(format!("{EAST}:a")).group("system:open-cluster-management:west"));
    let bare = signed(Leaf::client(format!("{EAST}:a")).group(EAST).group("open-cluster-management:west"));
    let longer = signed(Leaf::client("system:open-cluster-management:east1:a").group(EAST));
    let master = signed(Leaf::client("system:open-cluster-management:west:a").group("system:masters"));
    for (cluster, identity) in
        [("west", &both), ("west", &other), ("west", &bare), ("east", &longer), ("west", &master)]
    {
        let (status, ..) = fixture.refused(cluster, Some(identity), None).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{cluster}");
    }
    // Other users have no credential here, whatever the hub signed for them.
    for name in ["kubernetes-admin", "system:open-cluster-management:east", "system:open-cluster-management:east:a:b"] {
        let identity = signed(Leaf::client(name).group(EAST).group("system:masters"));
        let (status, message, _) = fixture.refused("east", Some(&identity), None).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{name}: {message}");
    }
}

/// The result of one authority for a certificate does not count for the other.
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

/// The agents' own CA cannot give the group of a cluster, in either spelling.
#[tokio::test]
async fn a_group_of_a_cluster_is_the_hubs_to_give() {
    let fixture = fixture().await;
    for group in ["open-cluster-management:west", "system:open-cluster-management:west"] {
        let foreign = fixture.authority.issue(&Leaf::client("one").group(group));
        becomes(SOON, "a refusal", async || {
            let refused = fixture.apply("west", Some(&foreign), None).await;
            matches!(refused, Err(RegisterError::Refused { status: StatusCode::FORBIDDEN, .. }))
        })
        .await;
    }
}

/// The hub's authentication ConfigMap is broken, from the start or later.
#[tokio::test]
async fn a_hub_whose_authorities_cannot_be_read_ends_nothing_that_works() {
    let hub = FakeHub::start().await;
    hub.allow_all();
    hub.change_authentication(|data| {
        data.insert("client-ca-file".to_owned(), "broken".to_owned());
    });
    let fixture = Fixture::with(Some(hub), |config| config.hub_client_ca = true).await;
    let own = fixture.certificate("one");
    let of_hub = fixture.hub().clients().issue(&Leaf::client(format!("{EAST}:a")).group(EAST));
    let _linked = fixture.link("east", Some(&own), None).await;
    let (status, ..) = fixture.refused("east", Some(&of_hub), None).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "it is not known whose it is");
    // A broken front proxy configuration does not matter for agents.
    let pem = fixture.hub().clients().root_pem();
    fixture.hub().change_authentication(|data| {
        data.insert("client-ca-file".to_owned(), pem);
        data.insert("requestheader-allowed-names".to_owned(), "no list".to_owned());
    });
    becomes(SOON, "the hub's CA", async || fixture.apply("east", Some(&of_hub), None).await.is_ok()).await;
    let mut agent = fixture.link("east", Some(&of_hub), None).await;
    fixture.hub().change_authentication(|data| {
        data.insert("client-ca-file".to_owned(), "broken".to_owned());
    });
    // The link is rechecked several times, and new registrations are judged.
    timeout(Duration::from_secs(1), &mut agent.ended).await.expect_err("the link goes on");
    drop(fixture.apply("east", Some(&of_hub), None).await.expect("the former authority stays"));
}
