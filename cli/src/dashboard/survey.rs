//! Asks hub and clusters at regular intervals, while a page is open.

mod secrets;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use fleet::{Cluster, Event};
use futures_util::StreamExt as _;
use tokio::time::{Instant, sleep};

use self::secrets::Secrets;
use super::board::{Board, Notice};
use super::cells::Cells;
use crate::expiry::now;
use crate::look;
use crate::row::{Agents, Facts, Registered, Row};
use crate::session::Session;
use crate::trouble::Trouble;

/// Shortest time between two changes of the board while clusters answer.
const PACE: Duration = Duration::from_millis(250);

/// Runs forever. The first look comes at once, so that there is something to show.
pub async fn run(session: &Session, board: &Board, interval: Duration) {
    let mut secrets = Secrets::default();
    loop {
        once(session, board, &mut secrets).await;
        sleep(interval).await;
        board.watched().await;
    }
}

async fn once(session: &Session, board: &Board, secrets: &mut Secrets) {
    let before = board.newest();
    let mut clusters = match session.fleet.clusters("").await.map_err(Trouble::from) {
        Ok(clusters) => clusters,
        Err(trouble) => {
            let what = format!("The hub does not list its clusters: {}", trouble.what);
            board.show(before.clusters.clone(), vec![Notice { what, remedy: trouble.remedy }]);
            return;
        }
    };
    clusters.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    secrets.read(session, &clusters).await;
    let shown = clusters.iter().map(|cluster| {
        let known = before.clusters.get(cluster.name.as_str()).cloned();
        // A new cluster is shown before it has answered.
        let cells = known.unwrap_or_else(|| Arc::new(cells(cluster.clone(), None, None, &secrets.known, None)));
        (cluster.name.to_string(), cells)
    });
    let mut shown: BTreeMap<_, _> = shown.collect();
    board.show(shown.clone(), secrets.notices());
    ask(session, board, &clusters, secrets, &mut shown).await;
    board.show(shown, secrets.notices());
}

/// Asks each cluster, and shows answers as they come.
async fn ask(
    session: &Session,
    board: &Board,
    clusters: &[Cluster],
    secrets: &Secrets,
    shown: &mut BTreeMap<String, Arc<Cells>>,
) {
    let by_name: HashMap<&ClusterName, &Cluster> = clusters.iter().map(|one| (&one.name, one)).collect();
    let names = clusters.iter().map(|cluster| cluster.name.clone()).collect();
    let mut events = look::each(session, names, &secrets.known);
    let mut last = Instant::now();
    while let Some(event) = events.next().await {
        let Event::Finished(outcome) = event else { continue };
        let Some(cluster) = by_name.get(&outcome.cluster) else { continue };
        let (answer, agents) = match outcome.result {
            Ok((seen, agents)) => (Ok(seen), agents),
            Err(failure) => (Err(failure), None),
        };
        let before = shown.get(cluster.name.as_str());
        let millis = before.and_then(|cells| cells.millis);
        let after = cells((*cluster).clone(), Some(answer), agents, &secrets.known, millis);
        // An unchanged cluster keeps its `Arc`, so that readers need not compare its fields.
        if before.is_none_or(|before| **before != after) {
            shown.insert(cluster.name.to_string(), Arc::new(after));
        }
        if last.elapsed() >= PACE {
            board.show(shown.clone(), secrets.notices());
            last = Instant::now();
        }
    }
}

fn cells(
    cluster: Cluster,
    answer: Option<look::Answer>,
    agents: Option<Agents>,
    registered: &HashMap<String, Registered>,
    shown: Option<u64>,
) -> Cells {
    let registered = registered.get(cluster.name.as_str()).cloned();
    let now = now();
    Cells::new(Row::new(&Facts { cluster, answer, agents, registered }, now), shown, now)
}
