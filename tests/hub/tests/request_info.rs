//! The gateway reads what a member will do with a request as Kubernetes does: compared with
//! `RequestInfoFactory` itself, on generated requests.
//!
//! `tests/system` (`identity::reading`) shows that the member gets exactly the bytes that were
//! read.

use std::io::Write as _;
use std::process::{Command, Stdio};

use api::access::{Attributes, Verb};
use api::route::MemberRequest;
use hub_tests::prelude::*;
use hub_tests::tools::{self, Tool};
use libtest_mimic::{Failed, Trial};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

const REQUESTS: usize = 20_000;

/// Method, and path with query, as they are sent.
#[derive(Debug)]
struct Sent {
    method: Method,
    path: String,
    query: Option<String>,
}

pub(crate) fn trials() -> Vec<Trial> {
    let run = || read_alike().map_err(|error| Failed::from(format!("{error:#}")));
    vec![Trial::test("request_info::what is reviewed is what kube-apiserver reads", run)]
}

fn read_alike() -> Result<()> {
    let sent = generated();
    for (sent, theirs) in sent.iter().zip(kubernetes(&sent)?) {
        // Kubernetes serves no such path, and answers so.
        let Some(theirs) = theirs else { continue };
        let read = |upgrade| MemberRequest::read(&sent.method, &sent.path, sent.query.as_deref(), upgrade);
        let plain = read(false);
        ensure!(ours(&plain.attributes()) == theirs, "{sent:?}: {:?} here, {theirs} there", plain.attributes());
        judged(sent, &plain, &read(true), &theirs)?;
    }
    Ok(())
}

/// The conclusions from the reading never cover less than what Kubernetes does.
fn judged(sent: &Sent, plain: &MemberRequest<'_>, upgrade: &MemberRequest<'_>, theirs: &Value) -> Result<()> {
    let verb = theirs["verb"].as_str().unwrap_or_default();
    let watches = verb == "watch" && theirs["subresource"] == "" && sent.method == Method::GET;
    let logs = (&theirs["group"], &theirs["resource"], &theirs["subresource"]);
    let follows = logs == (&json!(""), &json!("pods"), &json!("log"));
    ensure!(!plain.is_endless() || watches || follows, "{sent:?} has an end: {theirs}");
    ensure!(upgrade.connects() || watches, "{sent:?} opens a stream: {theirs}");
    let expected = match sent.method {
        Method::GET | Method::HEAD => Verb::Get,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => Verb::None,
    };
    let gained = if expected == Verb::Get && upgrade.connects() { Verb::Create } else { expected };
    let reviewed = (plain.reviewed_verb(Verb::Create), upgrade.reviewed_verb(Verb::Create));
    ensure!(reviewed == (expected, gained), "{sent:?} is reviewed as {reviewed:?}");
    Ok(())
}

fn ours(attributes: &Attributes) -> Value {
    let text = |text: &Option<Arc<str>>| text.as_deref().unwrap_or_default().to_owned();
    match attributes {
        Attributes::NonResource { path, verb } => json!({"path": **path, "verb": verb}),
        Attributes::Resource(it) => json!({
            "verb": it.verb.as_str(), "group": it.group, "version": it.version, "resource": it.resource,
            "subresource": it.subresource, "namespace": text(&it.namespace), "name": text(&it.name),
            "fieldSelector": text(&it.field_selector), "labelSelector": text(&it.label_selector),
        }),
    }
}

/// The result of `RequestInfoFactory` for each, in the form of [`ours`]; `None` if it rejects the
/// request.
fn kubernetes(sent: &[Sent]) -> Result<Vec<Option<Value>>> {
    let head = |Sent { method, path, query }: &Sent| {
        let query = query.as_ref().map_or_else(String::new, |query| format!("?{query}"));
        format!("{method} {path}{query} HTTP/1.1\r\nHost: member\r\n\r\n")
    };
    let heads = sent.iter().map(head).collect::<Vec<_>>().concat();
    let program = tools::provide(Tool::RequestInfo)?;
    let mut reader =
        Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut input = reader.stdin.take().context("it is piped")?;
    let writing = std::thread::spawn(move || input.write_all(heads.as_bytes()));
    let output = reader.wait_with_output()?;
    writing.join().map_err(|_| anyhow::anyhow!("writing panicked"))?.context("it does not read to the end")?;
    let lines: Vec<_> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(expected)
        .collect::<Result<_>>()?;
    ensure!(lines.len() == sent.len(), "{} answers for {} requests", lines.len(), sent.len());
    Ok(lines)
}

fn expected(line: &[u8]) -> Result<Option<Value>> {
    let mut said: Value = serde_json::from_slice(line)?;
    if said.get("error").is_some() {
        return Ok(None);
    }
    if said["resource"] == false {
        return Ok(Some(json!({"path": said["path"], "verb": said["verb"]})));
    }
    said["resource"] = said["kind"].take();
    let fields = said.as_object_mut().context("an object")?;
    fields.remove("kind");
    fields.remove("path");
    Ok(Some(said))
}

/// Requests in which mistakes could hide. Always the same ones. The last have as many parameters as
/// the gateway lets through.
fn generated() -> Vec<Sent> {
    let many = ["watch=1", "fieldSelector=metadata.name%3Dp"].map(|first| Sent {
        method: Method::GET,
        path: "/api/v1/pods".to_owned(),
        query: Some(format!("{first}{}", "&".repeat(api::query::MOST_PARAMETERS - 1))),
    });
    let mut runner = TestRunner::deterministic();
    let requests = (methods(), paths(), queries());
    let mut next = || requests.new_tree(&mut runner).ok().map(|tree| tree.current());
    std::iter::from_fn(&mut next)
        .map(|(method, path, query)| Sent { method, path, query })
        .take(REQUESTS)
        .chain(many)
        .collect()
}

fn methods() -> impl Strategy<Value = Method> {
    let names = prop_oneof![
        6 => Just("GET"), 1 => Just("HEAD"), 1 => Just("POST"), 1 => Just("PUT"), 1 => Just("PATCH"),
        2 => Just("DELETE"), 1 => Just("OPTIONS"), 1 => Just("QUERY"),
    ];
    names.prop_map(|name| name.parse().expect("a method"))
}

/// Half of them start like a path of an API, and a third have encoded characters.
fn paths() -> impl Strategy<Value = String> {
    let segment = prop::sample::select(vec![
        "api",
        "apis",
        "v1",
        "apps",
        "namespaces",
        "ns",
        "pods",
        "p",
        "exec",
        "attach",
        "log",
        "status",
        "finalize",
        "watch",
        "proxy",
        "services",
        "nodes",
        "",
        "a.b",
        ":",
        "+",
        "~",
        "%2F",
        "%5c",
        "%25",
        "%c3%a9",
        "%ff",
        "%20",
        "x;y=1",
        "\\",
    ]);
    let start = prop::sample::select(vec![
        "",
        "/",
        "/api/v1",
        "/apis/apps/v1",
        "/api/v1/namespaces/ns",
        "/apis/x.io/v1/namespaces/ns/things",
        "/api/v1/watch",
        "/%61pi/v1",
        "//api/v1",
        "/api/v1/namespaces/ns/pods/p",
    ]);
    let end = prop::sample::select(vec!["", "/", "//"]);
    let segments = prop::collection::vec(segment, 0..6);
    (start, segments, end).prop_map(|(start, segments, end)| {
        let path = format!("{}{end}", [&[start], &*segments].concat().join("/"));
        if path.is_empty() { "/".to_owned() } else { path }
    })
}

fn queries() -> impl Strategy<Value = Option<String>> {
    let pair = prop::sample::select(vec![
        "watch=true",
        "watch=1",
        "watch",
        "watch=false",
        "watch=0",
        "w%61tch=TRUE",
        "watch=%zz",
        "watch=true;x",
        "follow=true",
        "follow",
        "limit=5",
        "limit=x",
        "limit=",
        "timeoutSeconds=3",
        "timeoutSeconds=-",
        "fieldSelector=metadata.name%3Dp",
        "fieldSelector=metadata.name=p,spec.x!=y",
        "fieldSelector=metadata.name!%3Dp",
        "fieldSelector=a,b",
        "fieldSelector=metadata.name=a/b",
        "labelSelector=a%20in%20(b)",
        "labelSelector=a+b",
        "labelSelector=",
        "command=sh",
        "%",
        "=",
        "&",
        "a+b=c",
        "resourceVersion=7",
        "allowWatchBookmarks=x",
    ]);
    prop::option::of(prop::collection::vec(pair, 0..4).prop_map(|pairs| pairs.join("&")))
}
