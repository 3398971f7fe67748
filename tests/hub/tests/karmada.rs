//! A real member in Karmada's dialect, through the hub: the hub decides who may use the member, and
//! the member, which sees that user, decides what they may do there.

mod beside;
mod tool;
mod webhook;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub_tests::control_plane::ApiServer;
use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::kubeconfig::Kubeconfig;
use hub_tests::kubectl::{Kubectl, Output};
use hub_tests::prelude::*;
use hub_tests::product::Product;
use libtest_mimic::Trial;

use crate::dialects::works;
use crate::fixture::{Fixture, test};

const USER: &str = "system:serviceaccount:default:karmada-user";
const NAME: &str = "karmada-user";
const BERLIN: &str = "berlin";
/// The member, with a credential that may impersonate that user, and one of the user's groups.
const NARROW: &str = "karmada-narrow";
const API_SERVICE: &str = "apiservice v1alpha1.cluster.karmada.io";
const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "karmada::a member through the hub, each caller as itself", through_the_hub),
        test(fixture, "karmada::beside Karmada's own server", beside::beside),
        test(fixture, "karmada::a member with a webhook authorizer", webhook::webhook),
        test(fixture, "karmada::karmadactl gets, cordons, joins and unjoins", tool::karmadactl),
    ]
}

/// Tests take turns, because there is one APIService.
static GROUP: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

fn through_the_hub(testbed: &Testbed) -> Result<()> {
    let _alone = GROUP.lock();
    let hub = &testbed.hub;
    hub.register_member(BERLIN, &MemberSecret::with_token(&testbed.member.server, &testbed.member_token))?;
    hub.register_member(NARROW, &MemberSecret::with_token(&testbed.member.server, &narrow(&testbed.member.server)?))?;
    let start = |name: &str, flags: &[&str]| testbed.start_gateway(name, &hub.gateway_kubeconfig(), flags);
    let gateway = start("karmada-gateway", &["--karmada-dialect=standalone"])?;
    registered(testbed, &gateway)?;
    let tried = rights(testbed).and_then(|()| groups(testbed)).and_then(|()| everywhere(testbed)).and_then(|()| {
        let strict = start("karmada-strict", &["--karmada-dialect=standalone", "--karmada-forward-all-groups"])?;
        strictly(testbed, &strict)
    });
    // Before the gateway ends: the hub's discovery requests every API that is registered.
    hub.server.delete(API_SERVICE)?;
    tried
}

/// Makes the hub send Karmada's group to the gateway.
fn registered(testbed: &Testbed, gateway: &Product) -> Result<()> {
    let service = json!({"name": "gateway", "namespace": SECRET_NAMESPACE, "port": gateway.address().port()});
    let api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1alpha1.cluster.karmada.io"},
        "spec": {"group": "cluster.karmada.io", "version": "v1alpha1", "groupPriorityMinimum": 1000,
            "versionPriority": 10, "service": service, "caBundle": STANDARD.encode(gateway.authority().root_pem())},
    });
    testbed.hub.server.force(&[api_service])?;
    testbed.hub.server.wait_for(API_SERVICE, "Available", Duration::from_mins(1))
}

/// The three cases of Karmada's own suite, and everything that kubectl does.
fn rights(testbed: &Testbed) -> Result<()> {
    let user = kubectl(testbed, "karmada", None)?;
    let token = user.token.clone();
    refused(
        &user.run("get --raw /api/v1/namespaces")?,
        "cannot get resource \"clusters/proxy\" in API group \"cluster.karmada.io\"",
    )?;
    testbed.hub.apply(&grant("clusters/proxy", &[BERLIN, NARROW]))?;
    wait::until("the hub to know of the right", LIMIT, || {
        refused(
            &user.run("get --raw /api/v1/namespaces")?,
            &format!("User \"{USER}\" cannot list resource \"namespaces\""),
        )
    })?;
    let member = testbed.member.server.kubectl();
    let binding = format!("create clusterrolebinding {NAME} --clusterrole=cluster-admin --user={USER}");
    member.ok(&binding)?;
    wait::until("the member to know of the right", LIMIT, || user.kubectl.ok("get namespaces").map(drop))?;
    let whoami = user.kubectl.ok("auth whoami -o jsonpath={.status.userInfo.username}")?;
    ensure!(whoami == USER, "the member sees {whoami}");
    works(testbed, "karmada", &user.kubectl)?;
    let elsewhere = Kubectl { kubeconfig: at(testbed, "elsewhere", CLUSTER, &token, None)?, ..user.kubectl.clone() };
    refused(&elsewhere.args(["get", "--raw", "/version"]).run()?, "clusters/proxy")?;
    let native = format!("{}/version", Testbed::proxy_path(BERLIN));
    refused(
        &user.kubectl.args(["--server", &testbed.hub.server.url(), "get", "--raw", &native]).run()?,
        "clustergateways/proxy",
    )
}

/// A group that the credential may not impersonate is left out, and the request is not refused with
/// 403.
fn groups(testbed: &Testbed) -> Result<()> {
    let user = kubectl(testbed, "karmada-groups", Some(NARROW))?;
    let groups = user.kubectl.ok("auth whoami -o jsonpath={.status.userInfo.groups}")?;
    let expected = r#"["system:serviceaccounts:default","system:authenticated"]"#;
    ensure!(groups == expected, "the member sees {groups}");
    user.kubectl.ok("get namespaces").map(drop)
}

/// Of all clusters at once. Both clusters are the one member, which answers in plain text for a
/// group that it does not serve.
fn everywhere(testbed: &Testbed) -> Result<()> {
    testbed.hub.apply(&grant("clusters/proxy", &[BERLIN, NARROW, "*"]))?;
    let user = kubectl(testbed, "karmada-all", Some("*"))?;
    wait::until("the hub to know of the right to all", LIMIT, || {
        let both = format!("exist in more than one cluster: {BERLIN},{NARROW}");
        refused(&user.run("get --raw /api/v1/namespaces/default")?, &both)
    })?;
    let list: Value = serde_json::from_str(&user.kubectl.ok("get --raw /api/v1/namespaces")?)?;
    let items = list["items"].as_array().context("items")?.iter();
    let found = items.filter(|item| item["metadata"]["name"] == "default");
    let of = |item: &Value| item["metadata"]["annotations"]["resource.karmada.io/cached-from-cluster"].clone();
    let clusters: Vec<Value> = found.map(of).collect();
    ensure!(clusters == [BERLIN, NARROW], "{clusters:?}");
    let absent = "no cluster that you may reach has this object";
    refused(&user.run("get --raw /api/v1/namespaces/absent")?, absent)?;
    refused(&user.run("get --raw /apis/absent.example/v1/things/absent")?, absent)?;
    refused(&user.run("get --raw /apis/absent.example/v1/things")?, "could not find the requested resource")
}

fn strictly(testbed: &Testbed, gateway: &Product) -> Result<()> {
    let token = testbed.hub.server.service_account_token("default", NAME)?;
    let user = testbed.kubectl(Route::Direct);
    let kubeconfig = at(testbed, "strict", NARROW, &token, Some(gateway))?;
    let user = Kubectl { kubeconfig, cache: testbed.directory("karmada-strict-cache")?, ..user };
    refused(&user.args(["get", "--raw", "/version"]).run()?, "cannot impersonate resource \"groups\"")
}

const LIMIT: Duration = Duration::from_secs(30);

struct User {
    kubectl: Kubectl,
    token: String,
}

// === impl User ===

impl User {
    fn run(&self, line: &str) -> Result<Output> {
        self.kubectl.args(line.split(' ')).run()
    }
}

/// kubectl as the user, through the hub.
fn kubectl(testbed: &Testbed, name: &str, cluster: Option<&str>) -> Result<User> {
    let token = testbed.hub.server.service_account_token("default", NAME)?;
    let kubeconfig = at(testbed, name, cluster.unwrap_or(BERLIN), &token, None)?;
    let cache = testbed.directory(&format!("{name}-cache"))?;
    Ok(User { kubectl: Kubectl { kubeconfig, cache, ..testbed.kubectl(Route::Direct) }, token })
}

/// A kubeconfig of `cluster`, through the hub or at a gateway.
fn at(
    testbed: &Testbed,
    name: &str,
    cluster: &str,
    token: &str,
    gateway: Option<&Product>,
) -> Result<std::path::PathBuf> {
    let (server, authority) = match gateway {
        Some(gateway) => (format!("https://{}", gateway.address()), gateway.authority_file()),
        None => (testbed.hub.server.url(), testbed.hub.server.authority_file().to_path_buf()),
    };
    let server = format!("{server}{CLUSTERS}/{cluster}/proxy");
    let kubeconfig = Kubeconfig { server, authority, credential: Credential::Token(token.to_owned()) };
    kubeconfig.write(testbed.directory(&format!("dialect-{name}"))?.join("kubeconfig"))
}

/// The user's right to Karmada's `resource` of these clusters.
fn grant(resource: &str, clusters: &[&str]) -> [Value; 2] {
    grant_to(NAME, resource, Some(clusters))
}

/// A ServiceAccount's right to Karmada's `resource`, of these clusters or of all.
fn grant_to(name: &str, resource: &str, clusters: Option<&[&str]>) -> [Value; 2] {
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        "rules": [{"apiGroups": ["cluster.karmada.io"], "resources": [resource], "resourceNames": clusters.unwrap_or(&[]),
            "verbs": ["*"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}]});
    [role, binding]
}

/// A token of a member for an account with the rights of Karmada's impersonator.
fn narrow(server: &ApiServer) -> Result<String> {
    let token = server.service_account_token("default", NARROW)?;
    let rule = |resource: &str, name: &str| {
        json!({"apiGroups": [""], "resources": [resource], "resourceNames": [name],
        "verbs": ["impersonate"]})
    };
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": NARROW},
        "rules": [rule("users", USER), rule("groups", "system:serviceaccounts:default"),
            {"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": [NAME], "verbs": ["impersonate"]}]});
    server.create(&[role])?;
    server.bind(NARROW, NARROW, ("default", NARROW))?;
    Ok(token)
}

fn refused(output: &Output, words: &str) -> Result<()> {
    ensure!(output.status != 0 && output.stderr.contains(words), "not refused with {words:?}: {output:?}");
    Ok(())
}
