use std::os::unix::fs::PermissionsExt as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hub::client::Address;
use kit::pki::{Authority, Leaf};

use super::*;

fn issued(common_name: &str) -> (Pending, Vec<u8>) {
    let issued = Authority::new("hub").issue(&Leaf::client(common_name));
    (Pending { name: "r".to_owned(), key: issued.key_pem.clone().into() }, issued.chain_pem.into_bytes())
}

fn hub() -> HubWay {
    let address = Address { url: "https://hub:6443".to_owned(), ca: Some(b"CA".to_vec()), ..Address::default() };
    HubWay { address, ..HubWay::default() }
}

#[test]
fn what_was_issued_is_there_after_a_restart_and_for_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(&directory.path().join("state")).unwrap();
    let name = state.agent_name("c1").unwrap();
    assert_eq!(state.agent_name("c1").unwrap(), name);
    let (pending, certificate) = issued(&format!("system:open-cluster-management:c1:{name}"));
    state.remember_request(&pending).unwrap();
    assert_eq!(state.request().unwrap().unwrap().name, "r");
    assert_eq!(state.certificate("c1").unwrap(), None);
    state.take(&pending, &certificate, &hub()).unwrap();
    assert!(state.request().unwrap().is_none());
    let state = StateDirectory::open(&directory.path().join("state")).unwrap();
    assert_eq!(state.certificate("c1").unwrap().unwrap().agent.agent, name);
    assert_eq!(state.certificate("c2").unwrap(), None, "another cluster's");
    for file in [KEY, CERTIFICATE, KUBECONFIG, CLUSTER_NAME, AGENT_NAME] {
        let mode = fs::metadata(state.path(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert_ne!(state.agent_name("c2").unwrap(), name, "another cluster's agent is another");
}

#[test]
fn it_is_moved_whole() {
    let directory = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| StateDirectory::open(&directory.path().join(name)).unwrap());
    let name = one.agent_name("c1").unwrap();
    let (pending, certificate) = issued(&format!("system:open-cluster-management:c1:{name}"));
    other.remember_request(&pending).unwrap();
    one.take(&pending, &certificate, &hub()).unwrap();
    let mut files = one.files().unwrap();
    files.insert("../elsewhere".to_owned(), Vec::new());
    other.replace(&files).unwrap();
    assert_eq!(other.certificate("c1").unwrap(), one.certificate("c1").unwrap());
    assert!(other.request().unwrap().is_none() && other.agent_name("c1").unwrap() == name);
    assert!(!directory.path().join("elsewhere").exists());
}

/// A crash between the two files loses neither the old pair nor the new one.
#[test]
fn half_of_what_was_issued_is_taken_over_the_next_time() {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(directory.path()).unwrap();
    let (old, old_certificate) = issued("system:open-cluster-management:c1:a");
    state.take(&old, &old_certificate, &hub()).unwrap();
    let (new, certificate) = issued("system:open-cluster-management:c1:a");
    state.remember_request(&new).unwrap();
    let public = |pending: &Pending| public_key(&pending.key).unwrap();
    let kept = || state.certificate("c1").unwrap().map(|certificate| certificate.public_key);
    assert_eq!(kept(), Some(public(&old)), "nothing is issued yet");
    // In the order of the writes: the key cannot be written, and the sequence ends there.
    fs::remove_file(state.path(KEY)).unwrap();
    fs::create_dir(state.path(KEY)).unwrap();
    state.take(&new, &certificate, &hub()).unwrap_err();
    fs::remove_dir(state.path(KEY)).unwrap();
    state.write(KEY, old.key.expose_secret().as_bytes()).unwrap();
    assert_eq!(kept(), Some(public(&new)));
    assert!(state.request().unwrap().is_none());
    assert_eq!(kept(), Some(public(&new)), "now by its own key");
    let (other, _) = issued("system:open-cluster-management:c1:a");
    state.write(KEY, other.key.expose_secret().as_bytes()).unwrap();
    assert_eq!(kept(), None, "the key is another's");
}

#[tokio::test]
async fn the_kubeconfig_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(directory.path()).unwrap();
    let ca = Authority::new("hub-ca").root_pem().into_bytes();
    let proxy = "http://jane:hunter2@proxy:3128";
    let address = Address { ca: Some(ca.clone()), proxy_url: Some("http://proxy:3128".to_owned()), ..hub().address };
    state.write_kubeconfig(&HubWay { address, proxy: Some(proxy.into()), ..HubWay::default() }).unwrap();
    let read = HubWay::read(&state.path(KUBECONFIG)).await.unwrap();
    assert_eq!(read.url(), "https://hub:6443");
    assert!(read.address.ca.is_some());
    // A proxy that requires a password lets no connection through without it.
    assert_eq!(read.proxy.as_ref().map(secrecy::ExposeSecret::expose_secret), Some(proxy));
    assert!(!format!("{read:?}").contains("hunter2"));
}

/// The fields that upstream's `IsHubKubeconfigValid` compares.
#[tokio::test]
async fn the_hub_is_worded_as_in_the_bootstrap_kubeconfig() {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(&directory.path().join("state")).unwrap();
    let bootstrap = directory.path().join("bootstrap");
    // As people paste it.
    let ca = format!("# the hub's\r\n{}\n\n", Authority::new("hub-ca").root_pem()).into_bytes();
    let data = STANDARD.encode(&ca);
    let compared = async |server: &str| {
        let document = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [
                {"name": "other", "cluster": {"server": "https://other"}},
                {"name": "prod/1", "cluster": {"server": server, "certificate-authority-data": data,
                    "proxy-url": "http://proxy:3128"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "c", "context": {"cluster": "prod/1", "user": "u"}}],
        });
        fs::write(&bootstrap, document.to_string()).unwrap();
        state.write_kubeconfig(&HubWay::read(&bootstrap).await.unwrap()).unwrap();
        let written: Value = serde_json::from_slice(&fs::read(state.path(KUBECONFIG)).unwrap()).unwrap();
        assert_eq!(written["contexts"][0]["name"], written["current-context"]);
        assert_eq!(written["contexts"][0]["context"]["cluster"], written["clusters"][0]["name"]);
        (written["clusters"][0].clone(), document["clusters"][1].clone())
    };
    for server in ["https://hub:6443", "https://hub:6443/", "https://Hub.example/base/", "https://hub:443"] {
        let (written, meant) = compared(server).await;
        assert_eq!(written, meant);
        // It is still a valid kubeconfig, for the same hub.
        let kept = HubWay::read(&state.path(KUBECONFIG)).await.unwrap();
        assert_eq!(kept, HubWay::read(&bootstrap).await.unwrap());
    }
    let (written, _) = compared("https://jane:hunter2@hub").await;
    assert_eq!(written["cluster"]["server"], "https://hub");
}

#[test]
fn a_directory_of_others_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let new = directory.path().join("a/b");
    StateDirectory::open(&new).unwrap();
    assert_eq!(fs::metadata(&new).unwrap().permissions().mode() & 0o777, 0o700);
    for (mode, is_good) in [(0o755, true), (0o700, true), (0o770, false), (0o777, false), (0o1777, false)] {
        fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
        let opened = StateDirectory::open(&new).map(drop).map_err(|error| error.to_string());
        assert_eq!(opened.is_ok(), is_good, "{mode:o}");
        assert!(is_good || opened.unwrap_err().contains("others may write to it"), "{mode:o}");
    }
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&new, fs::Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&new, Some(4711), None).unwrap();
        assert!(StateDirectory::open(&new).unwrap_err().to_string().contains("belongs to user 4711"));
    }
}
