//! What a request and its answer look like on the other side: byte for byte the same, except for what must not cross.

use kit::member::Reply;
use serde_json::json;
use system_tests::{CLUSTER, Rig, Versions, across_versions, proxied};

across_versions!(every_method_arrives);

async fn every_method_arrives(versions: Versions) {
    let member = versions.member.member().await;
    member.on_any(|request| Reply::json(200, &json!({"method": request.method.as_str()})));
    let rig = Rig::with(&member).await;
    let mut connection = rig.connect(versions.client).await;
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
        let body: &[u8] = if matches!(method, "POST" | "PUT" | "PATCH") { b"{}" } else { b"" };
        let answer = connection.call(method, &proxied(CLUSTER, "/api/v1/pods"), &[], body).await;
        assert_eq!((answer.status, answer.json()), (200, json!({"method": method})));
        let request = member.next_request().await;
        assert_eq!((request.path(), &request.body()[..]), ("/api/v1/pods", body));
    }
}
