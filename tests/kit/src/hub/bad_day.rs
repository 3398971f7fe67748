//! Answers to reviews that are none.

use bytes::Bytes;
use serde_json::{Value, json};

use super::Fault;

/// Padding of a hub's review, beyond every limit of a reader.
const HUGE: usize = 100 << 20;

fn page(code: u16, text: &'static str) -> Fault {
    Fault::Answer(code, "text/html", Bytes::from_static(text.as_bytes()))
}

fn json_answer(code: u16, body: &Value) -> Fault {
    Fault::Answer(code, "application/json", body.to_string().into())
}

/// A review in which everything is permitted to every user.
fn review(group: &str, kind: &str) -> Value {
    let user = json!({"username": "root", "groups": ["system:masters"]});
    json!({"apiVersion": format!("{group}.k8s.io/v1"), "kind": kind, "spec": {},
        "status": {"authenticated": true, "allowed": true, "user": user}})
}

/// Answers to reviews of `kind` in `group` from a hub on a bad day, or from a proxy before it: no
/// answer permits anything. `other` is another kind of review.
pub fn review_faults(group: &str, kind: &str, other: &str) -> Vec<(&'static str, Fault)> {
    let mut padded = review(group, kind);
    padded["spec"] = json!({"padding": "p".repeat(HUGE)});
    let mut wrong = review(group, kind);
    wrong["kind"] = json!(other);
    let cut = review(group, kind).to_string();
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Success"});
    vec![
        ("500", Fault::Status(500)),
        ("503", Fault::Status(503)),
        ("403", Fault::Status(403)),
        ("a page", page(201, "<html><body>authenticated</body></html>")),
        ("a page of a load balancer", page(502, "<html><body>502 Bad Gateway</body></html>")),
        ("another kind of review", json_answer(201, &wrong)),
        ("a Status of success", json_answer(201, &status)),
        ("nothing", Fault::Answer(201, "application/json", Bytes::new())),
        ("half a review", Fault::Answer(201, "application/json", cut[..cut.len() - 2].to_owned().into())),
        ("a review of 100 MB", json_answer(201, &padded)),
    ]
}
