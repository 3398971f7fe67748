//! A user of the hub who may read the gateway's own resources (`clustergateways`,
//! `virtualclusters`) and write their health, and nothing else: the rights of a controller or an
//! operator who watches clusters.

use std::path::PathBuf;
use std::sync::OnceLock;

use hub_tests::kubeconfig::Kubeconfig;
use hub_tests::kubectl::Kubectl;
use hub_tests::prelude::*;

use crate::access::{bearer, client};

/// The path of the gateway's resources.
pub(crate) const GROUP: &str = "/apis/cluster.core.oam.dev/v1alpha1";

const NAME: &str = "viewer";

/// The viewer's token. The first call creates the user.
pub(crate) fn token(testbed: &Testbed) -> Result<String> {
    static TOKEN: OnceLock<Result<String, String>> = OnceLock::new();
    let token = TOKEN.get_or_init(|| create(testbed).map_err(|error| format!("{error:#}")));
    token.clone().map_err(|error| anyhow!("no viewer: {error}"))
}

/// A kubeconfig of the viewer for the hub or the gateway itself, without a path: not for a member.
pub(crate) fn kubeconfig(testbed: &Testbed, route: Route) -> Result<PathBuf> {
    token(testbed)?; // it is written with it, once: others may be reading
    path(testbed, route)
}

fn path(testbed: &Testbed, route: Route) -> Result<PathBuf> {
    Ok(testbed.directory("viewer")?.join(format!("{}.kubeconfig", route.name())))
}

fn write_kubeconfig(testbed: &Testbed, route: Route, token: &str) -> Result<()> {
    let (server, authority) = match route {
        Route::Gateway | Route::Embedded => {
            let gateway = testbed.gateway_on(route);
            (format!("https://{}", gateway.address()), gateway.authority_file())
        }
        Route::Hub | Route::Tunnel | Route::Direct => {
            (testbed.hub.server.url(), testbed.hub.server.authority_file().to_path_buf())
        }
    };
    let kubeconfig = Kubeconfig { server, authority, credential: Credential::Token(token.to_owned()) };
    kubeconfig.write(path(testbed, route)?).map(drop)
}

/// kubectl as the viewer.
pub(crate) fn kubectl(testbed: &Testbed, route: Route) -> Result<Kubectl> {
    Ok(Kubectl { kubeconfig: kubeconfig(testbed, route)?, ..testbed.hub.server.kubectl() })
}

/// One request of the viewer to `path` below [`GROUP`]; a body is JSON.
pub(crate) fn send(
    testbed: &Testbed,
    route: Route,
    method: &Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Response> {
    let authorization = bearer(&token(testbed)?);
    let mut headers = vec![("authorization", &*authorization), ("accept", "application/json")];
    headers.extend(body.map(|_| ("content-type", "application/json")));
    let body = body.map(Value::to_string).unwrap_or_default();
    client(testbed, route).send(method, &format!("{GROUP}{path}"), &headers, body.into())
}

/// GET, like [`send`].
pub(crate) fn get(testbed: &Testbed, route: Route, path: &str) -> Result<Response> {
    send(testbed, route, &Method::GET, path, None)
}

fn create(testbed: &Testbed) -> Result<String> {
    let token = testbed.hub.server.service_account_token("default", NAME)?;
    let rule = |resources: &[&str], verbs: &[&str]| json!({"apiGroups": ["cluster.core.oam.dev"], "resources": resources, "verbs": verbs});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": NAME},
        "rules": [
            rule(&["clustergateways", "virtualclusters"], &["get", "list", "watch"]),
            rule(&["clustergateways/health"], &["get", "update", "patch"]),
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": "default"}],
    });
    testbed.hub.apply(&[role, binding])?;
    Route::PROXIED.into_iter().try_for_each(|route| write_kubeconfig(testbed, route, &token))?;
    Ok(token)
}
