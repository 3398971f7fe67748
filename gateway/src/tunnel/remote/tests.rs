use super::super::replica::tests::linked;
use super::*;

/// Knows these servers, as if a name had led to them.
fn remote(replicas: [&Arc<Replica>; 2]) -> Remote {
    let directory = tempfile::tempdir().unwrap();
    let ca = kit::pki::Authority::new("tunnel-server-ca").write_to(directory.path(), "ca").unwrap();
    let config = RemoteConfig { hosts: Vec::new(), files: ClientFiles { ca: Some(ca), identity: None } };
    let remote = Remote::new(&config, &Settings::default(), Duration::from_secs(5), Gauge::default()).unwrap();
    remote.replicas.lock().extend(replicas.map(|replica| (replica.address(), Arc::clone(replica))));
    remote
}

#[tokio::test]
async fn a_server_without_its_name_is_asked_until_it_accepts_nothing() {
    let address = |last| SocketAddr::from(([192, 0, 2, last], 8090));
    let (stays, _open) = linked(address(1)).await;
    let (ends, serving) = linked(address(2)).await;
    let remote = remote([&stays, &ends]);
    let known = [Arc::clone(&stays)];
    let asked = || remote.ending(&known).iter().map(|replica| replica.address()).collect::<Vec<_>>();
    assert_eq!(asked(), [address(2)]);
    serving.drain();
    kit::wait::becomes(Duration::from_secs(5), "its link to leave", async || !ends.accepts_streams()).await;
    assert!(asked().is_empty());
    assert_eq!(remote.replicas.lock().keys().copied().collect::<Vec<_>>(), [address(1)], "it is forgotten");
}
