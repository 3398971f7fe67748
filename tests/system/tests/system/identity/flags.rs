//! A front proxy that is configured by flags, with header names of its own.

use system_tests::prelude::*;

use super::target;

/// Name of the proxy in these tests.
const NAME: &str = "my-proxy";

/// A gateway without a hub behind a proxy that names its callers by `X-User` and `X-Groups`.
struct Fixture {
    member: FakeMember,
    proxies: Authority,
    testbed: Testbed,
}

// === impl Fixture ===

impl Fixture {
    async fn set() -> Self {
        let member = FakeMember::start(MemberOptions::default()).await;
        member.on_any(|_| Reply::full(200, &[], ""));
        let (proxies, directory) = (Authority::new("proxies"), tempfile::tempdir().unwrap());
        let file = proxies.write_to(directory.path(), "proxies").unwrap();
        let testbed = Testbed::builder()
            .cluster(CLUSTER, cluster(CLUSTER, &member))
            .arg(&format!("--requestheader-client-ca-file={}", file.display()))
            .arg(&format!("--requestheader-allowed-names=other,{NAME}"))
            .arg("--requestheader-username-headers=X-User")
            .arg("--requestheader-group-headers=X-Groups")
            .arg("--requestheader-extra-headers-prefix=X-More-")
            .start()
            .await;
        Self { member, proxies, testbed }
    }

    async fn connect(&self, http: Http, name: &str) -> Connection {
        let client = self.testbed.client_with(&self.proxies.issue(&Leaf::client(name)));
        http.connect(&client).await.expect("the gateway accepts connections")
    }
}

across_http!(its_own_headers_name_the_user_and_stay_here);

async fn its_own_headers_name_the_user_and_stay_here(http: Http) {
    let fixture = Fixture::set().await;
    let mut connection = fixture.connect(http, NAME).await;
    let headers =
        [("X-User", "alice"), ("X-Groups", "system:masters"), ("X-More-Scopes", "all"), ("X-Remote-User", "root")];
    assert_eq!(connection.call("DELETE", &target(), &headers, b"").await.status, 200);
    let request = fixture.member.next_request().await;
    for (name, _) in headers {
        assert_eq!(request.header(name), None, "{name} must not cross");
    }
    // The usual names mean nothing where others are configured.
    let headers = [("X-User", "bob"), ("X-Remote-User", "viewer"), ("X-Remote-Group", "system:masters")];
    let message = connection.call("GET", &target(), &headers, b"").await.status_message(403, "Forbidden");
    assert!(message.contains("User \"bob\""), "{message}");
}

across_http!(its_headers_from_anybody_else_say_nothing);

async fn its_headers_from_anybody_else_say_nothing(http: Http) {
    let fixture = Fixture::set().await;
    let forged = [("X-User", "admin"), ("X-Groups", "system:masters"), ("X-More-Scopes", "all")];
    let mut connection = fixture.testbed.anonymous(http).await;
    let message = connection.call("GET", &target(), &forged, b"").await.status_message(403, "Forbidden");
    assert!(message.contains("User \"system:anonymous\""), "{message}");
    let mut connection = fixture.connect(http, "my-proxies").await;
    connection.call("GET", &target(), &forged, b"").await.status_message(401, "Unauthorized");
    assert_eq!(fixture.member.request_count(), 0);

    let mut connection = fixture.testbed.connect(http).await;
    assert_eq!(connection.call("GET", &target(), &forged, b"").await.status, 200);
    let request = fixture.member.next_request().await;
    for (name, _) in forged {
        assert_eq!(request.header(name), None, "{name} must not cross");
    }
}
