//! Links of a cluster's agents, as the tunnel-servers count them.
//!
//! Their admin port is reached through the hub's API server (`pods/proxy`), with the person's own
//! rights. A gateway that agents link to directly does not report their links there.

use api::cluster_name::ClusterName;
use bytes::Bytes;
use fleet::{Failure, Kind};
use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams};

use crate::namespace;
use crate::session::{self, Session};
use crate::trouble::{self, Result, Trouble};

/// Label that the gateway's chart gives the pods of tunnel-servers.
const SELECTOR: &str = "app.kubernetes.io/name=tunnel-server";
/// Name of their port for metrics.
const PORT: &str = "admin";
/// Most tunnel-servers that are asked.
const MOST: u32 = 8;
const FAMILY: &str = "tunnel_server_links";
/// The name under which a tunnel-server counts all clusters after the first thousand.
const OTHER: &str = "other";

/// Links of one tunnel-server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Links {
    pub server: String,
    pub count: Count,
}

/// The number of links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    Of(u64),
    /// The tunnel-server has too many clusters to count each, and this one may be among the rest.
    Together,
    /// The tunnel-server could not be asked.
    Unanswered,
}

/// The links at each tunnel-server. Empty: there is no tunnel-server.
pub async fn of(session: &Session, cluster: &ClusterName) -> Result<Vec<Links>> {
    let namespace = namespace::of_gateway(session).await?;
    let pods = Api::<Pod>::namespaced(session.hub().clone(), &namespace);
    let listed = session.within(pods.list(&ListParams::default().labels(SELECTOR).limit(MOST))).await;
    let may = format!("you need `list` of pods and `get` of pods/proxy in the namespace {namespace}");
    let listed = listed.map_err(|trouble| trouble.remedied(may.clone()))?;
    let named = listed.items.iter().filter_map(|pod| Some((pod.name_any(), port(pod)?)));
    let asked = join_all(named.map(async |(server, port)| {
        let path = format!("/api/v1/namespaces/{namespace}/pods/{server}:{port}/proxy/metrics");
        (server, session.bounded(session::get(session.hub(), &path, "*/*")).await)
    }));
    let mut found = Vec::new();
    let mut last = None;
    for (server, told) in asked.await {
        let read = |text: &Bytes| count(&String::from_utf8_lossy(text), cluster.as_str());
        let count = told.as_ref().map_or(Count::Unanswered, read);
        last = told.err().or(last);
        found.push(Links { server, count });
    }
    match last {
        Some(failure) if found.iter().all(|one| one.count == Count::Unanswered) => {
            Err(Trouble::failed(trouble::cause(&failure), remedy(&failure, may)))
        }
        _ => Ok(found),
    }
}

/// `may` names the rights that a person needs.
fn remedy(failure: &Failure, may: String) -> String {
    match failure.kind {
        Kind::Answered(403) | Kind::Plain(403) => may,
        _ => "see the tunnel-servers' pods; with networkPolicy.enabled, the chart's networkPolicy.metrics must name \
              the hub's API servers"
            .to_owned(),
    }
}

fn port(pod: &Pod) -> Option<i32> {
    let ports =
        pod.spec.iter().flat_map(|spec| &spec.containers).flat_map(|container| container.ports.iter().flatten());
    ports.into_iter().find(|port| port.name.as_deref() == Some(PORT)).map(|port| port.container_port)
}

/// The links of `cluster` in metrics, which are in Prometheus' text format.
fn count(text: &str, cluster: &str) -> Count {
    let of = |cluster: &str| -> Option<u64> {
        let line = format!("{FAMILY}{{cluster=\"{cluster}\"}} ");
        text.lines().find_map(|told| told.strip_prefix(&line)?.split(' ').next()?.parse().ok())
    };
    match of(cluster) {
        Some(links) => Count::Of(links),
        None if of(OTHER).is_some_and(|links| links > 0) => Count::Together,
        None => Count::Of(0),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn links_are_read_from_metrics() {
        let text = "# TYPE tunnel_server_links gauge\n\
                    tunnel_server_links{cluster=\"oslo-2\"} 7\n\
                    tunnel_server_links{cluster=\"oslo\"} 2\n\
                    tunnel_server_links_ended_total{reason=\"left\"} 4\n";
        assert_eq!([count(text, "oslo"), count(text, "berlin"), count("", "oslo")], [2, 0, 0].map(Count::Of));
    }

    #[test]
    fn a_cluster_beyond_the_first_thousand_is_not_said_to_have_none() {
        let many = |others: u64| format!("{FAMILY}{{cluster=\"oslo\"}} 2\n{FAMILY}{{cluster=\"other\"}} {others}\n");
        assert_eq!([count(&many(7), "oslo"), count(&many(7), "berlin")], [Count::Of(2), Count::Together]);
        assert_eq!(count(&many(0), "berlin"), Count::Of(0));
    }

    #[test]
    fn only_a_refusal_is_a_matter_of_rights() {
        let of = |kind| remedy(&Failure { kind, ..Failure::own("no") }, "the right".to_owned());
        assert_eq!(of(Kind::Answered(403)), "the right");
        for kind in [Kind::Answered(503), Kind::Plain(502), Kind::Late] {
            assert!(of(kind).contains("networkPolicy.metrics"));
        }
    }

    #[test]
    fn the_admin_port_is_found_by_name() {
        let ports = json!([{"name": "agents", "containerPort": 8091}, {"name": "admin", "containerPort": 8095}]);
        let containers = json!([{"name": "side"}, {"name": "tunnel-server", "ports": ports}]);
        let pod =
            |containers| serde_json::from_value(json!({"metadata": {}, "spec": {"containers": containers}})).unwrap();
        assert_eq!(port(&pod(containers)), Some(8095));
        assert_eq!(port(&pod(json!([]))), None);
    }
}
