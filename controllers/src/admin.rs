//! What an operator asks: probes, metrics, and what became of each object.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use http::{HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use telemetry::admin::nearby::{refuse_remote, wants_json};
use telemetry::admin::{self, Answer, Endpoint, Probes, answer, method_not_allowed, text};
use tokio::runtime::Handle;

use crate::parts;
use crate::reports::{Report, Reports};

/// What keeps the controllers from being ready, as `/readyz` tells it.
pub const CONDITIONS: &[&str] = &["shutdown", parts::OCM_RIVAL, parts::OCM_ADMISSION];

const SOURCES: &str = "/debug/sources";
const HELP: &str = "there are:
  GET  /livez /readyz[?verbose] /metrics
  GET  /debug/sources[?format=json]          the outcome of each source object
";

/// Binds `listen` and answers on `runtime` from now on.
pub fn start(listen: SocketAddr, probes: Probes, reports: Arc<Reports>, runtime: &Handle) -> anyhow::Result<Endpoint> {
    let handler = move |request: Request<Incoming>| std::future::ready(respond(&request, &probes, &reports));
    admin::serve(listen, runtime, handler).with_context(|| format!("cannot listen on --admin-listen={listen}"))
}

fn respond<B>(request: &Request<B>, probes: &Probes, reports: &Reports) -> Answer {
    if let Some(answer) = probes.answer(request, || String::from("[i]sources: see /debug/sources\n")) {
        return answer;
    }
    if request.uri().path() != SOURCES {
        return text(StatusCode::NOT_FOUND, HELP);
    }
    if let Some(refused) = refuse_remote(request) {
        return refused;
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return method_not_allowed("GET, HEAD");
    }
    let reports = reports.list();
    if !wants_json(request) {
        return text(StatusCode::OK, table(&reports));
    }
    match serde_json::to_vec(&reports) {
        Ok(json) => answer(StatusCode::OK, HeaderValue::from_static("application/json"), json),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

fn table(reports: &[Report]) -> String {
    let mut lines = String::from("SOURCE\tSTATE\tCLUSTER\tOBJECT\tLAST WRITE\tREASON\n");
    for report in reports {
        let Report { source, state, cluster, object, reason, .. } = report;
        let written = report.last_write.as_deref().unwrap_or("-");
        // Writing to a text does not fail.
        let _ = writeln!(lines, "{source}\t{}\t{cluster}\t{object}\t{written}\t{reason}", state.as_str());
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
        respond(&request, &probes, &reports)
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
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json[0]["state"], &json[0]["cluster"]), (&"refused".into(), &"c1".into()));
        assert_eq!(ask(SOURCES, "10.0.0.1:9", None).status(), StatusCode::FORBIDDEN);
        assert_eq!(ask(SOURCES, near, Some(("host", "evil.example"))).status(), StatusCode::FORBIDDEN);
        assert_eq!(ask("/readyz", "10.0.0.1:9", None).status(), StatusCode::OK);
        assert_eq!(ask("/other", near, None).status(), StatusCode::NOT_FOUND);
    }
}
