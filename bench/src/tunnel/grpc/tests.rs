use tokio::io::DuplexStream;

use super::*;

/// A server's end, and a caller that has been answered connection 3 with `more` right behind it.
async fn opened(more: &[u8]) -> (DuplexStream, Grpc<DuplexStream>) {
    let (near, mut far) = tokio::io::duplex(4 * PIECE);
    let answer = b"\0\0\0\0\x08\x08\x01\x1a\x04\x10\x03\x18\x01";
    far.write_all(&[answer, more].concat()).await.unwrap();
    let mut grpc = Grpc::new(near);
    grpc.dialled().await.unwrap();
    (far, grpc)
}

#[tokio::test]
async fn data_right_behind_the_answer_is_read() {
    let data = Packet::data(3, b"hello").framed().unwrap();
    let (_far, mut grpc) = opened(&data).await;
    let mut heard = [0; 5];
    grpc.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"hello");
}

#[tokio::test]
async fn what_is_written_comes_in_packets_of_the_connection() {
    let (mut far, mut grpc) = opened(b"").await;
    let long = vec![1; PIECE + 1];
    grpc.write_all(&long).await.unwrap();
    grpc.flush().await.unwrap();
    drop(grpc);
    let mut sent = Vec::new();
    far.read_to_end(&mut sent).await.unwrap();
    let mut sent = BytesMut::from(&sent[..]);
    assert_eq!(Packet::unframe(&mut sent).unwrap().unwrap(), Packet::data(3, &long[..PIECE]));
    assert_eq!(Packet::unframe(&mut sent).unwrap().unwrap(), Packet::data(3, &long[PIECE..]));
    assert!(sent.is_empty());
}

#[tokio::test]
async fn closing_waits_for_the_answer() {
    let (mut far, grpc) = opened(b"").await;
    let mut close = std::pin::pin!(grpc.close());
    assert!(futures_pending(close.as_mut()));
    far.write_all(b"\0\0\0\0\x06\x08\x03\x32\x02\x10\x03").await.unwrap();
    close.await.unwrap();
}

fn futures_pending(future: Pin<&mut impl Future>) -> bool {
    future.poll(&mut Context::from_waker(std::task::Waker::noop())).is_pending()
}

#[tokio::test]
async fn a_refused_dial_is_an_error() {
    let (near, mut far) = tokio::io::duplex(PIECE);
    far.write_all(b"\0\0\0\0\x07\x08\x01\x1a\x03\x0a\x01x").await.unwrap();
    let error = Grpc::new(near).dialled().await.unwrap_err();
    assert!(error.to_string().contains("error: \"x\""), "{error}");
}
