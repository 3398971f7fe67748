//! Answers arrive as the member sent them: status, type, encoding and every byte, for requests of
//! controllers and kubectl in other formats than JSON.

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Status, path with query, and one header.
const REQUESTS: &[(u16, &str, (&str, &str))] = &[
    (200, "/api/v1/namespaces/default", ("accept", "application/json")),
    (200, "/api/v1/namespaces/default", ("accept", "application/yaml")),
    (200, "/api/v1/namespaces/default", ("accept", PROTOBUF)),
    // A kind whose table has no ages, which would differ from one second to the next.
    (200, "/apis/rbac.authorization.k8s.io/v1/clusterroles/view", ("accept", TABLE)),
    (
        200,
        "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=kubernetes.io%2Fbootstrapping",
        ("accept", TABLE),
    ),
    (200, "/api/v1/namespaces?fieldSelector=metadata.name%3Ddefault&pretty=true", ("accept", PROTOBUF)),
    (
        200,
        "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=kubernetes.io%2Fbootstrapping+in+(rbac-defaults)",
        ("accept-encoding", "gzip"),
    ),
    (200, "/apis/rbac.authorization.k8s.io/v1/clusterroles?labelSelector=nowhere%20in%20(a%2Cb)", ("accept", "*/*")),
    (200, "/apis", ("accept", AGGREGATED)),
    (200, "/api", ("accept", "application/json")),
    (200, "/openapi/v3", ("accept", "application/json")),
    (200, "/openapi/v3/apis/apps/v1", ("accept-encoding", "gzip")),
    (200, "/openapi/v2", ("accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")),
    (200, "/healthz", ("accept", "*/*")),
    (200, "/readyz?verbose&exclude=etcd", ("accept", "*/*")),
    (200, "/version", ("accept", "*/*")),
    (404, "/api/v1/namespaces/absent", ("accept", "application/json")),
    (404, "/api/v1/namespaces/absent", ("accept", PROTOBUF)),
    (404, "/nowhere/at/all", ("accept", "*/*")),
    (406, "/api/v1/namespaces/default", ("accept", "text/csv")),
    (400, "/api/v1/namespaces?limit=many", ("accept", "application/json")),
];

/// Other tests write to the member meanwhile.
const ATTEMPTS: usize = 100;

/// The headers that describe the body.
const HEADERS: [&str; 4] = ["content-type", "content-encoding", "etag", "vary"];

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let trial = |&(status, path, header): &'static (u16, &'static str, (&'static str, &'static str))| {
        let name = format!("bytes::{path} with {}: {}", header.0, header.1);
        test(fixture, name, move |testbed| same_bytes(testbed, status, path, header))
    };
    let mut trials: Vec<Trial> = REQUESTS.iter().map(trial).collect();
    trials.push(test(fixture, "bytes::a document that has not changed is not sent again", not_modified));
    trials
}

fn get(testbed: &Testbed, route: Route, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
    let (prefix, token) = match route {
        Route::Direct => (String::new(), &testbed.member_token),
        _ => (Testbed::proxy_path(route.cluster()), &testbed.token),
    };
    let authorization = bearer(token);
    let headers: Vec<(&str, &str)> = headers.iter().copied().chain([("authorization", &*authorization)]).collect();
    client(testbed, route).get(&format!("{prefix}{path}"), &headers)
}

fn same_bytes(testbed: &Testbed, status: u16, path: &str, header: (&str, &str)) -> Result<()> {
    Route::PROXIED.into_iter().try_for_each(|route| same_via(testbed, route, status, path, header))
}

/// A list contains the version of everything when it was made: only answers that the member repeats
/// before and after can be compared.
fn same_via(testbed: &Testbed, route: Route, status: u16, path: &str, header: (&str, &str)) -> Result<()> {
    let ask = |route| get(testbed, route, path, &[header]);
    let direct = || ask(Route::Direct)?.expect(StatusCode::from_u16(status)?);
    let via = route.name();
    let mut before = direct()?;
    for _ in 0..ATTEMPTS {
        let proxied = ask(route)?;
        let after = direct()?;
        if after.body != before.body {
            before = after;
            continue;
        }
        ensure!(proxied.status == after.status, "via {via}: {}: {}", proxied.status, proxied.text());
        for name in HEADERS {
            let (sent, expected) = (proxied.headers.get(name), after.headers.get(name));
            ensure!(sent == expected, "via {via}: {name} is {sent:?} instead of {expected:?}");
        }
        ensure!(proxied.body == after.body, "via {via}:\n{}\ninstead of\n{}", proxied.text(), after.text());
        return Ok(());
    }
    bail!("the member did not answer alike twice in a row in {ATTEMPTS} attempts")
}

fn not_modified(testbed: &Testbed) -> Result<()> {
    for (path, accept) in [("/apis", AGGREGATED), ("/openapi/v3/apis/apps/v1", "application/json")] {
        for route in Route::ALL {
            let first = get(testbed, route, path, &[("accept", accept)])?.expect(StatusCode::OK)?;
            let tag = first.headers.get("etag").map(http::HeaderValue::to_str).transpose()?;
            let tag = tag.with_context(|| format!("{path} via {}: no ETag", route.name()))?;
            let second = get(testbed, route, path, &[("accept", accept), ("if-none-match", tag)])?;
            let (status, body) = (second.status, second.body.len());
            let same = status == StatusCode::NOT_MODIFIED && body == 0;
            ensure!(same, "{path} via {}: {status} with {body} bytes", route.name());
        }
    }
    Ok(())
}
