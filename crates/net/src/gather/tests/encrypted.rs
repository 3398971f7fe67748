//! Tests over TLS, where records are encrypted as they fill.

use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::*;

/// A frame of the usual size and its head.
const FRAME: usize = 9 + RECORD;

async fn handshaken(room: usize) -> (server::TlsStream<Counted>, client::TlsStream<DuplexStream>) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["gateway".to_owned()]).unwrap().self_signed(&key).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.der().clone()).unwrap();
    let client =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots).with_no_client_auth();
    let server = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let server = server.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let (near, far) = duplex(room);
    let name = ServerName::try_from("gateway").unwrap();
    let (near, far) = tokio::join!(
        TlsAcceptor::from(Arc::new(server)).accept(Counted { stream: near, writes: 0 }),
        TlsConnector::from(Arc::new(client)).connect(name, far),
    );
    (near.unwrap(), far.unwrap())
}

#[tokio::test]
async fn bulk_data_leaves_in_full_records_four_at_a_time() {
    let (near, mut far) = handshaken(1024 * 1024).await;
    let before = near.get_ref().0.writes;
    let sent = numbered(16 * RECORD - 100);
    let (mut gathered, outlet) = gather(near);
    let library = Box::pin({
        let sent = sent.clone();
        async move {
            for frame in sent.chunks(FRAME) {
                let (head, data) = frame.split_at(9);
                let parts = [io::IoSlice::new(head), io::IoSlice::new(data)];
                let written = poll_fn(|cx| Pin::new(&mut gathered).poll_write_vectored(cx, &parts)).await.unwrap();
                gathered.write_all(&frame[written..]).await.unwrap();
            }
            std::future::pending::<()>().await;
        }
    });
    let mut driven = outlet.drive(library);
    assert!(poll_fn(|cx| Poll::Ready(Pin::new(&mut driven).poll(cx).is_pending())).await);
    let mut read = vec![0; sent.len()];
    far.read_exact(&mut read).await.unwrap();
    assert!(read == sent, "another order, or other bytes");
    let gathering = driven.gathering.lock();
    assert_eq!(gathering.stream.get_ref().0.writes - before, 4, "one for each four records");
    assert_eq!((gathering.waiting.capacity(), gathering.held()), (0, 0));
}

#[tokio::test]
async fn a_slow_reader_holds_the_writer_back_and_gets_everything() {
    let (near, far) = handshaken(1000).await;
    let sent = numbered(1024 * 1024);
    let (mut gathered, outlet) = gather(near);
    let expected = sent.clone();
    let library = Box::pin(async move {
        for frame in sent.chunks(FRAME) {
            gathered.write_all(frame).await.unwrap();
            let gathering = gathered.0.lock();
            assert!(gathering.held() <= MOST && gathering.waiting.len() < RECORD);
        }
        gathered.shutdown().await.unwrap();
    });
    arrives(outlet, library, far, &expected).await;
}
