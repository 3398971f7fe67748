//! Reads one object again and again.

use std::sync::atomic::Ordering;

use chaos_tests::caller::Caller;
use chaos_tests::conclusion::Answer;
use http::StatusCode;
use tokio::time::sleep;

use super::tried::Asked;
use super::{PACE, Shared};

pub(super) async fn run(shared: &Shared, caller: &Caller, base: &str) {
    let path = format!("{base}/api/v1/namespaces/kube-system");
    let is_it = |answer: &Answer| {
        answer.status == StatusCode::OK && String::from_utf8_lossy(&answer.body).contains("\"name\":\"kube-system\"")
    };
    while !shared.is_over() {
        if Asked::get(&path).ask(shared, caller, is_it).await.is_some() {
            shared.reads.fetch_add(1, Ordering::Relaxed);
        }
        sleep(PACE).await;
    }
}
