//! A client that speaks TLS to a front.

use kit::pki::{Authority, ClientAuth, Leaf, Trust, client_config, server_config};
use net::large_reads::LargeReads;
use rustls_pki_types::ServerName;
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::*;

async fn tls() -> (server::TlsStream<LargeReads<TcpStream>>, client::TlsStream<TcpStream>) {
    let authority = Authority::new("front");
    let issued = authority.issue(&Leaf::server("front").san("front"));
    let acceptor = TlsAcceptor::from(server_config(&issued, ClientAuth::None, &[]));
    let connector = TlsConnector::from(client_config(Trust::Authority(&authority), None, &[]));
    let (near, far) = sockets().await;
    let name = ServerName::try_from("front").unwrap();
    let (server, client) = tokio::join!(acceptor.accept(LargeReads::new(far)), connector.connect(name, near));
    (server.unwrap(), client.unwrap())
}

#[tokio::test]
async fn close_notify_is_the_end_of_one_direction() {
    let mut pair = Pair::new().await;
    let Bridged { mut near, mut peer, end, .. } = join(&mut pair, tls().await).await;
    peer.write_all(b"question").await.unwrap();
    peer.get_mut().1.send_close_notify();
    peer.flush().await.unwrap();
    let mut heard = Vec::new();
    near.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"question");
    let answer = vec![7; 1_000_000];
    let answering = async {
        near.write_all(&answer).await.unwrap();
        near.shutdown().await.unwrap();
    };
    heard.clear();
    let ((), read) = tokio::join!(answering, peer.read_to_end(&mut heard));
    read.unwrap();
    assert!(heard == answer);
    end.await.unwrap().unwrap();
}

#[tokio::test]
async fn an_end_without_close_notify_is_a_truncation() {
    let mut pair = Pair::new().await;
    let Bridged { mut near, mut peer, end, .. } = join(&mut pair, tls().await).await;
    peer.write_all(b"half a questi").await.unwrap();
    peer.flush().await.unwrap();
    peer.get_mut().0.shutdown().await.unwrap();
    let mut heard = Vec::new();
    is_reset(near.read_to_end(&mut heard).await);
    assert_eq!(end.await.unwrap().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn a_reset_stream_is_no_close_notify() {
    let mut pair = Pair::new().await;
    let Bridged { near, mut peer, end, .. } = join(&mut pair, tls().await).await;
    drop(near);
    is_reset(peer.read(&mut [0]).await);
    end.await.unwrap().unwrap_err();
}
