//! On the user's own machine: everything for every caller, with a loud warning, and nowhere else.

use kit::hub::{Call, Resource};
use system_tests::{Http, across_http};

use super::{Fixture, target};

across_http!(debug_mode_asks_nobody_for_permission);

async fn debug_mode_asks_nobody_for_permission(http: Http) {
    let fixture = Fixture::with(http, &["--standalone-debug-mode=true"]).await;
    let mut connection = fixture.connect(http, None).await;
    assert_eq!(connection.call("DELETE", &target(), &[], b"").await.status, 200);
    let headers = [("Impersonate-User", "root"), ("Impersonate-Group", "system:masters")];
    assert_eq!(connection.call("GET", &target(), &headers, b"").await.status, 200);
    assert_eq!(fixture.hub.calls(Call::AccessReview), 0);
}

#[tokio::test]
async fn the_hub_hears_the_name_it_was_told() {
    let fixture = Fixture::with(Http::H2, &["--user-agent=blue-gateway/7"]).await;
    assert!(fixture.hub.calls(Call::Watch(Resource::Secrets)) > 0);
    let agents = fixture.hub.user_agents();
    assert!(!agents.is_empty() && agents.iter().all(|agent| agent == "blue-gateway/7"), "{agents:?}");
    let fixture = Fixture::set().await;
    let program = format!("cluster-gateway/{}", env!("CARGO_PKG_VERSION"));
    assert!(fixture.hub.user_agents().iter().all(|agent| *agent == program), "{:?}", fixture.hub.user_agents());
}
