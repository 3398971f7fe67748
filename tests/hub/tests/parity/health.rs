//! `clustergateways/health`: unhealthy by default; a written value is read back, and stored in the
//! Secret.

use hub_tests::hub::SECRET_NAMESPACE;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use super::{PROMPT, appear};
use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};
use crate::viewer;

pub(super) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "parity::health is false at first, and what is put is echoed", put),
        test(fixture, "parity::health can be patched", patch),
        test(fixture, "parity::health of another name, of nobody, and by a stranger", refused),
    ]
}

/// Registers a new cluster; returns the path of its health.
fn register(testbed: &Testbed, cluster: &str) -> Result<String> {
    testbed.hub.register_member(cluster, &MemberSecret::with_token(&testbed.member.server, &testbed.member_token))?;
    appear(testbed, &format!("/clustergateways/{cluster}"))?;
    Ok(format!("/clustergateways/{cluster}/health"))
}

fn put(testbed: &Testbed) -> Result<()> {
    for route in Route::PROXIED {
        let cluster = &format!("health-{}", route.name());
        let path = register(testbed, cluster)?;
        let mut object = viewer::get(testbed, route, &path)?.expect(StatusCode::OK)?.json()?;
        ensure!(object["metadata"]["name"] == *cluster && object["status"] == json!({"healthy": false}), "{object}");

        let status = json!({"healthy": true, "healthyReason": "ConnectionTimeout"});
        object["status"] = status.clone();
        // Only the status counts.
        object["spec"]["access"]["endpoint"] = json!({"type": "Const", "const": {"address": "https://elsewhere"}});
        let answer =
            viewer::send(testbed, route, &Method::PUT, &path, Some(&object))?.expect(StatusCode::OK)?.json()?;
        ensure!(answer["status"] == status, "{answer}");
        ensure!(answer.to_string().contains(&testbed.member.server.url()), "the endpoint was changed: {answer}");

        for path in [path.clone(), format!("/clustergateways/{cluster}")] {
            wait::until("the health that was put", PROMPT, || {
                let read = viewer::get(testbed, route, &path)?.expect(StatusCode::OK)?.json()?;
                ensure!(read["status"] == status, "{path}: {read}");
                Ok(())
            })?;
        }
        let table = viewer::kubectl(testbed, route)?.ok(&format!("get clustergateway {cluster} --no-headers"))?;
        ensure!(table.split_whitespace().last() == Some("true"), "{table}");
        let annotations = annotations(testbed, cluster)?;
        ensure!(annotations["status.cluster.core.oam.dev/healthy"] == "true", "{annotations}");
        ensure!(annotations["status.cluster.core.oam.dev/healthy-reason"] == "ConnectionTimeout", "{annotations}");
        // The member can be used as before: health is a remark, not a switch.
        let healthz = format!("{}/healthz", Testbed::proxy_path(cluster));
        let answer = client(testbed, route).get(&healthz, &[("authorization", &bearer(&testbed.token))])?;
        ensure!(answer.expect(StatusCode::OK)?.text() == "ok", "another word");
        testbed.hub.forget_member(cluster)?;
    }
    Ok(())
}

fn annotations(testbed: &Testbed, cluster: &str) -> Result<Value> {
    let words = format!("get secret {cluster} -n {SECRET_NAMESPACE} -o jsonpath={{.metadata.annotations}}");
    Ok(serde_json::from_str(&testbed.hub.server.kubectl().ok(&words)?)?)
}

/// The Go cluster-gateway advertises `patch`, and answers each with 404.
fn patch(testbed: &Testbed) -> Result<()> {
    let path = register(testbed, "health-patched")?;
    let kubectl = viewer::kubectl(testbed, Route::Hub)?;
    for (patch, expected) in [
        (r#"{"status":{"healthy":true}}"#, json!({"healthy": true})),
        (r#"{"status":{"healthyReason":"tested"}}"#, json!({"healthy": true, "healthyReason": "tested"})),
        (r#"{"status":{"healthy":false,"healthyReason":null}}"#, json!({"healthy": false})),
    ] {
        let words = ["patch", "clustergateway", "health-patched", "--subresource=health", "--type=merge", "-p", patch];
        let output = kubectl.args(words).run()?;
        if output.stderr.contains("invalid subresource") {
            // kubectl accepts only some names of subresources; for the others, the API is called
            // directly.
            by_hand(testbed, &path, patch)?;
        } else {
            output.success()?;
        }
        let read = wait::until("the patched health", PROMPT, || {
            let read = viewer::get(testbed, Route::Hub, &path)?.expect(StatusCode::OK)?.json()?;
            ensure!(read["status"] == expected, "{read}");
            Ok(read)
        })?;
        ensure!(read["metadata"]["name"] == "health-patched", "{read}");
    }
    testbed.hub.forget_member("health-patched")
}

fn by_hand(testbed: &Testbed, path: &str, patch: &str) -> Result<()> {
    let authorization = bearer(&viewer::token(testbed)?);
    let headers = [("authorization", &*authorization), ("content-type", "application/merge-patch+json")];
    let path = format!("{}{path}", viewer::GROUP);
    let answer = client(testbed, Route::Hub).send(&Method::PATCH, &path, &headers, patch.to_owned().into())?;
    answer.expect(StatusCode::OK).map(drop)
}

fn refused(testbed: &Testbed) -> Result<()> {
    let path = register(testbed, "health-refused")?;
    let mut object = viewer::get(testbed, Route::Gateway, &path)?.expect(StatusCode::OK)?.json()?;
    object["status"]["healthy"] = json!(true);
    for route in Route::PROXIED {
        let put = |path: &str, body: &Value| viewer::send(testbed, route, &Method::PUT, path, Some(body));
        let mut other = object.clone();
        other["metadata"]["name"] = json!("another");
        put(&path, &other)?.expect(StatusCode::BAD_REQUEST)?;
        other["metadata"]["name"] = json!("absent");
        let absent = put("/clustergateways/absent/health", &other)?.expect(StatusCode::NOT_FOUND)?.json()?;
        ensure!(absent["reason"] == "NotFound", "{absent}");
        let mut stale = object.clone();
        stale["metadata"]["resourceVersion"] = json!("1");
        put(&path, &stale)?.expect(StatusCode::CONFLICT)?;
        put(&format!("{path}?dryRun=All"), &object)?.expect(StatusCode::OK)?;
        // The right to use a cluster does not include writing its health.
        let headers = [("authorization", &*bearer(&testbed.token)), ("content-type", "application/json")];
        let whole = format!("{}{path}", viewer::GROUP);
        let answer = client(testbed, route).send(&Method::PUT, &whole, &headers, object.to_string().into())?;
        let text = answer.expect(StatusCode::FORBIDDEN)?.text();
        ensure!(text.contains("cannot update resource \\\"clustergateways/health\\\""), "{text}");
    }
    let read = viewer::get(testbed, Route::Gateway, &path)?.expect(StatusCode::OK)?.json()?;
    ensure!(read["status"]["healthy"] == false, "something was written: {read}");
    testbed.hub.forget_member("health-refused")
}
