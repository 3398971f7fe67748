//! `virtualclusters`: the hub itself as `local`, and every cluster with a Secret, without the
//! secret parts.

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use super::{ENDPOINT_TYPE, KIND, PROMPT, appear, secret};
use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};
use crate::viewer;

const CONTROL_PLANE: &str = "cluster.core.oam.dev/control-plane";
const ALIAS: &str = "cluster.core.oam.dev/cluster-alias";

pub(super) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "parity::the virtual cluster of the hub itself", local),
        test(fixture, "parity::virtual clusters of Secrets", of_secrets),
        test(fixture, "parity::virtual clusters in order, and chosen by labels", listed),
        test(fixture, "parity::virtual clusters as a table", table),
    ]
}

fn get(testbed: &Testbed, route: Route, path: &str) -> Result<Value> {
    viewer::get(testbed, route, &format!("/virtualclusters{path}"))?.expect(StatusCode::OK)?.json()
}

fn local(testbed: &Testbed) -> Result<()> {
    for route in Route::PROXIED {
        let object = get(testbed, route, "/local")?;
        ensure!(object["kind"] == "VirtualCluster" && object["metadata"]["name"] == "local", "{object}");
        let spec = json!({"accepted": true, "endpoint": "-", "credential-type": "Internal"});
        ensure!(object["spec"] == spec && object["metadata"]["labels"] == json!({CONTROL_PLANE: "true"}), "{object}");
        ensure!(object["metadata"]["creationTimestamp"].is_null(), "{object}");
        let absent = viewer::get(testbed, route, "/virtualclusters/absent")?.expect(StatusCode::NOT_FOUND)?.json()?;
        ensure!(absent["message"] == "virtualclusters.cluster.core.oam.dev \"absent\" not found", "{absent}");
    }
    Ok(())
}

fn of_secrets(testbed: &Testbed) -> Result<()> {
    let data = json!({"endpoint": "https://member.example", "token": "hidden"});
    let labels = json!({KIND: "ServiceAccountToken", ENDPOINT_TYPE: "Const", "region": "north"});
    let admin = testbed.hub.server.admin();
    let certificate =
        json!({"endpoint": "https://member.example", "tls.crt": admin.chain_pem, "tls.key": admin.key_pem});
    testbed.hub.apply(&[
        secret("virtual-named", &labels, &json!({ALIAS: "the north"}), &data),
        secret("virtual-plain", &json!({KIND: "X509Certificate"}), &json!({}), &certificate),
        secret("virtual-wrong", &json!({KIND: "ServiceAccountToken"}), &json!({}), &json!({"token": "hidden"})),
    ])?;
    appear(testbed, "/virtualclusters/virtual-plain")?;
    for route in Route::PROXIED {
        let named = get(testbed, route, "/virtual-named")?;
        // The value of the label if there is one, otherwise the URL: the Go cluster-gateway's rule.
        let spec = json!({"alias": "the north", "accepted": true, "endpoint": "Const", "credential-type": "ServiceAccountToken"});
        ensure!(named["spec"] == spec, "{named}");
        ensure!(named["metadata"]["labels"] == json!({CONTROL_PLANE: "false", "region": "north"}), "{named}");
        let plain = get(testbed, route, "/virtual-plain")?;
        let spec =
            json!({"accepted": true, "endpoint": "https://member.example", "credential-type": "X509Certificate"});
        ensure!(plain["spec"] == spec && plain["metadata"]["labels"] == json!({CONTROL_PLANE: "false"}), "{plain}");
        ensure!(plain["metadata"]["uid"].is_string() && plain["metadata"]["resourceVersion"].is_string(), "{plain}");
        let wrong = viewer::get(testbed, route, "/virtualclusters/virtual-wrong")?;
        let wrong = wrong.expect(StatusCode::INTERNAL_SERVER_ERROR)?.text();
        ensure!(wrong.contains("virtual-wrong") && wrong.contains("endpoint") && !wrong.contains("hidden"), "{wrong}");
        let list = get(testbed, route, "")?.to_string();
        ensure!(
            list.contains("virtual-named") && !list.contains("virtual-wrong") && !list.contains("hidden"),
            "{list}"
        );
    }
    ["virtual-named", "virtual-plain", "virtual-wrong"].into_iter().try_for_each(|name| testbed.hub.forget_member(name))
}

fn names(list: &Value) -> Result<Vec<&str>> {
    let items = list["items"].as_array().context("no items")?;
    Ok(items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect())
}

fn listed(testbed: &Testbed) -> Result<()> {
    let data = json!({"endpoint": "https://member.example", "token": "hidden"});
    let labels = |tier: &str| json!({KIND: "ServiceAccountToken", "suite": "virtual", "tier": tier});
    testbed.hub.apply(&[
        secret("listed-front", &labels("front"), &json!({}), &data),
        secret("listed-back", &labels("back"), &json!({}), &data),
    ])?;
    appear(testbed, "/virtualclusters/listed-front")?;
    appear(testbed, "/virtualclusters/listed-back")?;
    for route in Route::PROXIED {
        wait::until("both in the list", PROMPT, || {
            let found = get(testbed, route, "?labelSelector=suite%3Dvirtual")?;
            ensure!(names(&found)?.len() == 2, "{found}");
            Ok(())
        })?;
        let list = get(testbed, route, "")?;
        let all = names(&list)?;
        ensure!(all.first() == Some(&"local") && all.contains(&CLUSTER) && all.contains(&"listed-front"), "{all:?}");
        let times: Vec<&str> = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .skip(1)
            .filter_map(|item| item["metadata"]["creationTimestamp"].as_str())
            .collect();
        ensure!(times.len() + 1 == all.len() && times.is_sorted_by(|left, right| left >= right), "{times:?}");
        ensure!(list["items"][1]["kind"] == "VirtualCluster", "items carry their kind: {list}");
        for (selector, expected) in [
            ("suite%3Dvirtual,tier%3Dback", vec!["listed-back"]),
            ("suite%3Dvirtual,tier+notin+(back)", vec!["listed-front"]),
            ("cluster.core.oam.dev%2Fcontrol-plane%3Dtrue", vec!["local"]),
            ("cluster.core.oam.dev%2Fcontrol-plane%3Dfalse,tier%3Dfront", vec!["listed-front"]),
            ("cluster.core.oam.dev%2Fcluster-credential-type,suite%3Dvirtual", vec![]),
        ] {
            let found = get(testbed, route, &format!("?labelSelector={selector}"))?;
            ensure!(names(&found)? == expected, "{selector}: {found}");
        }
        viewer::get(testbed, route, "/virtualclusters?labelSelector=%3D%3D")?.expect(StatusCode::BAD_REQUEST)?;
    }
    testbed.hub.forget_member("listed-front")?;
    testbed.hub.forget_member("listed-back")
}

fn table(testbed: &Testbed) -> Result<()> {
    let columns = ["Name", "Alias", "Credential_Type", "Endpoint", "Accepted", "Labels", "Creation_Timestamp"];
    let data = json!({"endpoint": "https://member.example", "token": "hidden"});
    let labels = json!({KIND: "ServiceAccountToken", "b": "2", "a": "1"});
    testbed.hub.apply(&[secret("tabled", &labels, &json!({ALIAS: "shown"}), &data)])?;
    appear(testbed, "/virtualclusters/tabled")?;
    for route in Route::PROXIED {
        let authorization = bearer(&viewer::token(testbed)?);
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
        let path = format!("{}/virtualclusters/tabled", viewer::GROUP);
        let answer = client(testbed, route).get(&path, &[("authorization", &authorization), ("accept", accept)])?;
        let table = answer.expect(StatusCode::OK)?.json()?;
        let defined: Vec<&str> = table["columnDefinitions"]
            .as_array()
            .context("no columns")?
            .iter()
            .filter_map(|column| column["name"].as_str())
            .collect();
        ensure!(table["kind"] == "Table" && defined == columns, "{table}");
        ensure!(
            table["columnDefinitions"][4]["type"] == "boolean" && table["columnDefinitions"][6]["priority"] == 10,
            "{table}"
        );
        let cells = &table["rows"][0]["cells"];
        let first = json!(["tabled", "shown", "ServiceAccountToken", "https://member.example", true]);
        ensure!(
            cells
                .as_array()
                .is_some_and(|cells| cells[..5] == first.as_array().into_iter().flatten().cloned().collect::<Vec<_>>()),
            "{table}"
        );
        let text = cells[5].as_str().unwrap_or_default();
        ensure!(
            text.split(',').collect::<Vec<_>>() == ["a=1", "b=2", "cluster.core.oam.dev/control-plane=false"],
            "{text}"
        );
    }
    testbed.hub.forget_member("tabled")
}
