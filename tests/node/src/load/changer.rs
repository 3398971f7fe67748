//! Replaces one object again and again, and deletes another one that was created directly on the
//! member. Both requests may be repeated, and both results are checked on the member afterwards.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use chaos_tests::caller::Caller;
use chaos_tests::conclusion::Answer;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::tried::Asked;
use super::{NAMESPACE, Shared};

/// Pause between two rounds of several requests each.
const PACE: Duration = Duration::from_millis(300);
const REPLACED: &str = "replaced";
const DELETED: &str = "deleted";

pub(super) async fn run(shared: &Shared, through: &Caller, base: &str, straight: &Caller) {
    let place = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    make(shared, straight, &place, REPLACED).await;
    let mut number = 0_u32;
    while !shared.is_over() {
        number += 1;
        let changed = replace(shared, through, &format!("{base}{place}/{REPLACED}"), number).await
            && delete(shared, (straight, &place), through, &format!("{base}{place}/{DELETED}")).await;
        if changed && is_done(shared, straight, &place, number).await {
            shared.changes.fetch_add(2, Ordering::Relaxed);
        }
        sleep(PACE).await;
    }
}

fn object(name: &str, number: u32) -> Bytes {
    let data = json!({"number": number.to_string()});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}).to_string().into()
}

fn number_of(answer: &Answer) -> Option<String> {
    let object: Value = serde_json::from_slice(&answer.body).ok()?;
    object["data"]["number"].as_str().map(str::to_owned)
}

/// Creates an object on the member itself, where it may still exist from an earlier load.
async fn make(shared: &Shared, straight: &Caller, place: &str, name: &str) {
    let made = Asked { method: Method::POST, path: place, body: object(name, 0) };
    let is_it = |answer: &Answer| [StatusCode::CREATED, StatusCode::CONFLICT].contains(&answer.status);
    made.ask(shared, straight, is_it).await;
}

async fn replace(shared: &Shared, through: &Caller, path: &str, number: u32) -> bool {
    let asked = Asked { method: Method::PUT, path, body: object(REPLACED, number) };
    let is_it = |answer: &Answer| answer.status == StatusCode::OK && number_of(answer) == Some(number.to_string());
    asked.ask(shared, through, is_it).await.is_some()
}

/// A repeated deletion may find that the first one took effect.
async fn delete(shared: &Shared, made: (&Caller, &str), through: &Caller, path: &str) -> bool {
    make(shared, made.0, made.1, DELETED).await;
    let asked = Asked { method: Method::DELETE, path, body: Bytes::new() };
    let is_it =
        |answer: &Answer, again| answer.status == StatusCode::OK || again && answer.status == StatusCode::NOT_FOUND;
    asked.ask_again(shared, through, is_it).await.is_some()
}

/// Whether the member has the replaced object's new content and no longer has the deleted object.
async fn is_done(shared: &Shared, straight: &Caller, place: &str, number: u32) -> bool {
    let (replaced, deleted) = (format!("{place}/{REPLACED}"), format!("{place}/{DELETED}"));
    let has = |answer: &Answer| number_of(answer) == Some(number.to_string());
    let is_gone = |answer: &Answer| answer.status == StatusCode::NOT_FOUND;
    Asked::get(&replaced).ask(shared, straight, has).await.is_some()
        && Asked::get(&deleted).ask(shared, straight, is_gone).await.is_some()
}
