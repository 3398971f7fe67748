//! A link whose server asked to link elsewhere: it goes when there is another one, or after a while
//! if there is nowhere to go.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::super::Connector;
use super::live::Live;

/// The server uses the link no more: what is waited for is only that the cluster is never without
/// one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Sees `live` off.
pub(super) fn spawn(connector: &Arc<Connector>, live: Live) {
    let connector = Arc::clone(connector);
    let (server, serving, ended) = (Arc::clone(&live.server), live.serving.clone(), live.ended.clone());
    // From now on it counts as a link no more.
    drop(live);
    let since = connector.links.mark();
    tokio::spawn(async move {
        let mut changed = connector.links.changed();
        let another = async { while !connector.links.has_other(&server, since) && changed.changed().await.is_ok() {} };
        tokio::select! {
            _ = timeout(PATIENCE, another) => {}
            () = ended.cancelled() => {}
            () = connector.drain.soft() => {}
        }
        serving.drain();
    });
}
