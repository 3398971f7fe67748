//! A client that leaves during the dial takes the dial with it.

use std::time::Duration;

use kit::member::BlackHole;
use kit::wait::{WAIT, becomes};
use tokio::io::AsyncWriteExt as _;
use tunnel_tests::{Frontend, Testbed, measure};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_connect_lingers_at_the_destination() {
    const DIALS: usize = 10;
    /// Long before the end of a dial's time, which is ten seconds.
    const WITHDRAWN: Duration = Duration::from_secs(5);
    let testbed = Testbed::simple().await;
    for kind in Frontend::ALL {
        let hole = BlackHole::start().await;
        let port = hole.address().port();
        let before = measure::connecting(port);
        let caller = std::sync::Arc::new(testbed.caller(kind));
        let mut dials = tokio::task::JoinSet::new();
        for _ in 0..DIALS {
            let (caller, authority) = (caller.clone(), hole.address().to_string());
            dials.spawn(async move {
                if kind == Frontend::H2 {
                    return drop(caller.open(&authority).await);
                }
                let mut io = caller.connect().await.expect("connected");
                io.write_all(caller.head(&authority).as_bytes()).await.expect("written");
                io.flush().await.expect("written");
                std::future::pending::<()>().await;
            });
        }
        becomes(WAIT, "all dials under way", async || measure::connecting(port) == before + DIALS).await;
        dials.shutdown().await;
        let what = format!("no dial under way any more ({kind:?})");
        // The kernel's table is read in pieces while it changes: once is not enough.
        let mut none = 0;
        becomes(WITHDRAWN, what, async || {
            none = if measure::connecting(port) == before { none + 1 } else { 0 };
            none == 10
        })
        .await;
        testbed.wait_idle().await;
    }
}
