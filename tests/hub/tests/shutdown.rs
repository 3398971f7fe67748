//! A gateway that leaves while it passes on a real member's answers: what has an end of its own comes to it.

use std::sync::Arc;
use std::thread;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::{Method, StatusCode};
use hub_tests::lab::{CLUSTER, Lab, Route};
use hub_tests::product::Product;
use kit::client::{H2Body, H2Connection, H2Options};
use kit::pki::Trust;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::access::bearer;
use crate::stage::{Stage, test};

const NAMESPACE: &str = "leaving";
/// More than the gateway keeps for a client that reads slowly, less than an object may have.
const LENGTH: usize = 900_000;

pub(crate) fn trials(stage: &Arc<Stage>) -> Vec<Trial> {
    vec![test(stage, "shutdown::watches end, and a download with watch=true in its query arrives whole", shutdown)]
}

fn shutdown(lab: &Lab) -> Result<()> {
    lab.member.server.create_namespace(NAMESPACE)?;
    let maps = format!("{}/api/v1/namespaces/{NAMESPACE}/configmaps", Lab::proxy_path(CLUSTER));
    let object = json!({"metadata": {"name": "large"}, "data": {"text": "x".repeat(LENGTH)}});
    let authorization = bearer(&lab.token);
    let headers = [("authorization", &*authorization), ("content-type", "application/json")];
    let made = lab.client(Route::Gateway).send(&Method::POST, &maps, &headers, Bytes::from(object.to_string()))?;
    made.expect(StatusCode::CREATED)?;

    let gateway = lab.start_gateway("leaving-gateway", &lab.hub.gateway_kubeconfig(), &[])?;
    let runtime = Runtime::new()?;
    let connection = runtime.block_on(connect(&gateway))?;
    let get = |path: String| runtime.block_on(open(&connection, path, &authorization));
    let mut watch = get(format!("{maps}?watch=true&resourceVersion=0&fieldSelector=metadata.name=none"))?;
    // A member takes this for a GET of the object.
    let mut download = get(format!("{maps}/large?watch=true"))?;
    let begun = runtime.block_on(download.chunk_held()).context("no beginning")??;
    thread::scope(|scope| {
        let leaving = scope.spawn(|| gateway.restart(|| Ok(())));
        while let Some(piece) = runtime.block_on(watch.chunk()) {
            // The end of a stream may come in a frame of its own.
            ensure!(piece.context("the watch was cut")?.is_empty(), "an event of nothing");
        }
        download.release();
        let rest = runtime.block_on(download.to_end()).context("the download was cut")?;
        let object: Value = serde_json::from_slice(&[begun, rest].concat()).context("a part looks like the whole")?;
        ensure!(object["data"]["text"].as_str().map(str::len) == Some(LENGTH), "not the object");
        leaving.join().expect("it does not panic")
    })
}

async fn connect(gateway: &Product) -> Result<H2Connection> {
    let options = H2Options { stream_window: 16 << 10, ..H2Options::default() };
    let trust = Trust::Authority(gateway.authority());
    Ok(kit::client::Client::new(gateway.address(), trust, None).h2_options(options).h2().await?)
}

async fn open(connection: &H2Connection, path: String, authorization: &str) -> Result<H2Body> {
    let response = connection.get(&path, &[("authorization", authorization)]).await?;
    ensure!(response.status() == StatusCode::OK, "{path}: {}", response.status());
    Ok(response.body)
}
