//! Each fault comes exactly when it was asked for, and no byte is lost before it.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::*;

const TEXT: &[u8] = b"the quick brown fox";

#[tokio::test]
async fn one_byte_at_a_time_with_spurious_pending_loses_nothing() {
    let (near, mut far) = duplex(64);
    let mut near = Faulty::new(near).chunks(1).spurious_pending().without_vectored_writes();
    assert!(!near.is_write_vectored());
    assert_eq!(near.write(TEXT).await.expect("written"), 1);
    near.write_all(&TEXT[1..]).await.expect("written");
    let mut received = vec![0; TEXT.len()];
    far.read_exact(&mut received).await.expect("read");
    assert_eq!(received, TEXT);

    far.write_all(TEXT).await.expect("written");
    let mut buffer = [0; 8];
    assert_eq!(near.read(&mut buffer).await.expect("read"), 1);
    drop(far);
    let mut rest = Vec::new();
    near.read_to_end(&mut rest).await.expect("read");
    assert_eq!((buffer[0], &rest[..]), (TEXT[0], &TEXT[1..]));
    assert_eq!((near.bytes_read(), near.bytes_written()), (19, 19));
}

#[tokio::test]
async fn errors_come_after_the_exact_number_of_bytes() {
    let (near, mut far) = duplex(64);
    let mut near = Faulty::new(near)
        .fail_writes_after(4, io::ErrorKind::BrokenPipe)
        .fail_reads_after(3, io::ErrorKind::ConnectionReset);
    let error = near.write_all(TEXT).await.expect_err("cut");
    assert_eq!((error.kind(), near.bytes_written()), (io::ErrorKind::BrokenPipe, 4));
    far.write_all(TEXT).await.expect("written");
    let mut received = Vec::new();
    let error = near.read_to_end(&mut received).await.expect_err("cut");
    assert_eq!((error.kind(), &received[..]), (io::ErrorKind::ConnectionReset, &TEXT[..3]));
}

#[tokio::test]
async fn an_early_end_hides_the_rest() {
    let (near, mut far) = duplex(64);
    far.write_all(TEXT).await.expect("written");
    let mut received = Vec::new();
    Faulty::new(near).close_reads_after(9).read_to_end(&mut received).await.expect("a clean end");
    assert_eq!(received, &TEXT[..9]);
}

#[tokio::test]
async fn a_denied_vectored_write_writes_the_first_slice() {
    let (near, _far) = duplex(64);
    let slices = [IoSlice::new(b""), IoSlice::new(b"ab"), IoSlice::new(b"cd")];
    assert_eq!(Faulty::new(near).without_vectored_writes().write_vectored(&slices).await.expect("written"), 2);
}
