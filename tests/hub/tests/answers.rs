//! Answers to requests that change something, fail or stream: status, headers and bytes are the
//! member's own, and the member does what the request should have done, or does not.
//!
//! Comparing bytes needs requests whose answers contain no times: failures, dry runs, changes that
//! change nothing, lists at an exact resource version.

mod cases;
mod lists;
mod streams;

use std::sync::OnceLock;

use http::HeaderMap;
use hub_tests::prelude::*;
use libtest_mimic::Trial;

use self::cases::{CASES, Case};
use crate::access::{bearer, client};
use crate::fixture::{Fixture, test};

const NAMESPACE: &str = "answers";
/// The namespace of these tests' objects.
const MAPS: &str = "/api/v1/namespaces/answers/configmaps";
const SETTINGS: &str = "/api/v1/namespaces/answers/configmaps/settings";
const JSON: &str = "application/json";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CBOR: &str = "application/cbor";

/// The headers that a client acts on.
const HEADERS: [&str; 8] =
    ["content-type", "content-encoding", "content-length", "etag", "vary", "warning", "allow", "retry-after"];

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    let trial = |case: &'static Case| {
        let name = format!("answers::{} {}", case.code, case.name);
        test(fixture, name, move |testbed| the_members_own(testbed, case))
    };
    let mut trials: Vec<Trial> = CASES.iter().map(trial).collect();
    trials.push(test(fixture, "answers::a dry run creates nothing, the same request without it does", dry_run));
    for kind in [PROTOBUF, CBOR] {
        let name = format!("answers::{kind}: what was read is written back");
        trials.push(test(fixture, name, move |testbed| round_trip(testbed, kind)));
    }
    trials.extend(lists::trials(fixture));
    trials.extend(streams::trials(fixture));
    trials
}

/// The namespace and its objects, created by the first test that needs them.
fn prepare(testbed: &Testbed) -> Result<()> {
    static READY: OnceLock<Result<(), String>> = OnceLock::new();
    let ready = READY.get_or_init(|| {
        let prepare = || -> Result<()> {
            testbed.member.server.create_namespace(NAMESPACE)?;
            let kubectl = testbed.member.server.kubectl();
            kubectl.ok("create configmap settings --from-literal=colour=red -n answers")?;
            let maps = (0..lists::MAPS).map(|number| lists::map(number).to_string()).collect::<Vec<_>>();
            kubectl.args(["create", "-f", "-"]).stdin(maps.join("\n")).run()?.success()?;
            Ok(())
        };
        prepare().map_err(|error| format!("{error:#}"))
    });
    ready.clone().map_err(|error| anyhow!("{error}"))
}

/// Path (below the proxy's) and headers for `route`.
fn addressed(testbed: &Testbed, route: Route, path: &str) -> (String, String) {
    match route {
        Route::Direct => (path.to_owned(), bearer(&testbed.member_token)),
        _ => (format!("{}{path}", Testbed::proxy_path(route.cluster())), bearer(&testbed.token)),
    }
}

fn send(
    testbed: &Testbed,
    route: Route,
    method: &Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Result<Response> {
    let (path, authorization) = addressed(testbed, route, path);
    let mut headers: Vec<(&str, &str)> = headers.iter().copied().chain([("authorization", &*authorization)]).collect();
    if !headers.iter().any(|(name, _)| *name == "accept-encoding") {
        // Without this header, the hub asks for gzip on the client's behalf and unpacks the answer,
        // but keeps its `Vary`.
        headers.push(("accept-encoding", "identity"));
    }
    client(testbed, route).send(method, &path, &headers, body).with_context(|| format!("via {}", route.name()))
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a [u8]> {
    headers.get_all(name).iter().map(http::HeaderValue::as_bytes).collect()
}

/// Checks that `proxied` equals `direct`.
fn same(route: Route, proxied: &Response, direct: &Response) -> Result<()> {
    let via = route.name();
    ensure!(proxied.status == direct.status, "via {via}: {}: {}", proxied.status, proxied.text());
    for name in HEADERS {
        let (sent, expected) = (values(&proxied.headers, name), values(&direct.headers, name));
        ensure!(sent == expected, "via {via}: {name} is {:?} instead of {:?}", texts(&sent), texts(&expected));
    }
    let (mut sent, mut expected) = (proxied.body.to_vec(), direct.body.to_vec());
    if values(&direct.headers, "content-type").iter().any(|value| value.starts_with(CBOR.as_bytes())) {
        // The keys of a map have another order each time (apimachinery `EncodeNondeterministic`).
        sent.sort_unstable();
        expected.sort_unstable();
    }
    let (shown, instead) = (excerpt(&proxied.body), excerpt(&direct.body));
    ensure!(sent == expected, "via {via}: {} bytes {shown}\ninstead of {} {instead}", sent.len(), expected.len());
    Ok(())
}

fn excerpt(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(400).collect()
}

fn texts(values: &[&[u8]]) -> Vec<String> {
    values.iter().map(|value| String::from_utf8_lossy(value).into_owned()).collect()
}

fn the_members_own(testbed: &Testbed, case: &Case) -> Result<()> {
    prepare(testbed)?;
    let method = Method::from_bytes(case.method.as_bytes())?;
    let headers = [("accept", JSON), ("content-type", case.kind)];
    let headers = if case.body.is_empty() { &headers[..1] } else { &headers };
    let send = |route| send(testbed, route, &method, case.path, headers, Bytes::from_static(case.body.as_bytes()));
    let direct = send(Route::Direct)?.expect(StatusCode::from_u16(case.code)?)?;
    ensure!(case.warns == direct.headers.contains_key("warning"), "the member's headers: {:?}", direct.headers);
    Route::PROXIED.into_iter().try_for_each(|route| same(route, &send(route)?, &direct))
}

fn dry_run(testbed: &Testbed) -> Result<()> {
    prepare(testbed)?;
    let headers = [("accept", JSON), ("content-type", JSON)];
    for route in Route::ALL {
        let name = format!("dry-{}", route.name());
        let body = || Bytes::from(format!(r#"{{"metadata":{{"name":"{name}"}},"data":{{"a":"b"}}}}"#));
        let post = |path: &str| send(testbed, route, &Method::POST, path, &headers, body());
        let get = || send(testbed, route, &Method::GET, &format!("{MAPS}/{name}"), &headers[..1], Bytes::new());
        let answer = post(&format!("{MAPS}?dryRun=All&fieldValidation=Strict"))?.expect(StatusCode::CREATED)?.json()?;
        ensure!(answer["metadata"]["uid"].is_string() && answer["data"]["a"] == "b", "{answer}");
        get()?.expect(StatusCode::NOT_FOUND)?;
        // More than one value is an error, and stays one.
        post(&format!("{MAPS}?dryRun=All&dryRun=Some"))?.expect(StatusCode::UNPROCESSABLE_ENTITY)?;
        get()?.expect(StatusCode::NOT_FOUND)?;
        post(MAPS)?.expect(StatusCode::CREATED)?;
        get()?.expect(StatusCode::OK)?;
    }
    Ok(())
}

/// Reads an object in `kind`, writes these bytes back, and compares: an update that changes nothing
/// is answered with the object.
fn round_trip(testbed: &Testbed, kind: &str) -> Result<()> {
    prepare(testbed)?;
    let headers = [("accept", kind), ("content-type", kind)];
    let read =
        send(testbed, Route::Direct, &Method::GET, SETTINGS, &headers[..1], Bytes::new())?.expect(StatusCode::OK)?;
    let is_kind = |response: &Response| {
        values(&response.headers, "content-type").iter().all(|value| value.starts_with(kind.as_bytes()))
    };
    ensure!(is_kind(&read), "the member answers with {:?}", read.headers.get("content-type"));
    ensure!(serde_json::from_slice::<Value>(&read.body).is_err(), "this is JSON: {}", read.text());
    for route in Route::PROXIED {
        same(route, &send(testbed, route, &Method::GET, SETTINGS, &headers[..1], Bytes::new())?, &read)?;
        same(route, &send(testbed, route, &Method::PUT, SETTINGS, &headers, read.body.clone())?, &read)?;
        // Half a body is no object; the member reports that in the same encoding.
        let half = read.body.slice(..read.body.len() / 2);
        let direct = send(testbed, Route::Direct, &Method::PUT, SETTINGS, &headers, half.clone())?;
        ensure!(direct.status == StatusCode::BAD_REQUEST, "{}: {}", direct.status, direct.text());
        same(route, &send(testbed, route, &Method::PUT, SETTINGS, &headers, half)?, &direct)?;
    }
    Ok(())
}
