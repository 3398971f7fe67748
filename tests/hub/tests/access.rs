//! RBAC on the hub decides who may use which cluster, and a request that it refuses never reaches
//! the member.
//!
//! The words of a refusal are the hub's own (RBAC's and the generic API server's), on every route.

use hub_tests::http::Client;
use hub_tests::prelude::*;
use hub_tests::testbed::{ALL_VERBS, CLUSTER_X509, X509_USER};
use libtest_mimic::Trial;

use crate::fixture::{Fixture, test};

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "access::without clustergateways/proxy nothing reaches the member", stranger),
        test(fixture, "access::kubectl shows the refusal", stranger_with_kubectl),
        test(fixture, "access::resourceNames limits a user to one cluster", one_cluster),
        test(fixture, "access::the verb of the request decides", verbs),
        test(fixture, "access::an upgrade takes nothing from what a method does", upgraded_deletion),
        test(fixture, "access::a word in the query opens no console", console),
        test(fixture, "access::a client certificate of the hub is a user of the hub", certificate),
        test(fixture, "access::impersonation needs the hub's permission", impersonation),
        test(fixture, "access::a cluster with a client certificate is used as that user", x509_cluster),
        test(fixture, "access::with impersonate=true the member sees the caller", caller_on_member),
    ]
}

/// A client for `route`, without a certificate.
pub(crate) fn client(testbed: &Testbed, route: Route) -> Client {
    testbed.client(route)
}

/// The value of an Authorization header.
pub(crate) fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// The path of a list that no other test requests, for searches in the member's audit log.
pub(crate) fn marked(cluster: &str, marker: &str) -> String {
    format!("{}/api/v1/namespaces/{marker}/pods", Testbed::proxy_path(cluster))
}

fn is_refusal(response: &Response, user: &str, verb: &str, cluster: &str) -> Result<()> {
    ensure!(response.status == StatusCode::FORBIDDEN, "{}: {}", response.status, response.text());
    let status = response.json()?;
    let message = format!(
        "clustergateways.cluster.core.oam.dev \"{cluster}\" is forbidden: User \"{user}\" cannot {verb} resource \
         \"clustergateways/proxy\" in API group \"cluster.core.oam.dev\" at the cluster scope"
    );
    let details = json!({"name": cluster, "group": "cluster.core.oam.dev", "kind": "clustergateways"});
    ensure!(
        status["kind"] == "Status" && status["reason"] == "Forbidden" && status["code"] == 403,
        "not a Status: {status}"
    );
    ensure!(status["message"] == message, "{status}");
    ensure!(status["details"] == details, "{status}");
    Ok(())
}

fn stranger(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.server.service_account_token("default", "stranger")?;
    for route in Route::PROXIED {
        let marker = format!("stranger-via-{}", route.name());
        let path = marked(CLUSTER, &marker);
        let response = client(testbed, route).get(&path, &[("authorization", &bearer(&token))])?;
        is_refusal(&response, "system:serviceaccount:default:stranger", "get", CLUSTER)?;
        ensure!(!testbed.member.has_seen(&marker)?, "the member has seen a request that was refused");
        // The same request of a user with the right: the search above would have found it.
        client(testbed, route).get(&path, &[("authorization", &bearer(&testbed.token))])?.expect(StatusCode::OK)?;
        ensure!(testbed.member.has_seen(&marker)?, "the member's audit log lacks a request that was let through");
    }
    Ok(())
}

fn stranger_with_kubectl(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.server.service_account_token("default", "quiet-stranger")?;
    let mut errors = Vec::new();
    for route in Route::PROXIED {
        let kubectl = testbed.kubectl_as(route, CLUSTER, "quiet-stranger", Credential::Token(token.clone()))?;
        let output = kubectl.args(["create", "configmap", "nothing", "-n", "default", "--validate=false"]).run()?;
        ensure!(output.status == 1, "{output:?}");
        let words =
            "User \"system:serviceaccount:default:quiet-stranger\" cannot create resource \"clustergateways/proxy\"";
        ensure!(output.stderr.contains(words), "{output:?}");
        errors.push(output.stderr);
    }
    ensure!(errors[0] == errors[1], "other words via the hub than via the gateway: {errors:?}");
    Ok(())
}

fn one_cluster(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.create_user("limited", &[CLUSTER], ALL_VERBS)?;
    let user = "system:serviceaccount:default:limited";
    for route in Route::PROXIED {
        let get =
            |cluster| client(testbed, route).get(&marked(cluster, "default"), &[("authorization", &bearer(&token))]);
        get(CLUSTER)?.expect(StatusCode::OK)?;
        is_refusal(&get(CLUSTER_X509)?, user, "get", CLUSTER_X509)?;
        // The same words for a cluster that does not exist: names cannot be probed.
        is_refusal(&get("absent")?, user, "get", "absent")?;
    }
    Ok(())
}

fn verbs(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.create_user("reader", &[CLUSTER], &["get"])?;
    let user = "system:serviceaccount:default:reader";
    for route in Route::PROXIED {
        let marker = format!("reader-via-{}", route.name());
        let path = marked(CLUSTER, &marker);
        let bearer = bearer(&token);
        let send = |method| {
            let headers = [("authorization", &*bearer), ("content-type", "application/json")];
            client(testbed, route).send(&method, &path, &headers, Bytes::from_static(b"{}"))
        };
        for (method, verb) in
            [(Method::POST, "create"), (Method::PUT, "update"), (Method::PATCH, "patch"), (Method::DELETE, "delete")]
        {
            is_refusal(&send(method)?, user, verb, CLUSTER)?;
        }
        ensure!(!testbed.member.has_seen(&marker)?, "the member has seen a request that was refused");
        client(testbed, route).get(&path, &[("authorization", &bearer)])?.expect(StatusCode::OK)?;
    }
    Ok(())
}

/// Sends `method path` as a request that asks to switch protocols.
fn upgrade(testbed: &Testbed, route: Route, token: &str, method: &Method, path: &str) -> Result<Response> {
    let bearer = bearer(token);
    let websocket = [
        ("authorization", &*bearer),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    client(testbed, route).send(method, path, &websocket, Bytes::new())
}

/// The review covers what the member would execute: it knows no upgrade at that path, and would
/// delete.
fn upgraded_deletion(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.create_user("creator", &[CLUSTER], &["get", "create"])?;
    let user = "system:serviceaccount:default:creator";
    testbed.member.server.create_namespace("upgrades")?;
    let victim = format!("{}/api/v1/namespaces/upgrades/configmaps/victim", Testbed::proxy_path(CLUSTER));
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "victim"}});
    let headers = [("authorization", &*bearer(&token)), ("content-type", "application/json")];
    let collection = victim.strip_suffix("/victim").unwrap_or_default();
    client(testbed, Route::Gateway)
        .send(&Method::POST, collection, &headers, Bytes::from(object.to_string()))?
        .expect(StatusCode::CREATED)?;
    for route in Route::PROXIED {
        for (method, verb) in [(Method::DELETE, "delete"), (Method::PUT, "update"), (Method::PATCH, "patch")] {
            is_refusal(&upgrade(testbed, route, &token, &method, &victim)?, user, verb, CLUSTER)?;
        }
        client(testbed, route).get(&victim, &headers)?.expect(StatusCode::OK)?;
    }
    Ok(())
}

fn console(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.create_user("watcher", &[CLUSTER], &["get"])?;
    let user = "system:serviceaccount:default:watcher";
    for route in Route::PROXIED {
        for path in [
            "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/vm/console?watch=true",
            "/api/v1/namespaces/default/pods/p/exec?command=id&watch=true",
        ] {
            let path = format!("{}{path}", Testbed::proxy_path(CLUSTER));
            is_refusal(&upgrade(testbed, route, &token, &Method::GET, &path)?, user, "create", CLUSTER)?;
        }
    }
    Ok(())
}

fn certificate(testbed: &Testbed) -> Result<()> {
    testbed.hub.allow("carol", &json!([{"kind": "User", "name": "carol"}]), &[CLUSTER], &["get"])?;
    testbed.hub.allow("readers", &json!([{"kind": "Group", "name": "readers"}]), &[CLUSTER], &["get"])?;
    let authority = testbed.hub.server.authority();
    for (leaf, expected) in [
        (Leaf::client("carol"), StatusCode::OK),
        (Leaf::client("dave").group("writers").group("readers"), StatusCode::OK),
        (Leaf::client("erin").group("writers"), StatusCode::FORBIDDEN),
    ] {
        let identity = authority.issue(&leaf);
        for client in [testbed.hub.server.client(Some(&identity)), testbed.gateway.client(Some(&identity))] {
            client.get(&marked(CLUSTER, "default"), &[])?.expect(expected)?;
        }
    }
    Ok(())
}

/// Through the hub, the hub decides; directly at the gateway, the gateway asks the hub the same
/// question.
fn impersonation(testbed: &Testbed) -> Result<()> {
    let marker = "impersonated-by-tester";
    for route in Route::PROXIED {
        let headers = [("authorization", &*bearer(&testbed.token)), ("impersonate-user", "carol-the-impersonated")];
        let response = client(testbed, route).get(&marked(CLUSTER, marker), &headers)?;
        ensure!(response.status == StatusCode::FORBIDDEN, "via {}: {}", route.name(), response.text());
        let text = response.text();
        ensure!(text.contains("cannot impersonate resource") && text.contains("carol-the-impersonated"), "{text}");
    }
    ensure!(!testbed.member.has_seen(marker)?, "the member has seen a request that was refused");
    Ok(())
}

fn x509_cluster(testbed: &Testbed) -> Result<()> {
    for (cluster, expected) in [(CLUSTER, "system:serviceaccount:default:gateway"), (CLUSTER_X509, X509_USER)] {
        for route in Route::PROXIED {
            let name = who_am_i(testbed, route, cluster, "")?;
            if name != expected {
                bail!("{cluster} via {} is used as {name}", route.name());
            }
        }
    }
    Ok(())
}

fn caller_on_member(testbed: &Testbed) -> Result<()> {
    for route in Route::PROXIED {
        let name = who_am_i(testbed, route, CLUSTER, "?impersonate=true")?;
        ensure!(name == "system:serviceaccount:default:tester", "via {}: {name}", route.name());
    }
    Ok(())
}

/// The user name that the member sees with `cluster`'s credential.
pub(crate) fn who_am_i(testbed: &Testbed, route: Route, cluster: &str, query: &str) -> Result<String> {
    let path = format!("{}/apis/authentication.k8s.io/v1/selfsubjectreviews{query}", Testbed::proxy_path(cluster));
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let headers = [("authorization", &*bearer(&testbed.token)), ("content-type", "application/json")];
    let response = client(testbed, route).send(&Method::POST, &path, &headers, Bytes::from(review.to_string()))?;
    let review = response.expect(StatusCode::CREATED)?.json()?;
    Ok(review["status"]["userInfo"]["username"].as_str().unwrap_or_default().to_owned())
}
