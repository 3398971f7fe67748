//! A client certificate that a program issued is presented on connections of its own, which end
//! when it is replaced.

use kit::pki::Issued;
use system_tests::prelude::*;

use super::{PATH, Plugin, V1, assert_runs_now_and_then, member};

/// A member that wants a certificate, and the authority that issues such.
async fn strict(http: Http) -> (FakeMember, Arc<Authority>) {
    let authority = Arc::new(Authority::new("member-client-ca"));
    let options = MemberOptions {
        client_authority: Some(authority.clone()),
        require_client_certificate: true,
        ..http.member_options()
    };
    (member(options).await, authority)
}

/// Issues the content of its directory, for a few seconds.
fn from_file() -> Plugin {
    let end = "$(date -u -d @$(($(date +%s) + 2)) +%Y-%m-%dT%H:%M:%SZ)";
    Plugin::new(&format!("sed \"s/@EXPIRY@/{end}/\" $DIR/credential"))
}

/// Issues, without an end, the content of its directory: at first a certificate of another
/// authority.
fn of_a_stranger() -> Plugin {
    let plugin = Plugin::new("cat $DIR/credential");
    lay_for_good(&plugin, &Authority::new("somebody-else").issue(&Leaf::client("stranger")));
    plugin
}

fn lay_for_good(plugin: &Plugin, identity: &Issued) {
    let status = json!({"clientCertificateData": identity.chain_pem, "clientKeyData": identity.key_pem});
    write(plugin, &json!({"apiVersion": V1, "status": status}).to_string());
}

fn lay(plugin: &Plugin, identity: &Issued, token: Option<&str>) {
    let status = json!({
        "clientCertificateData": identity.chain_pem,
        "clientKeyData": identity.key_pem,
        "token": token,
        "expirationTimestamp": "@EXPIRY@",
    });
    let credential = json!({"apiVersion": V1, "kind": "ExecCredential", "status": status}).to_string();
    write(plugin, &credential);
}

/// In one step: the program may be reading.
fn write(plugin: &Plugin, credential: &str) {
    let next = plugin.directory().join("next");
    std::fs::write(&next, credential).expect("the directory is writable");
    std::fs::rename(next, plugin.directory().join("credential")).expect("the directory is writable");
}

fn latest(member: &FakeMember) -> String {
    let request = member.requests().pop().expect("a request was made");
    request.peer.expect("the member requires a certificate").common_name
}

across_http!(a_certificate_is_presented_and_replaced);

async fn a_certificate_is_presented_and_replaced(http: Http) {
    let (member, authority) = strict(http).await;
    let plugin = from_file();
    lay(&plugin, &authority.issue(&Leaf::client("first")), None);
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    let target = proxied(CLUSTER, PATH);
    assert_eq!(testbed.get(&target).await.status, 200);
    let request = member.next_request().await;
    assert_eq!(request.peer.as_ref().expect("a certificate").common_name, "first");
    assert_eq!(request.header("authorization"), None);

    // The same again needs no new connection.
    testbed.until(WAIT, &target, |answer| answer.status == 200 && plugin.runs() >= 3).await;
    assert_eq!(member.connections_accepted(), 1);

    lay(&plugin, &authority.issue(&Leaf::client("second")), None);
    testbed
        .until(WAIT, &target, |answer| {
            assert_eq!(answer.status, 200, "{}", answer.text());
            latest(&member) == "second"
        })
        .await;
    assert_eq!(member.connections_accepted(), 2);
    eventually(WAIT, || member.connections_open() == 1).await;
}

#[tokio::test]
async fn what_is_no_concern_of_the_certificate_ends_none_of_its_connections() {
    let (member, authority) = strict(Http::H2).await;
    let plugin = from_file();
    lay(&plugin, &authority.issue(&Leaf::client("steady")), None);
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
    testbed.register(CLUSTER, plugin.secret(CLUSTER, &member).label("changed", "yes"));
    // Manifests are read in one go: when this one is known, so is the label.
    let other = super::member(Http::H2.member_options()).await;
    testbed.register("late", cluster("late", &other));
    testbed.until(WAIT, &proxied("late", PATH), |answer| answer.status == 200).await;
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
    assert_eq!(member.connections_accepted(), 1);
}

#[tokio::test]
async fn a_token_beside_a_certificate_is_sent_too() {
    let (member, authority) = strict(Http::H2).await;
    let plugin = from_file();
    lay(&plugin, &authority.issue(&Leaf::client("both")), Some("and-a-token"));
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    assert_eq!(testbed.get(&proxied(CLUSTER, PATH)).await.status, 200);
    let request = member.next_request().await;
    assert_eq!(request.header("authorization"), Some("Bearer and-a-token"));
    assert_eq!(request.peer.expect("a certificate").common_name, "both");
}

across_http!(a_certificate_that_the_member_does_not_know_is_replaced);

async fn a_certificate_that_the_member_does_not_know_is_replaced(http: Http) {
    let (member, authority) = strict(http).await;
    let plugin = of_a_stranger();
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    let target = proxied(CLUSTER, PATH);
    let started = Instant::now();
    let answer = testbed.get(&target).await;
    assert!(matches!(answer.status, 502 | 503), "{}", answer.text());
    plugin.running(2).await;

    lay_for_good(&plugin, &authority.issue(&Leaf::client("friend")));
    testbed.until(WAIT, &target, |answer| answer.status == 200).await;
    assert_eq!(latest(&member), "friend");
    assert_runs_now_and_then(&plugin, started);
}

#[tokio::test]
async fn a_certificate_that_the_member_does_not_know_is_replaced_by_upgrades_too() {
    let (member, authority) = strict(Http::H1).await;
    let plugin = of_a_stranger();
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    let authorization = format!("Bearer {ADMIN}");
    let exec = async || {
        let mut connection = testbed.client().h1().await.expect("the gateway accepts connections");
        let (target, headers) = (proxied(CLUSTER, PATH), [("Authorization", authorization.as_str())]);
        let head = connection.upgrade("GET", &target, "websocket", &headers).await.expect("an answer");
        assert!(matches!(head.status, 502 | 503), "the member upgrades nothing: {head:?}");
        connection.body().await.expect("a whole body")
    };
    let told = exec().await;
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("received fatal alert"), "{told}");
    plugin.running(2).await;

    lay_for_good(&plugin, &authority.issue(&Leaf::client("friend")));
    within(WAIT, "the new certificate", async {
        while member.request_count() == 0 {
            exec().await;
        }
    })
    .await;
    assert_eq!(latest(&member), "friend");
}

#[tokio::test]
async fn a_certificate_that_cannot_be_used_is_no_credential() {
    let (member, authority) = strict(Http::H2).await;
    let plugin = from_file();
    let mut identity = authority.issue(&Leaf::client("one"));
    identity.key_pem = authority.issue(&Leaf::client("other")).key_pem;
    lay(&plugin, &identity, None);
    let testbed = Testbed::builder().cluster(CLUSTER, plugin.secret(CLUSTER, &member)).start().await;
    let message = testbed.get(&proxied(CLUSTER, PATH)).await.status_message(503, "ServiceUnavailable");
    assert!(message.contains("exec plugin returned an unusable client certificate"), "{message}");
    assert_eq!(member.connections_accepted(), 0);
}
