use std::sync::Arc;

use http::{Response, StatusCode};
use kube::core::GroupVersionKind;
use parking_lot::Mutex;
use tower::service_fn;

use super::*;
use crate::failure::Kind;

/// The requests: path and query, and the `Accept` header.
type Asked = Arc<Mutex<Vec<(String, String)>>>;

/// A member that gives these answers in order, and then repeats the last one.
fn member(answers: Vec<(u16, String)>) -> (Sight, Asked) {
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    let answer = move |request: Request<Body>| {
        let mut seen = seen.lock();
        let accept = request.headers()[ACCEPT].to_str().unwrap().to_owned();
        let (code, body) = answers[seen.len().min(answers.len() - 1)].clone();
        seen.push((request.uri().to_string(), accept));
        let mut response = Response::new(Body::from(body.into_bytes()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        async move { Ok::<_, kube::Error>(response) }
    };
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", ""), "configmaps");
    let sight = Sight::new(Sender::new(service_fn(answer)), &resource, "n");
    (sight, asked)
}

fn page(next: &str, items: &str) -> (u16, String) {
    (200, format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"{next}"}},"items":[{items}]}}"#))
}

fn item(name: &str, version: &str) -> String {
    format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}},"data":{{"a":"b"}}}}"#)
}

async fn listed(sight: &Sight) -> Result<(String, Vec<String>), Failure> {
    let mut all = Vec::new();
    let version = sight.list(|name, version| all.push(format!("{name}@{version}"))).await?;
    Ok((version, all))
}

/// All changes that the watch reports, and why it broke.
async fn watched(sight: &Sight) -> (Vec<String>, Failure) {
    let mut all = Vec::new();
    let tell = |change: Change, name: &str, at: &str| all.push(format!("{change:?} {name}@{at}"));
    let why = sight.watch("5".to_owned(), tell).await;
    (all, why)
}

#[tokio::test]
async fn pages_are_asked_for_one_after_the_other_and_without_contents() {
    let (sight, asked) = member(vec![page("x", &item("a", "1")), page("", &item("b", "2"))]);
    let sight = sight.selecting("a=b".to_owned());
    assert_eq!(listed(&sight).await.unwrap(), ("9".to_owned(), vec!["a@1".to_owned(), "b@2".to_owned()]));
    let asked = asked.lock();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[1].0, "/api/v1/namespaces/n/configmaps?&labelSelector=a%3Db&limit=500&continue=x");
    assert!(asked[0].1.starts_with("application/json;as=PartialObjectMetadataList"), "{}", asked[0].1);
}

#[tokio::test]
async fn a_list_that_has_no_end_ends() {
    let (sight, asked) = member(vec![page("x", &item("a", "1"))]);
    let (_, all) = listed(&sight).await.unwrap();
    assert_eq!((asked.lock().len(), all.len()), (PAGES, PAGES));
}

#[tokio::test]
async fn what_is_no_list_says_where_it_failed() {
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","code":403}"#;
    let (sight, _) = member(vec![(403, status.to_owned())]);
    assert_eq!(listed(&sight).await.unwrap_err().kind, Kind::Answered(403));
    let (sight, _) = member(vec![(200, "[{}]".to_owned())]);
    let failure = listed(&sight).await.unwrap_err();
    assert!(failure.message.contains("a list that cannot be read"), "{failure}");
}

/// kube's metadata takes 350 bytes for each empty object, 245 MB for this list.
#[tokio::test]
async fn a_list_of_objects_that_are_empty_takes_no_memory() {
    const BYTES: usize = 2 << 20;
    let (sight, _) = member(vec![page("", &vec!["{}"; BYTES / 3].join(","))]);
    let before = peak();
    let mut count = 0;
    sight.list(|_, _| count += 1).await.unwrap();
    assert_eq!(count, BYTES / 3);
    let grown = peak() - before;
    assert!(grown < 32 << 20, "{} MiB more", grown >> 20);
}

/// kube holds the unknown fields of an event as values of 32 bytes, 50 MB for this line.
#[tokio::test]
async fn a_line_full_of_what_nobody_asked_for_takes_no_memory() {
    const BYTES: usize = 3 << 20;
    let numbers = vec!["0"; BYTES / 2].join(",");
    let line = format!(r#"{{"object":{{"spec":[{numbers}],"metadata":{{"name":"a","resourceVersion":"6"}}}},"type":"#);
    let (sight, _) = member(vec![(200, format!("{line}\"ADDED\"}}\n")), (500, String::new())]);
    let before = peak();
    let (all, _) = watched(&sight).await;
    assert_eq!(all, ["There a@6"]);
    let grown = peak() - before;
    assert!(grown < 32 << 20, "{} MiB more", grown >> 20);
}

#[tokio::test]
async fn a_watch_goes_on_where_it_ended_and_breaks_where_it_failed() {
    let line = |kind: &str, object: &str| format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
    let first = [line("ADDED", &item("a", "6")), line("BOOKMARK", &item("", "7"))].concat();
    let second = [line("DELETED", &item("a", "8")), line("ERROR", r#"{"kind":"Status","code":410}"#)].concat();
    let (sight, asked) = member(vec![(200, first), (200, second)]);
    let (all, why) = watched(&sight).await;
    assert_eq!(all, ["There a@6", "Gone a@8"]);
    assert!(why.message.contains("410"), "{why}");
    let versions = asked.lock().iter().map(|(uri, _)| uri.rsplit('=').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(versions, ["5", "7"]);
    let (sight, _) = member(vec![(200, line("ADDED", r#"{"metadata":{"name":"a"}}"#))]);
    let (all, why) = watched(&sight).await;
    assert!(all.is_empty() && why.message.contains("resourceVersion"), "{why}");
    let (sight, _) = member(vec![(405, String::new())]);
    assert_eq!(watched(&sight).await.1.kind, Kind::Plain(405));
}

/// Peak memory of this process, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    1024 * line.trim().trim_end_matches(" kB").parse::<usize>().unwrap()
}
