//! Lists in chunks, compressed, and in every encoding, at one resource version: each page has the
//! same bytes on every route.

use std::fmt::Write as _;

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use super::{CBOR, JSON, PROTOBUF, prepare, same, send, values};
use crate::fixture::{Fixture, test};

/// The number of `ConfigMap`s: together more than the 128 KiB from which on a kube-apiserver
/// compresses.
pub(super) const MAPS: usize = 12;
const SIZE: usize = 16 << 10;
const SELECTED: &str = "/api/v1/namespaces/answers/configmaps?labelSelector=paged%3Dyes";

pub(super) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let mut trials = Vec::new();
    for kind in [JSON, PROTOBUF, CBOR] {
        let name = format!("answers::pages of a list as {kind}");
        trials.push(test(fixture, name, move |testbed| in_one(testbed, kind)));
    }
    trials.push(test(fixture, "answers::a list page by page, and a token that is too old or broken", pages));
    trials.push(test(fixture, "answers::a list is compressed for who asks for it", compressed));
    trials
}

/// The map `number`, of this size.
pub(super) fn map(number: usize) -> Value {
    let mut text = String::with_capacity(SIZE);
    for line in 0..SIZE / 16 {
        let _ = writeln!(text, "{:015}", line * 7919 + number);
    }
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": format!("paged-{number:02}"), "namespace": "answers", "labels": {"paged": "yes"}},
        "data": {"text": text},
    })
}

fn get(testbed: &Testbed, route: Route, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
    send(testbed, route, &Method::GET, path, headers, Bytes::new())
}

/// The list's current version: a list at exactly this version always has the same bytes.
fn exactly(testbed: &Testbed) -> Result<String> {
    let list = get(testbed, Route::Direct, &format!("{SELECTED}&limit=1"), &[("accept", JSON)])?.json()?;
    let version = list["metadata"]["resourceVersion"].as_str().context("a list without a version")?;
    Ok(format!("{SELECTED}&resourceVersion={version}&resourceVersionMatch=Exact"))
}

fn everywhere(testbed: &Testbed, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
    let direct = get(testbed, Route::Direct, path, headers)?;
    for route in Route::PROXIED {
        same(route, &get(testbed, route, path, headers)?, &direct)?;
    }
    Ok(direct)
}

fn in_one(testbed: &Testbed, kind: &str) -> Result<()> {
    prepare(testbed)?;
    let path = exactly(testbed)?;
    for limit in ["&limit=5", ""] {
        let list = everywhere(testbed, &format!("{path}{limit}"), &[("accept", kind)])?.expect(StatusCode::OK)?;
        let got = values(&list.headers, "content-type");
        ensure!(got.iter().all(|value| value.starts_with(kind.as_bytes())), "{:?}", list.headers);
    }
    Ok(())
}

fn pages(testbed: &Testbed) -> Result<()> {
    prepare(testbed)?;
    let path = exactly(testbed)?;
    let headers = [("accept", JSON)];
    let mut names = Vec::new();
    let mut page = everywhere(testbed, &format!("{path}&limit=5"), &headers)?.expect(StatusCode::OK)?.json()?;
    loop {
        let items = page["items"].as_array().context("no items")?;
        names.extend(items.iter().filter_map(|item| item["metadata"]["name"].as_str().map(str::to_owned)));
        let Some(token) = page["metadata"]["continue"].as_str() else { break };
        let next = format!("{SELECTED}&limit=5&continue={token}");
        page = everywhere(testbed, &next, &headers)?.expect(StatusCode::OK)?.json()?;
    }
    let expected: Vec<String> = (0..MAPS).map(|number| format!("paged-{number:02}")).collect();
    ensure!(names == expected, "{names:?}");
    everywhere(testbed, &format!("{SELECTED}&limit=5&continue=broken"), &headers)?.expect(StatusCode::BAD_REQUEST)?;
    let future = format!("{SELECTED}&resourceVersion=999999999999&resourceVersionMatch=NotOlderThan&timeoutSeconds=1");
    let answers = [Route::Direct, Route::Gateway].map(|route| get(testbed, route, &future, &headers));
    let [direct, proxied] = answers;
    ensure!(direct?.status == proxied?.status, "a version of the future is answered otherwise");
    Ok(())
}

fn compressed(testbed: &Testbed) -> Result<()> {
    prepare(testbed)?;
    let path = exactly(testbed)?;
    let gzip = everywhere(testbed, &path, &[("accept", JSON), ("accept-encoding", "gzip")])?.expect(StatusCode::OK)?;
    ensure!(values(&gzip.headers, "content-encoding") == [b"gzip"], "{:?}", gzip.headers);
    let plain =
        everywhere(testbed, &path, &[("accept", JSON), ("accept-encoding", "identity")])?.expect(StatusCode::OK)?;
    ensure!(!plain.headers.contains_key("content-encoding"), "{:?}", plain.headers);
    ensure!(gzip.body.starts_with(&[0x1f, 0x8b]) && gzip.body.len() < plain.body.len(), "it is not compressed");
    Ok(())
}
