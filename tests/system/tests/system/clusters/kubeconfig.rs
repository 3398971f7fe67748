//! The contexts of a kubeconfig as clusters: usable if their user is, explained if not, followed as
//! the file changes.

use std::path::Path;

use system_tests::prelude::*;

use super::{EFFECTIVE, PATH, is_ok, member};

/// A context, its cluster and its user, all of one name.
fn context(name: &str, member: &FakeMember, user: &Value) -> [Value; 3] {
    let cluster = json!({"server": member.url(), "certificate-authority": ca_file(name)});
    [
        json!({"name": name, "context": {"cluster": name, "user": name}}),
        json!({"name": name, "cluster": cluster}),
        json!({"name": name, "user": user}),
    ]
}

fn ca_file(context: &str) -> String {
    format!("{}.ca", context.replace('/', "-"))
}

/// Writes the kubeconfig, and beside it the CA files it names relative to itself.
fn write(file: &Path, member: &FakeMember, users: &[(&str, Value)]) {
    let contexts: Vec<_> = users.iter().map(|(name, user)| context(name, member, user)).collect();
    for (name, _) in users {
        std::fs::write(file.with_file_name(ca_file(name)), member.ca_pem()).unwrap();
    }
    let part = |index: usize| contexts.iter().map(|parts| parts[index].clone()).collect::<Vec<_>>();
    let kubeconfig = json!({"kind": "Config", "contexts": part(0), "clusters": part(1), "users": part(2)});
    // In one step, as careful tools do it.
    let unfinished = file.with_extension("unfinished");
    std::fs::write(&unfinished, kubeconfig.to_string()).unwrap();
    std::fs::rename(unfinished, file).unwrap();
}

#[tokio::test]
async fn contexts_are_clusters_and_follow_the_file() {
    let authority = Arc::new(Authority::new("clients"));
    let options = MemberOptions { client_authority: Some(Arc::clone(&authority)), ..MemberOptions::default() };
    let member = member(options).await;
    let identity = authority.issue(&Leaf::client("gateway"));
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config");
    let (certificate, key) = (directory.path().join("client.crt"), directory.path().join("client.key"));
    std::fs::write(&certificate, &identity.certificate_pem).unwrap();
    std::fs::write(&key, &identity.key_pem).unwrap();
    let x509 = json!({"client-certificate": certificate, "client-key": key});
    let token = json!({"token": "from-the-kubeconfig"});
    let plugin = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "false"}});
    write(
        &file,
        &member,
        &[("token", token.clone()), ("x509", x509), ("plugin", plugin), ("Not/A/Name", token.clone())],
    );
    let testbed = Testbed::builder().arg(&format!("--clusters-from-kubeconfig={}", file.display())).start().await;

    assert_eq!(testbed.get(&proxied("token", PATH)).await.status, 200);
    assert_eq!(member.next_request().await.header("authorization"), Some("Bearer from-the-kubeconfig"));
    assert_eq!(testbed.get(&proxied("x509", PATH)).await.status, 200);
    let seen = member.next_request().await;
    assert_eq!(seen.peer.as_ref().map(|peer| peer.common_name.as_str()), Some("gateway"));
    assert_eq!(seen.header("authorization"), None);
    let message = testbed.get(&proxied("plugin", PATH)).await.status_message(503, "ServiceUnavailable");
    assert!(message.contains("plugin"), "{message}");

    write(&file, &member, &[("later", token)]);
    testbed.until(EFFECTIVE, &proxied("later", PATH), is_ok).await;
    testbed.until(EFFECTIVE, &proxied("token", PATH), |answer| answer.status == 404).await;
}
