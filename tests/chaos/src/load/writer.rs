//! Creates objects, most with a name of its own, and repeats some requests that may have been done.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{AGAIN, Route, Shared, document};
use crate::caller::Failure;
use crate::conclusion::Conclusion;
use crate::dice::Dice;
use crate::ledger::Entry;

/// Objects that each creates at once when the weather changes, so that many requests are in flight
/// when a process goes.
const BURST: usize = 8;
/// Requests for one object.
const TRIES: usize = 3;

/// One of several writers of `route`, by its `number`. `pace`: the pause between two objects.
pub(super) async fn run(shared: &Arc<Shared>, route: &Route, number: usize, pace: Duration) {
    let mut dice = shared.dice.apart(&format!("{} {number}", route.name));
    let (mut failures, mut many) = (0, 1);
    let mut weather = shared.report.weather.changes();
    while !shared.is_over() {
        let mut objects = JoinSet::new();
        for _ in 0..many {
            let (shared, route, mut dice) = (Arc::clone(shared), route.clone(), Dice::new(dice.next()));
            objects.spawn(async move { object(&shared, &route, &mut dice).await });
        }
        let all_well = objects.join_all().await.into_iter().all(|is_there| is_there);
        failures = if all_well { 0 } else { failures + 1 };
        let pause = if all_well { pace } else { AGAIN.wait(failures) };
        many = if timeout(pause, weather.changed()).await.is_ok() { BURST } else { 1 };
    }
}

/// Sends requests for one object until it is known to be there or not, or until that no longer
/// matters. Returns whether it is there.
async fn object(shared: &Shared, route: &Route, dice: &mut Dice) -> bool {
    let id = shared.id();
    // A repetition of one that the member names makes two of it.
    let name = (!dice.once_in(3)).then(|| format!("w-{id}"));
    let by = format!("a writer of {}", route.name);
    let mut entry = Entry { id, name, by, told: Vec::new(), weather: Vec::new() };
    let is_there = loop {
        let told = ask(shared, route, &entry).await;
        let again = matches!(told, Conclusion::Unknown(_)) && entry.name.is_some() && dice.once_in(2);
        let is_there = matches!(told, Conclusion::Created(_) | Conclusion::Exists);
        entry.told.push(told);
        entry.weather.push(shared.report.weather.now().what);
        if !again || entry.told.len() == TRIES {
            break is_there;
        }
        shared.report.counts.retries.add();
        sleep(AGAIN.wait(1)).await;
    };
    shared.entries.lock().push(entry);
    is_there
}

async fn ask(shared: &Shared, route: &Route, entry: &Entry) -> Conclusion {
    let body = Bytes::from(document(entry).to_string());
    let counts = &shared.report.counts;
    counts.written.add();
    let told = match route.caller.whole(Method::POST, &route.path("configmaps"), body).await {
        Ok(answer) => Conclusion::by(&answer),
        Err(Failure::NotSent(why)) => Conclusion::NotDone(why),
        Err(Failure::Broken(why)) => Conclusion::Unknown(why),
    };
    match &told {
        Conclusion::Created(_) => counts.created.add(),
        Conclusion::Exists => counts.existed.add(),
        Conclusion::NotDone(_) => counts.not_done.add(),
        Conclusion::Unknown(_) | Conclusion::Untrue(_) => counts.unknown.add(),
    }
    told
}
