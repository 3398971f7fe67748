//! A leader with a task that does not run.

use tokio::sync::oneshot;
use tokio::time::advance;

use super::*;

/// As under a debugger, or when the work blocks its thread.
#[tokio::test(start_paused = true)]
async fn leadership_ends_by_the_clock_when_nobody_renews() {
    let hub = Hub::new();
    let election = election(&hub, "first", "first");
    let (tell, told) = oneshot::channel();
    let mut tell = Some(tell);
    let (open, ended) = oneshot::channel::<()>();
    let mut open = Some(open);
    let mut run = Box::pin(election.run(std::future::pending(), |leading| {
        let open = open.take();
        let _ = tell.take().map(|tell| tell.send(leading)); // the test heard of the first
        async move {
            let _open = open;
            std::future::pending::<()>().await;
        }
    }));
    let leading = tokio::select! {
        leading = told => leading.expect("a leader"),
        _ = &mut run => panic!("nobody stopped it"),
    };
    let sent = written(&hub);
    advance((sent + TERM).duration_since(Instant::now() + GRAIN)).await;
    assert!(leading.is_held());
    assert!(leading.remaining() <= GRAIN);
    advance(2 * GRAIN).await;
    assert!(!leading.is_held());
    // The task resumes and finds its term over, although a renewal would still be in time.
    let dropped = tokio::select! {
        dropped = ended => dropped,
        _ = &mut run => panic!("nobody stopped it"),
    };
    assert!(dropped.is_err() && !leading.is_held());
    // A later term has another value.
    assert!(timeout(30 * SECOND, run).await.is_err());
    assert!(!leading.is_held());
}
