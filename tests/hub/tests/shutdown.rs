//! A gateway shuts down while it forwards a real member's answers: those that end by themselves
//! arrive whole.

use std::thread;

use futures_util::future::join_all;
use hub_tests::prelude::*;
use hub_tests::product::Product;
use hub_tests::testbed::{CLUSTER, Testbed};
use kit::client::{H2Body, H2Connection, H2Options};
use kit::pki::Trust;
use libtest_mimic::Trial;
use tokio::runtime::Runtime;

use crate::access::bearer;
use crate::fixture::{Fixture, test};

const NAMESPACE: &str = "leaving";
/// A line as short as possible: wherever the stream is cut, it nearly always ends after a line.
const LINE: &str = "\n";
/// Lines of the log: many times what is in flight to a client that reads slowly.
const LINES: usize = 4_000_000;
/// Each fails only with some probability: the gateway must happen to wait for the member.
const DOWNLOADS: usize = 8;

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "shutdown::watches end, and a download with watch=true in its query arrives whole", shutdown)]
}

fn shutdown(testbed: &Testbed) -> Result<()> {
    testbed.member.server.create_namespace(NAMESPACE)?;
    testbed.member.run_pod(NAMESPACE, "talker", &LINE.repeat(LINES))?;
    let authorization = bearer(&testbed.token);
    let gateway = testbed.start_gateway("leaving-gateway", &testbed.hub.gateway_kubeconfig(), &[])?;
    let runtime = Runtime::new()?;
    let connection = runtime.block_on(connect(&gateway))?;
    let namespace = format!("{}/api/v1/namespaces/{NAMESPACE}", Testbed::proxy_path(CLUSTER));
    let get = |path: &str| runtime.block_on(open(&connection, &format!("{namespace}/{path}"), &authorization));
    let mut watch = get("configmaps?watch=true&resourceVersion=0&fieldSelector=metadata.name=none")?;
    // A member ignores the query, and answers with the log.
    let downloads = (0..DOWNLOADS).map(|_| get("pods/talker/log?watch=true")).collect::<Result<Vec<_>>>()?;
    thread::scope(|scope| {
        let leaving = scope.spawn(|| gateway.restart(|| Ok(())));
        while let Some(piece) = runtime.block_on(watch.chunk()) {
            // The end of a stream may come in a separate frame.
            ensure!(piece.context("the watch was cut")?.is_empty(), "an event of nothing");
        }
        for log in runtime.block_on(join_all(downloads.into_iter().map(H2Body::to_end))) {
            let (came, whole) = (log.context("a download was cut")?.len(), LINE.len() * LINES);
            ensure!(came == whole, "{came} bytes of {whole} look like the whole");
        }
        leaving.join().expect("it does not panic")
    })
}

async fn connect(gateway: &Product) -> Result<H2Connection> {
    let options = H2Options { stream_window: 16 << 10, ..H2Options::default() };
    let trust = Trust::Authority(gateway.authority());
    Ok(kit::client::Client::new(gateway.address(), trust, None).h2_options(options).h2().await?)
}

async fn open(connection: &H2Connection, path: &str, authorization: &str) -> Result<H2Body> {
    let response = connection.get(path, &[("authorization", authorization)]).await?;
    ensure!(response.status() == StatusCode::OK, "{path}: {}", response.status());
    Ok(response.body)
}
