//! KubeVela's requests, as observed from its controller (directly to the gateway, with a
//! ServiceAccount's token) and its command line (through the aggregator), and the words of failures
//! on which it acts.
//!
//! It uses JSON, finds kinds by plain discovery, tries every change as a dry run first, and never
//! watches.

mod identity;

use hub_tests::ports;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};

/// How long KubeVela retries if a cluster that was just joined is not known yet: three times, a
/// second apart.
const JOINING: Duration = Duration::from_secs(3);
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const MERGE: &str = "application/merge-patch+json";

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for route in Route::PROXIED {
        let name = |what: &str| format!("vela::via {}: {what}", route.name());
        trials.push(test(fixture, name("an application comes, changes and goes"), move |testbed| {
            application(testbed, route)
        }));
        trials.push(test(fixture, name("joining, renaming and detaching a cluster"), move |testbed| {
            join(testbed, route)
        }));
    }
    trials.extend(identity::trials(fixture));
    trials
}

/// One caller of one cluster, with the parts that each of its requests has.
struct Vela<'a> {
    testbed: &'a Testbed,
    route: Route,
    cluster: String,
    headers: Vec<(&'static str, String)>,
    /// Added to every query.
    query: &'static str,
}

// === impl Vela ===

impl<'a> Vela<'a> {
    fn new(testbed: &'a Testbed, route: Route, cluster: &str) -> Self {
        let headers = vec![("authorization", bearer(&testbed.token)), ("user-agent", "vela-core/v1.11".to_owned())];
        Self { testbed, route, cluster: cluster.to_owned(), headers, query: "" }
    }

    fn send(&self, method: &Method, path: &str, kind: &str, body: Option<&Value>) -> Result<Response> {
        let (join, more) = if path.contains('?') { ("&", self.query) } else { ("?", self.query) };
        let join = if more.is_empty() { "" } else { join };
        let path = format!("{}{path}{join}{more}", Testbed::proxy_path(&self.cluster));
        let mut headers: Vec<(&str, &str)> = self.headers.iter().map(|(name, value)| (*name, &**value)).collect();
        headers.push(("accept", "application/json, */*"));
        if body.is_some() {
            headers.push(("content-type", kind));
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        client(self.testbed, self.route).send(method, &path, &headers, Bytes::from(body))
    }

    fn get(&self, path: &str) -> Result<Response> {
        self.send(&Method::GET, path, "", None)
    }

    /// A change as KubeVela makes it: first as a dry run, which must change nothing.
    fn change(&self, method: &Method, path: &str, kind: &str, body: &Value, code: StatusCode) -> Result<Value> {
        let object = |answer: Response| -> Result<Value> { answer.expect(code)?.json() };
        object(self.send(method, &format!("{path}?dryRun=All"), kind, Some(body))?).context("as a dry run")?;
        object(self.send(method, path, kind, Some(body))?)
    }
}

/// The message of a failure, which is a Status in JSON.
fn failure(response: Response, code: StatusCode) -> Result<String> {
    let status = response.expect(code)?.json()?;
    ensure!(status["kind"] == "Status" && status["status"] == "Failure" && status["code"] == code.as_u16(), "{status}");
    Ok(status["message"].as_str().unwrap_or_default().to_owned())
}

fn application(testbed: &Testbed, route: Route) -> Result<()> {
    let namespace = format!("vela-{}", route.name());
    testbed.member.server.create_namespace(&namespace)?;
    let vela = Vela::new(testbed, route, CLUSTER);
    for path in ["/api", "/apis", "/api/v1", "/apis/apps/v1", "/apis/rbac.authorization.k8s.io/v1"] {
        let kind = vela.get(path)?.expect(StatusCode::OK)?.json()?["kind"].clone();
        ensure!(
            ["APIVersions", "APIGroupList", "APIResourceList"].iter().any(|known| kind == **known),
            "{path}: {kind}"
        );
    }
    let revisions = format!("/apis/apps/v1/namespaces/{namespace}/controllerrevisions");
    let list = vela.get(&format!("{revisions}?labelSelector=controller.oam.dev%2Fcomponent%3Dweb"))?;
    ensure!(list.expect(StatusCode::OK)?.json()?["items"] == json!([]), "a list that is not empty");

    let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
    let web = format!("{deployments}/web");
    ensure!(vela.get(&web)?.status == StatusCode::NOT_FOUND, "it is there already");
    let labels = json!({"app.oam.dev/component": "web"});
    let body = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "one"}]},
        }},
    });
    vela.change(&Method::POST, &deployments, "application/json", &body, StatusCode::CREATED)?;
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "two"}]}}}});
    let changed = vela.change(&Method::PATCH, &web, STRATEGIC, &patch, StatusCode::OK)?;
    ensure!(changed["spec"]["template"]["spec"]["containers"].as_array().map(Vec::len) == Some(1), "{changed}");
    let patch = json!({"metadata": {"annotations": {"note": "kept"}}});
    let changed = vela.change(&Method::PATCH, &web, MERGE, &patch, StatusCode::OK)?;
    ensure!(changed["spec"]["template"]["spec"]["containers"][0]["image"] == "two", "{changed}");
    let body = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
    vela.send(&Method::DELETE, &web, "application/json", Some(&body))?.expect(StatusCode::OK)?;
    ensure!(vela.get(&web)?.status == StatusCode::NOT_FOUND, "it is still there");
    Ok(())
}

/// Changes of clusters: by the texts it decides whether a cluster is gone, or only unreachable.
fn join(testbed: &Testbed, route: Route) -> Result<()> {
    let names = [format!("joined-{}", route.name()), format!("renamed-{}", route.name())];
    let [vela, renamed] = [&names[0], &names[1]].map(|name| Vela::new(testbed, route, name));
    let joined = |vela: &Vela<'_>| {
        wait::until("the cluster that was joined", JOINING, || vela.get("/version")?.expect(StatusCode::OK))
    };
    let secret = || MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    let absent = |vela: &Vela<'_>| -> Result<()> {
        let message = failure(vela.get("/version")?, StatusCode::NOT_FOUND)?;
        ensure!(message.contains(&format!("no such cluster {}", vela.cluster)), "{message}");
        Ok(())
    };
    absent(&vela)?;
    testbed.hub.register_member(&names[0], &secret())?;
    joined(&vela)?;
    // Renaming creates another Secret and deletes this one.
    testbed.hub.register_member(&names[1], &secret())?;
    testbed.hub.forget_member(&names[0])?;
    joined(&renamed)?;
    wait::until("the old name's end", JOINING, || absent(&vela))?;
    // The clean-up of an application on a detached cluster stops at this text, for all of its
    // requests.
    for (method, path) in [
        (Method::GET, "/apis/apps/v1/namespaces/default/deployments/web"),
        (Method::GET, "/apis/apps/v1/controllerrevisions?labelSelector=a%3Db"),
        (Method::DELETE, "/apis/apps/v1/namespaces/default/deployments/web"),
        (Method::PATCH, "/apis/apps/v1/namespaces/default/deployments/web"),
    ] {
        let message = failure(vela.send(&method, path, MERGE, Some(&json!({})))?, StatusCode::NOT_FOUND)?;
        ensure!(message.contains("no such cluster"), "{method} {path}: {message}");
    }
    // Nothing listens at its address any more: disconnected, but not gone.
    let nobody = format!("https://127.0.0.1:{}", ports::free()?);
    testbed.hub.register_member(&names[1], &secret().at(&nobody))?;
    let message = wait::until("the dead address", JOINING, || {
        failure(renamed.get("/version")?, StatusCode::SERVICE_UNAVAILABLE)
    })?;
    ensure!(message.contains("dial tcp") && !message.contains("no such cluster"), "{message}");
    let message = failure(
        renamed.send(&Method::DELETE, "/api/v1/nodes/x", MERGE, Some(&json!({})))?,
        StatusCode::SERVICE_UNAVAILABLE,
    )?;
    ensure!(message.contains("dial tcp"), "{message}");
    testbed.hub.forget_member(&names[1])
}
