//! What an operator asks: probes, metrics, and what became of each object.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use serde::Serialize;
use serde_json::Value;
use telemetry::admin::nearby::{refuse_remote, wants_json};
use telemetry::admin::{self, Answer, Endpoint, Probes, answer, method_not_allowed, text};
use tokio::runtime::Handle;

use crate::explained::{Explained, Explanation};
use crate::parts;
use crate::reports::{Report, Reports};

/// What keeps the controllers from being ready, in the words of `/readyz`.
pub const CONDITIONS: &[&str] = &[
    "shutdown",
    parts::OCM_RIVAL,
    parts::OCM_ADMISSION[0],
    parts::OCM_ADMISSION[1],
    parts::OCM_ADMISSION[2],
    parts::PLACEMENT_RIVAL,
    parts::PLACEMENT_UNLISTED,
    parts::REPLICA_SETS_RIVAL,
    parts::REPLICA_SETS_UNLISTED,
    parts::AVAILABILITY_RIVAL,
    parts::ARGOCD_UNLISTED,
];

const SOURCES: &str = "/debug/sources";
const PLACEMENT: &str = "/debug/placement";
const HELP: &str = "there are:
  GET  /livez /readyz[?verbose] /metrics
  GET  /debug/sources[?format=json]          the outcome of each source object
  GET  /debug/placement?name=NAMESPACE/NAME[&format=json]
                                             why a Placement has the clusters that it has
";

/// Reports about objects, for clients nearby.
pub struct Reported {
    pub reports: Arc<Reports>,
    pub explained: Explained,
}

/// Binds `listen` and answers on `runtime` from now on.
pub fn start(listen: SocketAddr, probes: Probes, told: Reported, runtime: &Handle) -> anyhow::Result<Endpoint> {
    let asked = Arc::new((probes, told));
    let handler = move |request: Request<Incoming>| respond_aside(request, Arc::clone(&asked));
    admin::serve(listen, runtime, handler).with_context(|| format!("cannot listen on --admin-listen={listen}"))
}

/// One run of a Placement may take a third of a second, and probes are not to wait for it.
async fn respond_aside(request: Request<Incoming>, asked: Arc<(Probes, Reported)>) -> Answer {
    if request.uri().path() != PLACEMENT {
        return respond(&request, &asked.0, &asked.1);
    }
    let answered = tokio::task::spawn_blocking(move || respond(&request, &asked.0, &asked.1)).await;
    answered.unwrap_or_else(|error| text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

fn respond<B>(request: &Request<B>, probes: &Probes, told: &Reported) -> Answer {
    if let Some(answer) = probes.answer(request, || String::from("[i]sources: see /debug/sources\n")) {
        return answer;
    }
    let path = request.uri().path();
    if !matches!(path, SOURCES | PLACEMENT) {
        return text(StatusCode::NOT_FOUND, HELP);
    }
    if let Some(refused) = refuse_remote(request) {
        return refused;
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return method_not_allowed("GET, HEAD");
    }
    if path == PLACEMENT {
        return placement(request, &told.explained);
    }
    let reports = told.reports.list();
    if wants_json(request) { json(&reports) } else { text(StatusCode::OK, table(&reports)) }
}

fn json(document: &impl Serialize) -> Answer {
    match serde_json::to_vec(document) {
        Ok(json) => answer(StatusCode::OK, HeaderValue::from_static("application/json"), json),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

fn placement<B>(request: &Request<B>, explained: &Explained) -> Answer {
    let query = request.uri().query().unwrap_or_default();
    let name = query.split('&').find_map(|pair| pair.strip_prefix("name=")).unwrap_or_default();
    let name = name.replace("%2F", "/").replace("%2f", "/");
    let Some((namespace, name)) = name.split_once('/') else {
        return text(StatusCode::BAD_REQUEST, "name=NAMESPACE/NAME is required\n");
    };
    match explained.of(namespace, name) {
        Explanation::NobodyKnows => text(
            StatusCode::SERVICE_UNAVAILABLE,
            "this replica schedules no Placements: it stands by, or runs without --enable=placement\n",
        ),
        Explanation::NoSuchPlacement => text(StatusCode::NOT_FOUND, "this replica knows no such Placement\n"),
        Explanation::Of(explanation) if wants_json(request) => json(&explanation),
        Explanation::Of(explanation) => text(StatusCode::OK, explanation_table(&explanation)),
    }
}

/// Conditions, then a line for each candidate: the filter that refused it, or its scores.
fn explanation_table(explanation: &Value) -> String {
    let mut lines = String::new();
    // Writing to a text does not fail.
    for condition in explanation["conditions"].as_array().into_iter().flatten() {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        let _ = writeln!(lines, "{}\t{}\t{}\t{}", text("type"), text("status"), text("reason"), text("message"));
    }
    lines.push_str("CLUSTER\tCHOSEN\tFILTERED BY\tTOTAL\tSCORES (score x weight)\n");
    for candidate in explanation["candidates"].as_array().into_iter().flatten() {
        let name = candidate["cluster"].as_str().unwrap_or_default();
        let is_chosen = if candidate["isChosen"] == true { "yes" } else { "no" };
        let filter = candidate["filteredBy"].as_str().unwrap_or("-");
        let _ = write!(lines, "{name}\t{is_chosen}\t{filter}\t{}\t", candidate["total"]);
        for score in candidate["scores"].as_array().into_iter().flatten() {
            let plugin = score["prioritizer"].as_str().unwrap_or_default();
            let _ = write!(lines, "{plugin}={}x{} ", score["score"], score["weight"]);
        }
        lines.push('\n');
    }
    lines
}

fn table(reports: &[Report]) -> String {
    let mut lines = String::from("SOURCE\tSTATE\tCLUSTER\tOBJECT\tLAST WRITE\tREASON\n");
    for report in reports {
        let Report { source, state, cluster, object, reason, .. } = report;
        let written = report.last_write.as_deref().unwrap_or("-");
        // Writing to a text does not fail.
        let _ = write!(lines, "{source}\t{}\t{cluster}\t{object}\t{written}\t{reason}", state.as_str());
        for name in &report.former_names {
            let _ = write!(lines, " (former name: {name})");
        }
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;
    use register::claims::Object;
    use telemetry::admin::PeerAddress;
    use telemetry::readiness::Readiness;

    use super::*;
    use crate::reports::Stage;

    fn ask(path: &str, asker: &str, header: Option<(&'static str, &'static str)>) -> Answer {
        ask_of(path, asker, header, Explained::default())
    }

    fn ask_of(path: &str, asker: &str, header: Option<(&'static str, &'static str)>, explained: Explained) -> Answer {
        let reports = Reports::default();
        let object = Object::new("capi", ["cluster.x-k8s.io", "Cluster"], "fleet", "c1");
        reports.see(&object, "c1", ObjectReference::default());
        reports.settle(&object, Stage::Refused, "server is empty: set it");
        let registry = prometheus_client::registry::Registry::default();
        let metrics = telemetry::metrics::Metrics::new(registry);
        let probes = Probes { readiness: Readiness::default(), conditions: CONDITIONS, metrics };
        let mut request = Request::get(path).body(()).unwrap();
        request.extensions_mut().insert(PeerAddress(asker.parse().unwrap()));
        if let Some((name, value)) = header {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        respond(&request, &probes, &Reported { reports: Arc::new(reports), explained })
    }

    async fn body(answer: Answer) -> String {
        let bytes = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn objects_are_listed_for_who_is_near_and_for_nobody_else() {
        let near = "127.0.0.1:9";
        let table = body(ask(SOURCES, near, None)).await;
        assert!(table.contains("capi\trefused\tc1\tcluster.x-k8s.io/Cluster/fleet/c1\t-\tserver is empty"), "{table}");
        let json = body(ask("/debug/sources?format=json", near, None)).await;
        let json: Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json[0]["state"], &json[0]["cluster"]), (&"refused".into(), &"c1".into()));
        assert_eq!(ask(SOURCES, "10.0.0.1:9", None).status(), StatusCode::FORBIDDEN);
        assert_eq!(ask(SOURCES, near, Some(("host", "evil.example"))).status(), StatusCode::FORBIDDEN);
        assert_eq!(ask("/readyz", "10.0.0.1:9", None).status(), StatusCode::OK);
        assert_eq!(ask("/other", near, None).status(), StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn a_placement_is_explained_while_somebody_knows_of_it() {
        let (near, explained) = ("127.0.0.1:9", Explained::default());
        let ask = |path: &str| ask_of(path, near, None, explained.clone());
        assert_eq!(ask("/debug/placement?name=team/p").status(), StatusCode::SERVICE_UNAVAILABLE);
        let answering = explained.by(|namespace, name| {
            (namespace == "team" && name == "p").then(|| {
                serde_json::json!({
                    "conditions": [{"type": "PlacementSatisfied", "status": "True", "reason": "R", "message": "m"}],
                    "candidates": [
                        {"cluster": "c1", "isChosen": true, "total": 150,
                            "scores": [{"prioritizer": "Balance", "score": 50, "weight": 3}]},
                        {"cluster": "c2", "isChosen": false, "filteredBy": "Predicate", "total": 0, "scores": []}],
                })
            })
        });
        let table = body(ask("/debug/placement?name=team%2Fp")).await;
        assert!(table.contains("c1\tyes\t-\t150\tBalance=50x3"), "{table}");
        assert!(table.contains("c2\tno\tPredicate\t0") && table.contains("PlacementSatisfied\tTrue\tR\tm"), "{table}");
        let json = body(ask("/debug/placement?name=team/p&format=json")).await;
        assert!(serde_json::from_str::<Value>(&json).unwrap()["candidates"][0]["isChosen"] == true, "{json}");
        assert_eq!(ask("/debug/placement?name=team/q").status(), StatusCode::NOT_FOUND);
        assert_eq!(ask("/debug/placement?name=p").status(), StatusCode::BAD_REQUEST);
        let far = ask_of("/debug/placement?name=team/p", "10.0.0.1:9", None, explained.clone());
        assert_eq!(far.status(), StatusCode::FORBIDDEN);
        drop(answering);
        assert_eq!(ask("/debug/placement?name=team/p").status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}
