//! No secret of any party gets into the log.

use system_tests::{ADMIN, CLUSTER, Http, MEMBER_TOKEN, proxied};

use super::{Log, POD, member};

#[tokio::test]
async fn no_credential_body_or_command_is_written() {
    let (log, member) = (Log::new(), member().await);
    let testbed = log.of(&member).start().await;
    let mut connection = testbed.connect(Http::H2).await;
    let headers = [
        ("cookie", "session=canary-cookie"),
        ("x-remote-user", "canary-user"),
        ("proxy-authorization", "Basic canary-basic"),
        ("audit-id", "canary id that is none"),
    ];
    for rest in [
        format!("{POD}?token=canary-token&x=1"),
        format!("{POD}?a=1;access_token=canary-semicolon"),
        format!("{POD}?%74OKEN=canary-escaped"),
        format!("{POD}?api-key=canary-dash&to=https://u:canary-url@x/&canary-alone"),
        format!("{POD}/exec?command=mysql&command=-pcanary-command&%63ommand=canary-spelled&stdin=true"),
        format!("{POD}/%65xec?container=canary-container"),
        "/api/v1/nodes/n/proxy/run/ns/p/c?cmd=canary-cmd".to_owned(),
        "/api/v1/namespaces/ns/services/s/proxy/login?user=canary-service".to_owned(),
    ] {
        let answer = connection.call("POST", &proxied(CLUSTER, &rest), &headers, b"canary-body").await;
        assert_eq!(answer.status, 200, "{rest}");
    }
    testbed.stop().await;
    let text = log.text();
    for secret in ["canary", ADMIN, MEMBER_TOKEN, "from the member"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let uris: Vec<_> = log.events().iter().map(|event| event["requestURI"].as_str().unwrap().to_owned()).collect();
    assert_eq!(uris[0], proxied(CLUSTER, &format!("{POD}?token=***&x=1")));
    assert_eq!(uris[4], proxied(CLUSTER, &format!("{POD}/exec?command&command&%63ommand&stdin")));
}
