//! Uploads objects as large as members take, and reads back those that were confirmed.

use std::fmt::Write as _;
use std::time::Duration;

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{AGAIN, Route, Shared};
use crate::caller::Failure;
use crate::conclusion::Conclusion;
use crate::dice::Dice;

/// Pause between two uploads.
const PACE: Duration = Duration::from_secs(4);
/// Bytes of text. Members take a mebibyte.
const BYTES: usize = 900 << 10;
/// Limit for a member to come back, and answer.
const READ_BACK: Duration = Duration::from_mins(3);
const HASH: &str = "chaos/sha256";

pub(super) async fn run(shared: &Shared, route: &Route, direct: &Route) {
    let mut dice = shared.dice.apart(&format!("uploads {}", route.name));
    let mut failures = 0;
    while !shared.is_over() {
        let kind = if dice.once_in(2) { Kind::Secret } else { Kind::ConfigMap };
        let name = format!("u-{}", shared.id());
        let text = text(&mut dice);
        let hash = hash(text.as_bytes());
        let body = Bytes::from(kind.document(&name, &hash, &text).to_string());
        shared.report.counts.uploads.add();
        let told = match route.caller.whole(Method::POST, &route.path(kind.plural()), body).await {
            Ok(answer) => Conclusion::by(&answer),
            Err(Failure::NotSent(why)) => Conclusion::NotDone(why),
            Err(Failure::Broken(why)) => Conclusion::Unknown(why),
        };
        failures = if matches!(told, Conclusion::Created(_)) { 0 } else { failures + 1 };
        let path = direct.path(&format!("{}/{name}", kind.plural()));
        match read_back(direct, kind, &path).await {
            Ok(found) => {
                if matches!(told, Conclusion::Created(_)) && found.is_some() {
                    shared.report.counts.uploads_read_back.add();
                }
                let _ = check(&told, found.as_ref(), &hash).map_err(|what| {
                    shared.report.violation(&format!("an upload of {name} to {}", route.name), &what);
                });
            }
            Err(why) => shared.report.too_little(&format!("{name} cannot be read back at {}: {why}", direct.name)),
        }
        // Otherwise, it would fill the member's store.
        let _ = direct.caller.whole(Method::DELETE, &path, Bytes::new()).await;
        sleep(PACE + AGAIN.wait(failures)).await;
    }
}

/// Compares what was told with the hashes that were found: that of the text, and the one beside it.
fn check(told: &Conclusion, found: Option<&(String, String)>, hash: &str) -> Result<(), String> {
    match (told, found) {
        (_, Some((text, beside))) if text != hash || beside != hash => {
            Err(format!("told {told:?}; its text has the hash {text}, {beside} is beside it, {hash} was sent"))
        }
        (Conclusion::Created(_), None) => Err(format!("told {told:?}, and it does not exist")),
        (Conclusion::NotDone(_), Some(_)) => Err(format!("told {told:?}, and it exists")),
        (Conclusion::Exists | Conclusion::Untrue(_), _) => Err(format!("told {told:?}")),
        _ => Ok(()),
    }
}

async fn read_back(direct: &Route, kind: Kind, path: &str) -> Result<Option<(String, String)>, String> {
    let deadline = Instant::now() + READ_BACK;
    loop {
        let why = match direct.caller.get(path).await {
            Ok(answer) if answer.status == StatusCode::NOT_FOUND => return Ok(None),
            Ok(answer) if answer.status == StatusCode::OK && !answer.body.is_empty() => {
                let object: Value = serde_json::from_slice(&answer.body).map_err(|error| error.to_string())?;
                let beside = object["metadata"]["annotations"][HASH].as_str().unwrap_or_default().to_owned();
                return Ok(Some((hash(&kind.text(&object)), beside)));
            }
            Ok(answer) => answer.status.to_string(),
            Err(failure) => format!("{failure:?}"),
        };
        if Instant::now() >= deadline {
            return Err(why);
        }
        sleep(AGAIN.longest).await;
    }
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    ConfigMap,
    Secret,
}

// === impl Kind ===

impl Kind {
    fn plural(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
        }
    }

    fn document(self, name: &str, hash: &str, text: &str) -> Value {
        let metadata = json!({"name": name, "annotations": {HASH: hash}});
        match self {
            Self::ConfigMap => {
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}})
            }
            Self::Secret => {
                let data = json!({"text": BASE64.encode(text)});
                json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
            }
        }
    }

    fn text(self, object: &Value) -> Vec<u8> {
        let text = object["data"]["text"].as_str().unwrap_or_default();
        match self {
            Self::ConfigMap => text.as_bytes().to_vec(),
            Self::Secret => BASE64.decode(text).unwrap_or_default(),
        }
    }
}

fn text(dice: &mut Dice) -> String {
    let mut text = String::with_capacity(BYTES);
    while text.len() < BYTES {
        let _ = write!(text, "{:016x}", dice.next());
    }
    text
}

fn hash(text: &[u8]) -> String {
    digest::digest(&digest::SHA256, text).as_ref().iter().fold(String::new(), |mut hash, byte| {
        let _ = write!(hash, "{byte:02x}");
        hash
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_back_otherwise_is_found() {
        let (created, not, unknown) =
            (Conclusion::Created(None), Conclusion::NotDone(String::new()), Conclusion::Unknown(String::new()));
        let found = |text: &str, beside: &str| Some((text.to_owned(), beside.to_owned()));
        let check = |told: &Conclusion, found: Option<(String, String)>| check(told, found.as_ref(), "a");
        assert_eq!(check(&created, found("a", "a")), Ok(()));
        assert_eq!(check(&unknown, found("a", "a")), Ok(()));
        assert_eq!(check(&unknown, None), Ok(()));
        assert_eq!(check(&not, None), Ok(()));
        assert!(check(&created, None).is_err());
        assert!(check(&created, found("b", "a")).is_err());
        assert!(check(&unknown, found("b", "a")).is_err());
        assert!(check(&unknown, found("b", "b")).is_err());
        assert!(check(&not, found("a", "a")).is_err());
    }

    #[test]
    fn both_kinds_give_back_their_text() {
        for kind in [Kind::ConfigMap, Kind::Secret] {
            assert_eq!(kind.text(&kind.document("n", "h", "some text")), b"some text");
        }
    }
}
