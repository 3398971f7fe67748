//! Caches that clients build of the gateway's resources equal the Secrets behind them: client-go's
//! informer and kube-rs' watcher, while Secrets change, and after a watch whose resource version
//! has expired.

mod churn;
mod crew;
mod expired;

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use self::churn::Churn;
use self::crew::Crew;
use crate::fixture::{Fixture, test};
use crate::viewer;

/// Time for the last change to reach every cache, and for a cache to be filled at first.
const LIMIT: Duration = Duration::from_secs(20);
/// How often the caches are compared on the way, and the number of changes between two comparisons,
/// which leaves Secrets in all states.
const STOPS: usize = 6;
const CHANGES: usize = 34;

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "informers::every cache equals the Secrets after 200 changes", churned),
        test(fixture, "informers::a watch that expired is begun again with nothing lost", expired::expired),
    ]
}

fn churned(testbed: &Testbed) -> Result<()> {
    let mut churn = Churn::new(&testbed.hub.server.kubectl().kubeconfig, "churn")?;
    churn.change(CHANGES)?; // so that there is something in the beginning
    let mut crew = Crew::default();
    for route in Route::PROXIED {
        crew.join(testbed, route.name(), &viewer::kubeconfig(testbed, route)?)?;
    }
    crew.equal(&churn, LIMIT)?;
    for _ in 0..STOPS {
        churn.change(CHANGES)?;
        crew.equal(&churn, LIMIT)?;
    }
    for (name, report) in crew.reports()? {
        // A single stream from beginning to end: no cache started over.
        let undisturbed = (report.streams, report.lists, report.watches, report.expired, report.failures);
        ensure!(undisturbed == (1, 0, 0, 0, 0), "{name}: {report:?}");
        ensure!(report.bookmarks > 0 && report.updated > 0 && report.deleted > 0, "{name}: {report:?}");
    }
    for (name, follower) in crew.followers() {
        let events = (follower.starts(), follower.expired(), follower.failures());
        ensure!(events == (1, 0, 0), "{name}: starts, expirations, failures: {events:?}");
    }
    churn.clean();
    Ok(())
}
