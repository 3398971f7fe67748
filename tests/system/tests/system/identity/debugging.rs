//! On one's own machine: everything for everybody, said loudly, and nowhere else.

use kit::hub::{Call, Resource};
use system_tests::{Http, across_http};

use super::{Stage, target};

across_http!(debug_mode_asks_nobody_for_permission);

async fn debug_mode_asks_nobody_for_permission(http: Http) {
    let stage = Stage::with(http, &["--standalone-debug-mode=true"]).await;
    let mut connection = stage.connect(http, None).await;
    assert_eq!(connection.call("DELETE", &target(), &[], b"").await.status, 200);
    let headers = [("Impersonate-User", "root"), ("Impersonate-Group", "system:masters")];
    assert_eq!(connection.call("GET", &target(), &headers, b"").await.status, 200);
    assert_eq!(stage.hub.calls(Call::AccessReview), 0);
}

#[tokio::test]
async fn the_hub_hears_the_name_it_was_told() {
    let stage = Stage::with(Http::H2, &["--user-agent=blue-gateway/7"]).await;
    assert!(stage.hub.calls(Call::List(Resource::Secrets)) > 0);
    let agents = stage.hub.user_agents();
    assert!(!agents.is_empty() && agents.iter().all(|agent| agent == "blue-gateway/7"), "{agents:?}");
    let stage = Stage::set().await;
    let program = format!("cluster-gateway/{}", env!("CARGO_PKG_VERSION"));
    assert!(stage.hub.user_agents().iter().all(|agent| *agent == program), "{:?}", stage.hub.user_agents());
}
