//! Many concurrent streams to one member: more than fit into one HTTP/2 connection. None blocks
//! another, and none is left when its reader has gone.

use http_body_util::BodyExt as _;
use hub_tests::http::Client;
use hub_tests::prelude::*;
use hyper::body::Incoming;
use kit::others::Moment;
use libtest_mimic::Trial;
use tokio::runtime::Runtime;
use tokio::time::{Instant, sleep, timeout};

use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};

/// More than the 250 streams that kube-apiserver allows on one connection
/// (`--http2-max-streams-per-connection`).
const WATCHES: usize = 300;
/// Time of one step, on a machine that does nothing else; longer where others take a part of it.
const PROMPT: Duration = Duration::from_secs(20);
/// Most time of one step on any machine, and of asking until a busy kube-apiserver lets one in.
const LIMIT: Duration = Duration::from_mins(1);

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let trial = |route: Route| {
        let name = format!("crowd::300 watches via {}: all see a change, a request passes, all end", route.name());
        test(fixture, name, move |testbed| crowd(testbed, route))
    };
    Route::PROXIED.into_iter().map(trial).collect()
}

fn crowd(testbed: &Testbed, route: Route) -> Result<()> {
    let namespace = &format!("crowd-{}", route.name());
    testbed.member.server.create_namespace(namespace)?;
    let path = format!("{}/api/v1/namespaces/{namespace}/configmaps", Testbed::proxy_path(CLUSTER));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let machine = Moment::now()?;
    let target = format!("{path}?fieldSelector=metadata.name=crowded&watch=true");
    let mut bodies = open(&runtime, testbed, route, &target, &machine)?;
    let watches = || testbed.member.open_streams(&format!("/namespaces/{namespace}/configmaps?fieldSelector"));
    let until = |count: usize| {
        let (begin, what) = (Instant::now(), format!("the member to have {count} watches"));
        wait::until(&what, LIMIT, || match watches()? {
            open if open == count => Ok(()),
            other => bail!("the member has {other} watches"),
        })?;
        ensure_prompt(&what, begin, &machine)
    };
    // All of them, and none twice; its log may lag behind what it has answered.
    until(WATCHES)?;

    client(testbed, route).get(&path, &[("authorization", &bearer(&testbed.token))])?.expect(StatusCode::OK)?;
    let crowded = json!({"name": "crowded", "namespace": namespace});
    testbed.member.server.create(&[json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": crowded})])?;
    runtime.block_on(async {
        for (number, body) in bodies.iter_mut().enumerate() {
            let begin = Instant::now();
            let frame = timeout(LIMIT, body.frame()).await.with_context(|| format!("nothing on watch {number}"))?;
            ensure_prompt(&format!("an event on watch {number}"), begin, &machine)?;
            let frame = frame.with_context(|| format!("watch {number} ended"))??;
            let text = frame.into_data().map(|data| String::from_utf8_lossy(&data).into_owned()).unwrap_or_default();
            ensure!(text.contains("ADDED") && text.contains("crowded"), "watch {number} got {text:?}");
        }
        Ok(())
    })?;

    drop(bodies);
    drop(runtime); // and with it the connections
    until(0)
}

/// Fails if `what` has taken longer than [`PROMPT`] since `begin`, extended by what others have
/// used of the machine since `machine`.
fn ensure_prompt(what: &str, begin: Instant, machine: &Moment) -> Result<()> {
    let took = begin.elapsed();
    if took >= PROMPT {
        let limit = machine.extended(PROMPT)?;
        ensure!(took < limit, "{what} took {took:?}, and not {limit:?}");
    }
    Ok(())
}

/// Retries as clients do, because a kube-apiserver that other tests keep busy asks for it.
async fn open_one(client: &Client, path: &str, headers: &[(&str, &str)], machine: &Moment) -> Result<Incoming> {
    const BUSY: &[u8] = b"Too many requests, please try again later.";
    loop {
        let begin = Instant::now();
        let response = client.open(path, headers).await?;
        ensure_prompt("the head of an answer", begin, machine)?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response.into_body());
        }
        let text = response.into_body().collect().await?.to_bytes();
        ensure!(text.starts_with(BUSY), "{status}: {}", String::from_utf8_lossy(&text));
        sleep(Duration::from_secs(1)).await;
    }
}

fn open(runtime: &Runtime, testbed: &Testbed, route: Route, path: &str, machine: &Moment) -> Result<Vec<Incoming>> {
    let (client, authorization) = (client(testbed, route), bearer(&testbed.token));
    let headers = [("authorization", &*authorization)];
    runtime.block_on(async {
        let mut bodies = Vec::with_capacity(WATCHES);
        for number in 0..WATCHES {
            let opening = open_one(&client, path, &headers, machine);
            let body = timeout(LIMIT, opening).await.with_context(|| format!("watch {number} was not opened"))?;
            bodies.push(body.with_context(|| format!("watch {number}"))?);
        }
        Ok(bodies)
    })
}
