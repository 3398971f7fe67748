//! One look at a member, through the gateway.

use std::time::Duration;

use api::API_VERSION;
use api::cluster_name::ClusterName;
use api::side::Side;
use fleet::{Failure, Fleet, Kind, answer};
use http::Request;
use kube::Client;
use kube::client::Body;
use register::outcome::Outcome;
use register::profile::{CLAIMS, MEMBER_PROPERTIES, Property, read_properties};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

/// For one answer.
const WITHIN: Duration = Duration::from_secs(10);
const LARGEST: usize = 1 << 20;
/// Of a version such as `v1.35.4`, in bytes. A longer one is left out.
const LONGEST_VERSION: usize = 64;
/// Of one kind of a member. One has ten.
const MOST: usize = 200;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    git_version: String,
}

/// Of `APIResourceList`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Served {
    group_version: String,
}

/// Whether the API server of the member called `name` is ready.
pub async fn health(members: &Fleet, name: &ClusterName) -> Outcome {
    match get(&members.client(name), "/readyz").await {
        Ok(_) => Outcome::Healthy,
        // Plain text: of a hub that has no gateway to ask, or of a load balancer before a dead
        // member. The gateway's own failures are a Status.
        Err(Failure { side: None, kind: Kind::Plain(502..=504), .. }) => nobodys(members.hub()).await,
        Err(failure) => outcome(&failure),
    }
}

/// An answer that neither the gateway nor an API server wrote: of what is before the member, if the
/// hub has a gateway to ask.
async fn nobodys(hub: &Client) -> Outcome {
    // The hub passes it on, and any user may read it.
    let answer = get(hub, &format!("/apis/{API_VERSION}")).await;
    // What a load balancer before the hub says of everything is no word of the gateway either.
    let is_gateways =
        |body: &[u8]| serde_json::from_slice::<Served>(body).is_ok_and(|served| served.group_version == API_VERSION);
    match answer {
        Ok(body) if is_gateways(&body) => Outcome::Unreachable(
            "a server in front of the member's API server got no answer from it: check that the API server runs"
                .to_owned(),
        ),
        _ => Outcome::NotProbed("the hub has no answer from the gateway".to_owned()),
    }
}

/// The API server's version. None: it does not say.
pub async fn version(member: &Client) -> Option<String> {
    let body = get(member, "/version").await.ok()?;
    let version = serde_json::from_slice::<Version>(&body).ok()?.git_version;
    let is_one = version.len() <= LONGEST_VERSION && version.bytes().all(|byte| byte.is_ascii_graphic());
    is_one.then_some(version)
}

/// What the member says of itself, by `ClusterProperties` and `ClusterClaims`. None: that cannot be
/// read now. A member without such kinds, or one that
/// refuses our credential (403), says nothing.
pub async fn properties(member: &Client) -> Option<Vec<Property>> {
    let mut properties = Vec::new();
    for path in MEMBER_PROPERTIES {
        let listed = list(member, path).await?;
        if let Some(listed) = listed {
            properties.extend(listed);
            break;
        }
    }
    properties.extend(list(member, CLAIMS).await?.unwrap_or_default());
    Some(properties)
}

/// Some(None): there is no such kind here.
async fn list(member: &Client, path: &str) -> Option<Option<Vec<Property>>> {
    match get(member, &format!("{path}?limit={MOST}")).await {
        Ok(body) => Some(Some(read_properties(&serde_json::from_slice::<Value>(&body).unwrap_or_default()))),
        Err(Failure { kind: Kind::Answered(403 | 404) | Kind::Plain(403 | 404), side: None, .. }) => Some(None),
        Err(_) => None,
    }
}

async fn get(member: &Client, target: &str) -> Result<Vec<u8>, Failure> {
    let request = Request::get(target).body(Body::empty()).map_err(kube::Error::HttpError)?;
    let answered = timeout(WITHIN, answer(&member.clone().into(), request, LARGEST)).await;
    answered.unwrap_or_else(|_| Err(Failure::late(WITHIN))).map(|body| body.to_vec())
}

/// What a failure says of the member. Its text is of fixed words, none of the member's.
fn outcome(failure: &Failure) -> Outcome {
    let with_next_step = |what: String| match failure.next_step() {
        "" => what,
        next => format!("{what}: {next}"),
    };
    match (failure.side, failure.kind) {
        (Some(Side::Caller), Kind::Answered(404)) => {
            Outcome::Unreachable(with_next_step("the gateway does not serve this cluster".to_owned()))
        }
        (Some(side @ (Side::Tunnel | Side::Member)), _) => {
            Outcome::Unreachable(with_next_step(format!("a request failed at the {}", side.as_str())))
        }
        (Some(side), _) => Outcome::NotProbed(with_next_step(format!("a request failed at the {}", side.as_str()))),
        (None, Kind::Answered(500..) | Kind::Plain(500..)) => Outcome::NotReady,
        // An API server that says no is one that answers.
        (None, Kind::Answered(_) | Kind::Plain(_)) => Outcome::Healthy,
        (None, Kind::Late | Kind::Unanswered | Kind::Own) => {
            Outcome::Unreachable(with_next_step("the member did not answer in time".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::HeaderValue;
    use serde_json::json;

    use super::*;
    use crate::scripted;

    /// By what the hub answers for a member, and for the gateway's own API.
    async fn probed_where(code: u16, body: Value, gateway: (u16, Value)) -> Outcome {
        let text = |body: Value| if let Value::String(text) = body { text } else { body.to_string() };
        let (of_member, of_gateway) = ((code, text(body)), (gateway.0, text(gateway.1)));
        let hub = scripted::answering(move |request| {
            let is_gateways = request.uri().path().ends_with(API_VERSION);
            let (code, text) = if is_gateways { of_gateway.clone() } else { of_member.clone() };
            ready(scripted::text(code, text))
        });
        health_by(hub).await
    }

    async fn health_by(hub: Client) -> Outcome {
        health(&Fleet::new(hub), &ClusterName::parse("c1").unwrap()).await
    }

    async fn probed(code: u16, body: Value) -> Outcome {
        probed_where(code, body, (200, served())).await
    }

    fn served() -> Value {
        json!({"kind": "APIResourceList", "groupVersion": API_VERSION, "resources": []})
    }

    fn status(code: u16, hop: &str) -> Value {
        json!({"kind": "Status", "code": code, "message": "c4n4ry",
            "details": {"group": "cluster.core.oam.dev", "kind": "clustergateways", "name": "c1",
                "causes": [{"reason": hop, "message": "c4n4ry"}]}})
    }

    #[tokio::test]
    async fn what_a_member_answers_is_its_own_and_what_comes_before_says_nothing_of_it() {
        assert_eq!(probed(200, json!("ok")).await, Outcome::Healthy);
        assert_eq!(probed(403, json!({"kind": "Status", "code": 403})).await, Outcome::Healthy);
        assert_eq!(probed(500, json!("[-]etcd failed")).await, Outcome::NotReady);
        for (code, body) in [(502, status(502, "Member")), (504, status(504, "Tunnel")), (404, status(404, ""))] {
            let Outcome::Unreachable(why) = probed(code, body.clone()).await else { panic!("{body}") };
            assert!(!why.contains("c4n4ry") && why.contains(": "), "{why}");
        }
        for (code, body) in [
            (503, status(503, "Hub")),
            (503, status(503, "Gateway")),
            (403, status(403, "")),
            (401, json!({"kind": "Status", "code": 401})),
        ] {
            assert!(matches!(probed(code, body.clone()).await, Outcome::NotProbed(_)), "{body}");
        }
    }

    /// A balancer before a dead member answers with text, as a hub without a gateway does.
    #[tokio::test]
    async fn what_a_balancer_says_of_a_dead_member_is_no_word_of_a_hub_without_a_gateway() {
        for code in [502, 503, 504] {
            let page = json!("<html>no upstream</html>");
            let outcome = probed_where(code, page.clone(), (200, served())).await;
            assert!(matches!(outcome, Outcome::Unreachable(_)), "{outcome:?}");
            // Nor is it one of the gateway, where the balancer is before the hub.
            for gateway in [(503, page.clone()), (200, page.clone()), (200, json!({"groupVersion": "v1"}))] {
                let outcome = probed_where(code, page.clone(), gateway).await;
                assert!(matches!(outcome, Outcome::NotProbed(_)), "{outcome:?}");
            }
        }
    }

    /// The gateway passes on only those that stay on the member.
    #[tokio::test]
    async fn a_redirect_is_an_answer_and_is_not_followed() {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let hub = scripted::answering(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            let mut response = scripted::text(307, "");
            response.headers_mut().insert("location", HeaderValue::from_static("/elsewhere"));
            ready(response)
        });
        assert_eq!(health_by(hub).await, Outcome::Healthy);
        assert_eq!(asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_never_answers_is_given_up() {
        let outcome = health_by(scripted::client(|_, _| None)).await;
        assert!(matches!(outcome, Outcome::Unreachable(_)), "{outcome:?}");
    }
}
