use std::collections::HashSet;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{Instant, sleep};

use super::*;
use crate::failure::Kind;

const SECOND: Duration = Duration::from_secs(1);
const LIMITS: Limits = Limits { at_once: 2, within: Duration::from_secs(10) };

fn names(count: usize) -> Vec<ClusterName> {
    (0..count).map(|number| ClusterName::parse(&format!("c-{number}")).unwrap()).collect()
}

/// Counts what runs now, and the most at a time.
#[derive(Clone, Default)]
struct Running(Arc<(AtomicUsize, AtomicUsize)>);

struct One(Running);

impl Running {
    fn enter(&self) -> One {
        let now = self.0.0.fetch_add(1, Ordering::Relaxed) + 1;
        self.0.1.fetch_max(now, Ordering::Relaxed);
        One(self.clone())
    }

    fn now(&self) -> usize {
        self.0.0.load(Ordering::Relaxed)
    }

    fn most(&self) -> usize {
        self.0.1.load(Ordering::Relaxed)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_as_allowed_run_at_once_and_no_more() {
    let (running, start) = (Running::default(), Instant::now());
    let within = running.clone();
    let all = each(names(5), LIMITS, |_| {
        let one = within.enter();
        async move {
            sleep(SECOND).await;
            drop(one);
            Ok::<_, Failure>(())
        }
    });
    assert_eq!(all.in_order(|_, _| ()).await.len(), 5);
    assert_eq!((running.most(), start.elapsed()), (2, 3 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_silent_cluster_holds_up_none_and_is_given_up_in_time() {
    let start = Instant::now();
    let all = each(names(5), LIMITS, |cluster| async move {
        match cluster.as_str() {
            "c-1" => pending().await,
            "c-2" => Err(Failure::own("broken")),
            other => {
                sleep(SECOND).await;
                Ok(other.to_owned())
            }
        }
    });
    let mut ended = Vec::new();
    let outcomes = all
        .in_order(|_, event| {
            if let Event::Finished(outcome) = event {
                ended.push((outcome.cluster.to_string(), start.elapsed()));
            }
        })
        .await;
    // In the order given, whatever came first.
    let results: Vec<_> =
        outcomes.iter().map(|outcome| outcome.result.as_ref().map_err(|failure| failure.kind)).collect();
    let ok = ["c-0", "c-3", "c-4"].map(str::to_owned);
    assert_eq!(results, [Ok(&ok[0]), Err(Kind::Late), Err(Kind::Own), Ok(&ok[1]), Ok(&ok[2])]);
    assert_eq!(outcomes[2].result.as_ref().unwrap_err().to_string(), "cluster c-2: broken");
    let expected = [("c-0", 1), ("c-2", 1), ("c-3", 2), ("c-4", 3), ("c-1", 10)];
    assert_eq!(ended, expected.map(|(cluster, seconds)| (cluster.to_owned(), seconds * SECOND)));
}

#[tokio::test(start_paused = true)]
async fn progress_counts_what_began_and_what_ended() {
    let all = each(names(3), Limits { at_once: 0, ..LIMITS }, |cluster| async move {
        if cluster.as_str() == "c-0" { Err(Failure::own("no")) } else { Ok(()) }
    });
    let mut seen = Vec::new();
    all.in_order(|progress, _| seen.push((progress.started, progress.finished, progress.failed, progress.all))).await;
    assert_eq!(seen, [(1, 0, 0, 3), (1, 1, 1, 3), (2, 1, 1, 3), (2, 2, 1, 3), (3, 2, 1, 3), (3, 3, 1, 3)]);
}

#[tokio::test(start_paused = true)]
async fn who_stops_reading_ends_what_runs_and_starts_nothing_more() {
    let (running, within) = (Running::default(), Running::default());
    let started = within.clone();
    let counted = running.clone();
    let mut all = each(names(5), LIMITS, move |_| {
        let (one, _) = (counted.enter(), started.enter());
        async move {
            let _one = one;
            pending::<Result<(), Failure>>().await
        }
    });
    let first: HashSet<_> = [all.next().await, all.next().await]
        .into_iter()
        .map(|event| match event {
            Some(Event::Started(cluster)) => cluster.to_string(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!((first.len(), running.now()), (2, 2));
    assert!(timeout(SECOND, all.next()).await.is_err(), "there is nothing more to tell yet");
    drop(all);
    assert_eq!((running.now(), running.most()), (0, 2));
}

#[tokio::test]
async fn of_no_clusters_nothing_comes() {
    let mut none = each(Vec::new(), Limits::default(), |_| async { Ok::<_, Failure>(()) });
    assert!(none.next().await.is_none());
}
