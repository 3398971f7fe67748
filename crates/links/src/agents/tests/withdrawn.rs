//! Tests of a right that a change of the hub's roles withdraws.

use std::collections::HashSet;

use kit::hub::Resource;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;

/// Time within which a withdrawn right must end a link.
const AT_ONCE: Duration = Duration::from_secs(5);
const CLUSTERS: usize = 500;
/// No regular recheck comes while a test runs, however long a slow machine takes to link them all.
const NO_RECHECK: Duration = Duration::from_hours(1);

/// Rights on a hub, and the objects that grant them.
#[derive(Clone, Default)]
struct Rights(Arc<Mutex<HashSet<String>>>);

fn named(cluster: &str) -> String {
    format!("cluster-gateway:managedcluster:{cluster}:tunnel")
}

fn role(cluster: &str) -> Value {
    json!({"metadata": {"name": named(cluster)}, "rules": [{"apiGroups": ["cluster.core.oam.dev"], "verbs": ["create"],
        "resources": ["clustergateways/tunnel"], "resourceNames": [cluster]}]})
}

fn binding(cluster: &str) -> Value {
    json!({"metadata": {"name": named(cluster)}, "subjects": [],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": named(cluster)}})
}

// === impl Rights ===

impl Rights {
    fn give(&self, hub: &FakeHub, cluster: &str) {
        self.0.lock().insert(cluster.to_owned());
        hub.put(Resource::ClusterRoles, role(cluster));
        hub.put(Resource::ClusterRoleBindings, binding(cluster));
    }

    fn withdraw(&self, hub: &FakeHub, cluster: &str) {
        self.0.lock().remove(cluster);
        hub.delete(Resource::ClusterRoleBindings, "", &named(cluster));
        hub.delete(Resource::ClusterRoles, "", &named(cluster));
    }

    fn decide(&self, hub: &FakeHub) {
        let rights = self.clone();
        hub.on_access(move |spec| {
            let name = spec["resourceAttributes"]["name"].as_str().unwrap_or_default();
            if rights.0.lock().contains(name) { Decision::allow() } else { Decision::no_opinion("no binding") }
        });
    }
}

async fn fixture() -> (Fixture, Rights) {
    let (hub, rights) = (FakeHub::start().await, Rights::default());
    hub.add_token("good", TokenUser::new("agent", &[]));
    rights.decide(&hub);
    (Fixture::with(Some(hub), |config| config.recheck = NO_RECHECK).await, rights)
}

#[tokio::test]
async fn it_ends_its_links_at_once_and_the_hub_is_asked_about_no_other() {
    let (fixture, rights) = fixture().await;
    let name = |number: usize| format!("c{number}");
    (0..CLUSTERS).for_each(|number| rights.give(fixture.hub(), &name(number)));
    fixture.metric_becomes("tunnel_server_follows_roles 1").await;
    let mut agents = Vec::new();
    for number in 0..CLUSTERS {
        agents.push(fixture.link(&name(number), None, Some("good")).await);
    }
    let second = fixture.link("c7", None, Some("good")).await;
    let (mut stream, _gauge) = fixture.open("c7").await.unwrap();
    echoes(&mut stream).await;
    // The rechecks after the first complete list are over.
    timeout(Duration::from_secs(2), stream.read(&mut [0])).await.expect_err("it goes on");
    let asked = fixture.hub().calls(Call::AccessReview);
    let started = Instant::now();
    rights.withdraw(fixture.hub(), "c7");
    assert!(is_reset(&mut stream).await);
    assert!(started.elapsed() < AT_ONCE, "{:?}", started.elapsed());
    within(AT_ONCE, "the other link's end", second.ended).await.unwrap().ok();
    assert_eq!(fixture.hub().calls(Call::AccessReview), asked + 1, "both links are of one agent");
    let (status, ..) = fixture.refused("c7", None, Some("good")).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    fixture.metric_becomes("tunnel_server_registrations_total{outcome=\"forbidden\"} 1").await;
    fixture.metric_becomes("tunnel_server_links_ended_total{reason=\"revoked\"} 2").await;
    assert_eq!(agents.iter().filter(|agent| !agent.ended.is_finished()).count(), CLUSTERS - 1);

    rights.give(fixture.hub(), "c7");
    let allowed = async || fixture.apply("c7", None, Some("good")).await.is_ok();
    becomes(AT_ONCE, "being allowed again", allowed).await;
}

/// A review is cached for a moment, for links of one agent that come together.
#[tokio::test]
async fn who_registers_after_it_is_refused_whatever_is_remembered() {
    let (fixture, rights) = fixture().await;
    rights.give(fixture.hub(), "east");
    fixture.metric_becomes("tunnel_server_follows_roles 1").await;
    drop(fixture.apply("east", None, Some("good")).await.unwrap());
    rights.withdraw(fixture.hub(), "east");
    let refused = async || fixture.apply("east", None, Some("good")).await.is_err();
    becomes(AT_ONCE, "a refusal", refused).await;
}

#[tokio::test]
async fn a_program_that_may_not_read_roles_says_so_and_goes_on() {
    let hub = FakeHub::start().await;
    hub.add_token("good", TokenUser::new("agent", &[]));
    hub.allow_all();
    hub.fail(Call::List(Resource::ClusterRoleBindings), Fault::Status(403));
    let fixture = Fixture::with(Some(hub), |_| {}).await;
    let _agent = fixture.link("east", None, Some("good")).await;
    fixture.metric_becomes("tunnel_server_follows_roles 0").await;
    let (mut stream, _gauge) = fixture.open("east").await.unwrap();
    echoes(&mut stream).await;
    fixture.hub().on_access(|_| Decision::no_opinion("revoked"));
    assert!(is_reset(&mut stream).await, "the regular recheck finds it");
}
