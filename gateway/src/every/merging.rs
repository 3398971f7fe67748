//! Makes one list of the members' lists, or marks the only object.
//!
//! A core of the gateway serves its connections in turns, and tens of megabytes of JSON take longer
//! than they may wait. So another thread reads large answers.

use std::panic::resume_unwind;

use api::cluster_name::ClusterName;
use api::karmada_cluster::merge::{Asked, Head, Merged, NotAlike, marked};
use bytes::Bytes;
use tokio::task::spawn_blocking;

use super::ask::Answered;
use super::bytes_left::BytesLeft;

/// Most bytes of all answers that the core itself reads: some milliseconds.
const OWN_TURN: usize = 512 << 10;

/// The members' lists as one.
pub struct Lists {
    /// `None` if no member's list can be one.
    pub document: Option<Bytes>,
    /// Members whose lists are not part of it.
    pub refused: Vec<(ClusterName, NotAlike)>,
}

/// Merges `found`, in its order. Returns the room, which the work keeps: it goes on when the client
/// has left, and its bytes and its permit count until it has ended.
pub async fn merged(found: Vec<(ClusterName, Answered)>, asked: Asked, mut room: BytesLeft) -> (Lists, BytesLeft) {
    let bytes: usize = found.iter().map(|(_, answer)| answer.body.len()).sum();
    apart(bytes, move || (merge(found, &asked, &mut room), room)).await
}

/// The object `body` of `cluster`, marked. Unchanged if it is no object.
pub async fn only(cluster: ClusterName, body: Bytes, room: BytesLeft) -> (Bytes, BytesLeft) {
    apart(body.len(), move || (marked(cluster.as_str(), &body).map_or(body, Bytes::from), room)).await
}

/// Does `work` on this many bytes.
async fn apart<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> T {
    if bytes <= OWN_TURN {
        return work();
    }
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

fn merge(found: Vec<(ClusterName, Answered)>, asked: &Asked, room: &mut BytesLeft) -> Lists {
    let (mut lists, mut refused) = (Vec::new(), Vec::new());
    for (cluster, answer) in found {
        match Head::read(&answer.body, asked) {
            Ok(head) => lists.push((cluster, head, answer.body)),
            Err(why) => refused.push((cluster, why)),
        }
    }
    let Some(head) = Head::most_common(lists.iter().map(|(_, head, _)| head)).cloned() else {
        return Lists { document: None, refused };
    };
    let mut merged = Merged::new(head, lists.iter().map(|(.., body)| body.len()).sum());
    for (cluster, head, body) in lists {
        if let Err(why) = merged.add(cluster.as_str(), &head, &body) {
            refused.push((cluster, why));
        }
        room.merged(merged.capacity());
    }
    Lists { document: Some(merged.document().into()), refused }
}

#[cfg(test)]
mod tests {
    use auth::User;
    use futures_util::FutureExt as _;
    use http::HeaderValue;
    use prometheus_client::metrics::counter::Counter;

    use super::*;
    use crate::holding::{self, Account, Budget};
    use crate::limits::HeavyPermits;

    fn account() -> Account {
        holding::open(&Budget::new(1 << 40), 0, [10, 0, 0, 1].into())
    }

    fn permits() -> HeavyPermits {
        HeavyPermits::new("lists", 16, 2, [Counter::default(), Counter::default()])
    }

    /// A room with an answer of `items` short items in it.
    fn full(account: &Account, permits: &HeavyPermits, items: usize) -> (Vec<(ClusterName, Answered)>, BytesLeft) {
        let items = vec![r#"{"metadata":{}}"#; items].join(",");
        let body = Bytes::from(format!(r#"{{"kind":"PodList","apiVersion":"v1","items":[{items}]}}"#));
        let room = BytesLeft::new(1, account, permits.enter(&User::default()).expect("a permit"));
        assert!(room.share().take(body.len()));
        let answer = Answered { body, content_type: HeaderValue::from_static("application/json") };
        (vec![(ClusterName::parse("berlin").expect("a name"), answer)], room)
    }

    fn pods() -> Asked {
        Asked { kind: None, api_version: "v1".to_owned() }
    }

    #[tokio::test]
    async fn a_large_list_does_not_take_the_turns_of_others() {
        let (account, permits) = (account(), permits());
        let before = account.held();
        let (found, room) = full(&account, &permits, 10);
        let (lists, _) = merged(found, pods(), room).now_or_never().expect("a small one is read at once");
        assert!(lists.refused.is_empty());
        let (found, room) = full(&account, &permits, 50_000);
        let mut large = Box::pin(merged(found, pods(), room));
        assert!((&mut large).now_or_never().is_none(), "this task goes on");
        let (lists, room) = large.await;
        let document = lists.document.expect("a list");
        assert_eq!(String::from_utf8_lossy(&document).matches("\"berlin\"").count(), 50_000);
        drop(room);
        assert_eq!((permits.taken(), account.held()), (0, before));
    }

    /// Marks make short items several times as long.
    #[tokio::test]
    async fn a_merged_list_counts_with_its_marks() {
        let (account, permits) = (account(), permits());
        let before = account.held();
        let (found, room) = full(&account, &permits, 20_000);
        let bytes = found[0].1.body.len();
        let (lists, room) = merged(found, pods(), room).await;
        let document = lists.document.expect("a list").len();
        let held = usize::try_from(account.held() - before).expect("fits");
        assert!(document > 4 * bytes && held >= 2 * bytes + document, "{held} for {bytes} and {document}");
        drop(room);
        assert_eq!(account.held(), before);
    }
}
