//! The member's own API server, as far as its `ManagedCluster` reports it.

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use hub::{Cause, Requests};
use net::words::plain;
use placement::quantity::Quantity;
use serde_json::Value;
use tokio::time::{Instant, timeout};

use super::status::{Facts, Resources};

/// Nodes per page, and pages that are read: a member with more nodes has more resources than its
/// status says.
const PAGE: usize = 200;
const MOST_PAGES: usize = 50;
/// How long version and nodes stay cached.
const SELDOM: Duration = Duration::from_mins(1);
/// Timeout for all pages.
const NODES_WITHIN: Duration = Duration::from_secs(30);
/// The resources of nodes that are reported, and no others: drivers add one for each device.
const RESOURCES: [&str; 5] = ["cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu"];

/// Facts that change rarely, and when they were read.
#[derive(Default)]
pub struct CachedFacts(Option<(Instant, Option<String>, Option<Resources>)>);

/// All facts that can be read now; facts without permission are left out. Version and nodes are
/// read at most once a minute, and `known` caches them meanwhile.
pub async fn facts(member: &Requests, known: &mut CachedFacts) -> Facts {
    let unavailable = health(member).await.err().unwrap_or_default();
    if !unavailable.is_empty() {
        return Facts { unavailable: Some(unavailable), ..Facts::default() };
    }
    if known.0.as_ref().is_none_or(|(at, ..)| at.elapsed() >= SELDOM) {
        let version = member.get("/version").await.ok();
        let version = version.and_then(|version| version["gitVersion"].as_str().map(str::to_owned));
        let resources = timeout(NODES_WITHIN, resources(member)).await.ok().and_then(Result::ok);
        known.0 = Some((Instant::now(), version, resources));
    }
    let (version, resources) = known.0.clone().map(|(_, version, resources)| (version, resources)).unwrap_or_default();
    Facts { unavailable: Some(String::new()), version, resources }
}

/// `/livez`, or `/healthz` if the member does not have or does not allow the former. The error
/// describes the fault.
async fn health(member: &Requests) -> Result<(), String> {
    let mut path = "/livez";
    loop {
        match member.probe(path).await {
            Ok(code) if code.is_success() => return Ok(()),
            Ok(StatusCode::FORBIDDEN | StatusCode::NOT_FOUND) if path == "/livez" => path = "/healthz",
            // It answers; the agent is not allowed to know more.
            Ok(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => return Ok(()),
            Ok(code) => return Err(format!("{path} of the kube-apiserver answered {}", code.as_u16())),
            Err(error) => return Err(plain(&format!("the kube-apiserver: {error}"))),
        }
    }
}

async fn resources(member: &Requests) -> Result<Resources, Cause> {
    let mut sums = [BTreeMap::new(), BTreeMap::new()];
    let mut next = String::new();
    for _ in 0..MOST_PAGES {
        let page = member.get(&format!("/api/v1/nodes?limit={PAGE}{next}")).await?;
        for node in page["items"].as_array().into_iter().flatten() {
            add(&mut sums[0], &node["status"]["capacity"]);
            add(&mut sums[1], &node["status"]["allocatable"]);
        }
        match page["metadata"]["continue"].as_str().filter(|token| !token.is_empty()) {
            Some(token) => next = format!("&continue={token}"),
            None => break,
        }
    }
    let [capacity, allocatable] = sums.map(|sums| sums.into_iter().map(|(name, sum)| (name, text(sum))).collect());
    Ok(Resources { capacity, allocatable })
}

fn add(sums: &mut BTreeMap<String, f64>, quantities: &Value) {
    for name in RESOURCES {
        let quantity = quantities[name].as_str().and_then(|text| text.parse::<Quantity>().ok());
        if let Some(quantity) = quantity {
            *sums.entry(name.to_owned()).or_default() += quantity.approximate();
        }
    }
}

/// A whole number, or thousandths.
fn text(sum: f64) -> String {
    if sum.fract() == 0.0 { format!("{sum:.0}") } else { format!("{:.0}m", sum * 1000.0) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hub::through::client_through;
    use kit::member::{FakeMember, MemberOptions, Reply};
    use serde_json::json;

    use super::super::dialer::through;
    use super::super::tests::insecure;
    use super::*;
    use crate::outbound::Outbound;

    async fn client(member: &FakeMember) -> Requests {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kubeconfig");
        std::fs::write(&path, insecure(member)).unwrap();
        let dial = through(Arc::new(Outbound::direct()));
        Requests::new(client_through(Some(&path), "test", dial).await.unwrap())
    }

    #[tokio::test]
    async fn health_is_what_the_api_server_says_of_itself() {
        for (livez, healthz, expected) in [
            (200, 500, ""),
            (403, 200, ""),
            (404, 200, ""),
            (404, 500, "/healthz of the kube-apiserver answered 500"),
            (403, 503, "/healthz of the kube-apiserver answered 503"),
            // It answers, but the agent may read nothing more.
            (403, 403, ""),
            (404, 401, ""),
            (401, 500, ""),
            (404, 404, "/healthz of the kube-apiserver answered 404"),
            (500, 200, "/livez of the kube-apiserver answered 500"),
            (503, 200, "/livez of the kube-apiserver answered 503"),
        ] {
            let member = FakeMember::start(MemberOptions::default()).await;
            member.on_any(move |request| match request.path() {
                "/livez" => Reply::status(livez, "x"),
                "/healthz" => Reply::status(healthz, "x"),
                _ => Reply::json(200, &json!({"gitVersion": "v1.35.4", "items": []})),
            });
            let facts = facts(&client(&member).await, &mut CachedFacts::default()).await;
            assert_eq!(facts.unavailable.as_deref(), Some(expected), "{livez} {healthz}");
            // An unhealthy member is asked nothing else.
            assert_eq!(facts.version.is_some(), expected.is_empty(), "{livez} {healthz}");
        }
    }

    #[tokio::test]
    async fn one_that_is_not_there_is_unavailable() {
        let member = FakeMember::start(MemberOptions::default()).await;
        let client = client(&member).await;
        drop(member);
        let unavailable = facts(&client, &mut CachedFacts::default()).await.unavailable.unwrap();
        assert!(unavailable.starts_with("the kube-apiserver: "), "{unavailable}");
    }

    #[tokio::test]
    async fn all_pages_of_nodes_count_and_are_read_seldom() {
        let (member, lists) = (FakeMember::start(MemberOptions::default()).await, Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&lists);
        member.on_any(move |request| {
            let node = json!({"status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}});
            let page = |next: &str| Reply::json(200, &json!({"metadata": {"continue": next}, "items": [node]}));
            if request.path() != "/api/v1/nodes" {
                return Reply::json(200, &json!({"gitVersion": "v1.35.4"}));
            }
            if request.query().is_some_and(|query| query.contains("continue=more")) {
                return page("");
            }
            counted.fetch_add(1, Ordering::Relaxed);
            page("more")
        });
        let (client, mut known) = (client(&member).await, CachedFacts::default());
        for _ in 0..2 {
            let facts = facts(&client, &mut known).await;
            let resources = facts.resources.unwrap();
            assert_eq!(facts.version.as_deref(), Some("v1.35.4"));
            assert_eq!((&*resources.capacity["cpu"], &*resources.allocatable["cpu"]), ("8", "6"));
        }
        assert_eq!(lists.load(Ordering::Relaxed), 1, "what changes seldom is read once a minute");
    }

    #[test]
    fn resources_of_nodes_are_summed() {
        let mut sums = BTreeMap::new();
        add(&mut sums, &json!({"cpu": "4", "memory": "16Gi", "example.com/card-1": "1"}));
        add(&mut sums, &json!({"cpu": "1500m", "memory": "1024Ki", "pods": "110"}));
        let told: Vec<_> = sums.into_iter().map(|(name, sum)| (name, text(sum))).collect();
        let expected = [("cpu", "5500m"), ("memory", "17180917760"), ("pods", "110")];
        assert_eq!(told, expected.map(|(name, sum)| (name.to_owned(), sum.to_owned())));
    }
}
