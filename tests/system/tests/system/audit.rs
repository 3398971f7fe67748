//! The audit log: every request is in it, under the right name, and nothing secret is.

mod failing;
mod refused;
mod secrets;
mod streams;

use std::fs;
use std::path::PathBuf;

use system_tests::prelude::*;
use system_tests::{TestbedBuilder, VIEWER};
use tempfile::TempDir;

/// A path of the member.
const POD: &str = "/api/v1/namespaces/ns/pods/p";

/// A log in a directory of its own.
struct Log(TempDir);

// === impl Log ===

impl Log {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("audit.log")
    }

    /// A gateway that writes it, with the cluster [`CLUSTER`] at `member`.
    fn of(&self, member: &FakeMember) -> TestbedBuilder {
        self.written_by(Testbed::builder().cluster(CLUSTER, cluster(CLUSTER, member)))
    }

    fn written_by(&self, testbed: TestbedBuilder) -> TestbedBuilder {
        testbed.arg(&format!("--audit-log-path={}", self.path().display()))
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).expect("the log is text")
    }

    /// The whole events so far.
    fn events(&self) -> Vec<Value> {
        let text = self.text();
        let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
    }

    /// Waits until there are `count` events.
    async fn reaches(&self, count: usize) -> Vec<Value> {
        eventually(WAIT, || self.events().len() >= count).await;
        self.events()
    }
}

/// A member that answers everything.
async fn member() -> FakeMember {
    let member = Http::H2.member().await;
    member.on_any(|_| Reply::full(200, &[], "from the member"));
    member
}

across_http!(a_proxied_request_is_written_as_it_is_on_the_member);

async fn a_proxied_request_is_written_as_it_is_on_the_member(http: Http) {
    let (log, member) = (Log::new(), member().await);
    let testbed = log.of(&member).start().await;
    let mut connection = testbed.anonymous(http).await.bearer(VIEWER);
    let target = proxied(CLUSTER, &format!("{POD}?resourceVersion=0"));
    let headers = [("user-agent", "kubectl/v1.33"), ("x-forwarded-for", "192.0.2.7, nonsense")];
    let answer = connection.call("GET", &target, &headers, b"").await;
    assert_eq!(answer.status, 200);
    let request = member.next_request().await;
    testbed.stop().await;

    let [event] = log.events().try_into().expect("one event");
    let id = event["auditID"].as_str().expect("an id");
    assert_eq!(id.len(), 36, "{id}");
    assert_eq!(answer.header("audit-id"), Some(id));
    assert_eq!(request.headers["audit-id"], id, "the member's own log names the same");
    let latency = event["annotations"]["cluster.core.oam.dev/latency"].as_str().expect("a latency");
    assert!(latency.strip_suffix("ms").is_some_and(|number| number.parse::<f64>().is_ok()), "{latency}");
    assert!(event["requestReceivedTimestamp"].as_str() < event["stageTimestamp"].as_str(), "{event}");
    let expected = json!({
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": id,
        "stage": "ResponseComplete", "requestURI": target, "verb": "get",
        "user": {"username": "viewer", "uid": "2", "groups": ["system:authenticated"]},
        "sourceIPs": ["192.0.2.7", "127.0.0.1"], "userAgent": "kubectl/v1.33",
        "objectRef": {"resource": "pods", "namespace": "ns", "name": "p", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": event["requestReceivedTimestamp"], "stageTimestamp": event["stageTimestamp"],
        "annotations": {
            "authorization.k8s.io/decision": "allow",
            "cluster.core.oam.dev/cluster": CLUSTER,
            "cluster.core.oam.dev/latency": latency,
        },
    });
    assert_eq!(event, expected);
}

#[tokio::test]
async fn a_hubs_id_is_kept() {
    let (log, member) = (Log::new(), member().await);
    let testbed = log.of(&member).start().await;
    let mut connection = testbed.connect(Http::H2).await;
    let id = "5d2c4c0f-3b60-4a3a-9f6e-0a4b3a1e2d11";
    connection.call("GET", &proxied(CLUSTER, POD), &[("audit-id", id)], b"").await;
    assert_eq!(member.next_request().await.headers["audit-id"], id);
    testbed.stop().await;
    assert_eq!(log.events()[0]["auditID"], id);
}

#[tokio::test]
async fn an_id_that_is_no_good_is_replaced_for_everybody() {
    let (log, member) = (Log::new(), member().await);
    let testbed = log.of(&member).start().await;
    let mut connection = testbed.connect(Http::H2).await;
    let answer = connection.call("GET", &proxied(CLUSTER, POD), &[("audit-id", &"x".repeat(65))], b"").await;
    let request = member.next_request().await;
    testbed.stop().await;
    let [event] = log.events().try_into().expect("one event");
    assert_eq!(request.headers["audit-id"], event["auditID"].as_str().unwrap(), "the member's own log names the same");
    assert_eq!(answer.header("audit-id"), event["auditID"].as_str());
}

#[tokio::test]
async fn what_the_gateway_answers_itself_is_audited_but_probes_and_metrics_are_not() {
    let (log, member) = (Log::new(), member().await);
    let testbed = log.of(&member).start().await;
    for path in ["/healthz", "/livez", "/readyz", "/readyz?verbose", "/metrics", "/apis", "/version"] {
        assert_eq!(testbed.get(path).await.status, 200, "{path}");
    }
    testbed.get("/apis/cluster.core.oam.dev/v1alpha1/clustergateways?limit=5").await;
    testbed.stop().await;
    let events = log.events();
    let words = |event: &Value| [&event["verb"], &event["requestURI"]].map(|word| word.as_str().unwrap().to_owned());
    let asked: Vec<_> = events.iter().map(words).collect();
    let list = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways?limit=5";
    assert_eq!(asked, [["get", "/apis"], ["get", "/version"], ["list", list]]);
    assert_eq!(events[2]["objectRef"]["resource"], "clustergateways");
    assert_eq!(events[2]["annotations"].get("cluster.core.oam.dev/cluster"), None);
}

#[tokio::test]
async fn without_the_flag_nothing_is_written_and_requests_get_no_id() {
    let member = member().await;
    let testbed = Testbed::with(&member).await;
    let answer = testbed.get(&proxied(CLUSTER, POD)).await;
    assert_eq!((answer.status, answer.header("audit-id")), (200, None));
    assert!(!member.next_request().await.headers.contains_key("audit-id"));
}
