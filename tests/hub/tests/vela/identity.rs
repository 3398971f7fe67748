//! KubeVela with authentication on: each request names the application's user in `Impersonate-*`,
//! and `?impersonate=true` asks that the member sees that user, too. The hub decides whether the
//! impersonation is allowed, the member what the user may do.

use std::sync::OnceLock;

use hub_tests::prelude::*;
use hub_tests::testbed::ALL_VERBS;
use libtest_mimic::Trial;

use super::{Vela, failure};
use crate::access::bearer;
use crate::fixture::{Fixture, test};

const USER: &str = "system:serviceaccount:tenants:deployer";
const GROUP: &str = "kubevela:client:tenants";
const NAMESPACE: &str = "tenants";
const MAPS: &str = "/api/v1/namespaces/tenants/configmaps";

pub(super) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for route in Route::PROXIED {
        let name = |what: &str| format!("vela::via {}: {what}", route.name());
        trials
            .push(test(fixture, name("the member sees the application's user"), move |testbed| tenant(testbed, route)));
        trials.push(test(fixture, name("the hub decides who may impersonate"), move |testbed| refused(testbed, route)));
    }
    trials
}

/// KubeVela's ServiceAccount, which may impersonate, and the impersonated user, who may read its
/// namespace on the member.
fn prepare(testbed: &Testbed) -> Result<String> {
    static TOKEN: OnceLock<Result<String, String>> = OnceLock::new();
    let token = TOKEN.get_or_init(|| create(testbed).map_err(|error| format!("{error:#}")));
    token.clone().map_err(|error| anyhow!("{error}"))
}

fn role(name: &str, namespace: Option<&str>, rules: &Value, subjects: &Value) -> [Value; 2] {
    let prefix = if namespace.is_some() { "" } else { "Cluster" };
    let metadata = json!({"name": name, "namespace": namespace});
    let reference = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": format!("{prefix}Role"), "name": name});
    let api = "rbac.authorization.k8s.io/v1";
    [
        json!({"apiVersion": api, "kind": format!("{prefix}Role"), "metadata": metadata, "rules": rules}),
        json!({"apiVersion": api, "kind": format!("{prefix}RoleBinding"), "metadata": metadata, "roleRef": reference, "subjects": subjects}),
    ]
}

fn create(testbed: &Testbed) -> Result<String> {
    let token = testbed.hub.create_user("vela-core", &[], ALL_VERBS)?;
    let vela = json!([{"kind": "ServiceAccount", "name": "vela-core", "namespace": "default"}]);
    let rules =
        json!([{"apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"], "verbs": ["impersonate"]}]);
    testbed.hub.apply(&role("vela-impersonates", None, &rules, &vela))?;
    testbed.hub.allow("tenants", &json!([{"kind": "Group", "name": GROUP}]), &[CLUSTER], ALL_VERBS)?;
    testbed.member.server.create_namespace(NAMESPACE)?;
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create"]}]);
    let [tenant, binding] = role("tenants", Some(NAMESPACE), &rules, &json!([{"kind": "Group", "name": GROUP}]));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [tenant, binding]});
    testbed.member.server.apply(&[list])?;
    Ok(token)
}

fn vela<'a>(testbed: &'a Testbed, route: Route, token: &str, query: &'static str) -> Vela<'a> {
    let mut vela = Vela::new(testbed, route, CLUSTER);
    vela.headers[0].1 = bearer(token);
    vela.headers.push(("impersonate-user", USER.to_owned()));
    for group in [GROUP, "system:authenticated"] {
        vela.headers.push(("impersonate-group", group.to_owned()));
    }
    vela.query = query;
    vela
}

fn tenant(testbed: &Testbed, route: Route) -> Result<()> {
    let token = prepare(testbed)?;
    let vela = vela(testbed, route, &token, "impersonate=true");
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review =
        vela.send(&Method::POST, path, "application/json", Some(&review))?.expect(StatusCode::CREATED)?.json()?;
    let user = &review["status"]["userInfo"];
    ensure!(user["username"] == USER && user["groups"].to_string().contains(GROUP), "{review}");

    let name = format!("of-{}", route.name());
    let body = json!({"metadata": {"name": name}});
    vela.change(&Method::POST, MAPS, "application/json", &body, StatusCode::CREATED)?;
    vela.get(&format!("{MAPS}/{name}"))?.expect(StatusCode::OK)?;
    // The member's own words arrive unchanged: the application's owner sees them.
    let message = failure(
        vela.send(&Method::DELETE, &format!("{MAPS}/{name}"), "application/json", Some(&json!({})))?,
        StatusCode::FORBIDDEN,
    )?;
    let words = format!(
        "configmaps \"{name}\" is forbidden: User \"{USER}\" cannot delete resource \"configmaps\" in API group \"\" in the namespace \"{NAMESPACE}\""
    );
    ensure!(message == words, "{message}");
    let message = failure(vela.get("/api/v1/nodes")?, StatusCode::FORBIDDEN)?;
    ensure!(
        message.starts_with(&format!("nodes is forbidden: User \"{USER}\" cannot list resource \"nodes\"")),
        "{message}"
    );
    Ok(())
}

fn refused(testbed: &Testbed, route: Route) -> Result<()> {
    let token = prepare(testbed)?;
    // Without the query, the join credential is used for users whom the hub lets use the cluster.
    vela(testbed, route, &token, "").get("/api/v1/nodes")?.expect(StatusCode::OK)?;
    // Only this spelling counts.
    for query in ["impersonate=false", "impersonate=True", "impersonate=1"] {
        vela(testbed, route, &token, query).get("/api/v1/nodes")?.expect(StatusCode::OK)?;
    }
    // A user without rights on the hub.
    let mut other = vela(testbed, route, &token, "impersonate=true");
    other.headers.retain(|(name, value)| *name != "impersonate-group" || value != GROUP);
    let message = failure(other.get("/api/v1/nodes")?, StatusCode::FORBIDDEN)?;
    let words = format!(
        "clustergateways.cluster.core.oam.dev \"{CLUSTER}\" is forbidden: User \"{USER}\" cannot get resource \"clustergateways/proxy\""
    );
    ensure!(message.starts_with(&words), "{message}");
    // A user who may not impersonate.
    let message =
        failure(vela(testbed, route, &testbed.token, "impersonate=true").get("/api/v1/nodes")?, StatusCode::FORBIDDEN)?;
    ensure!(message.contains("cannot impersonate resource"), "{message}");
    Ok(())
}
