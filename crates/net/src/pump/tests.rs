use kit::io::Faulty;
use kit::wait::{WAIT, within};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

/// Two pairs of pipes with a pump between their inner ends. Returns the outer ends.
fn piped(
    capacity: usize,
) -> (tokio::io::DuplexStream, tokio::io::DuplexStream, tokio::task::JoinHandle<(io::Result<()>, Moved)>) {
    let (client, mut a) = duplex(capacity);
    let (server, mut b) = duplex(capacity);
    let task = tokio::spawn(async move {
        let mut moved = Moved::default();
        let outcome = pump(&mut a, &mut b, &mut moved).await;
        (outcome, moved)
    });
    (client, server, task)
}

#[tokio::test]
async fn a_megabyte_each_way_at_once_arrives_whole_through_tiny_pipes() {
    let (client, server, task) = piped(7);
    let payload: Vec<u8> = (0..1_000_000_u32).map(|index| index.to_le_bytes()[1]).collect();
    let (mut client_read, mut client_write) = tokio::io::split(client);
    let (mut server_read, mut server_write) = tokio::io::split(server);
    let mut got_by_server = vec![0; payload.len()];
    let mut got_by_client = vec![0; payload.len()];
    let (up, down, at_server, at_client) = tokio::join!(
        client_write.write_all(&payload),
        server_write.write_all(&payload),
        server_read.read_exact(&mut got_by_server),
        client_read.read_exact(&mut got_by_client),
    );
    up.unwrap();
    down.unwrap();
    at_server.unwrap();
    at_client.unwrap();
    assert!(got_by_server == payload && got_by_client == payload);
    drop((client_read, client_write));
    let (outcome, moved) = task.await.unwrap();
    outcome.unwrap();
    assert_eq!(moved, Moved { a_to_b: 1_000_000, b_to_a: 1_000_000 });
}

#[tokio::test]
async fn the_tail_written_just_before_the_end_is_delivered_and_both_sides_close() {
    let (mut client, mut server, task) = piped(64);
    server.write_all(b"exit status 3").await.unwrap();
    server.shutdown().await.unwrap();
    let mut tail = Vec::new();
    client.read_to_end(&mut tail).await.unwrap();
    assert_eq!(tail, b"exit status 3");
    let mut rest = Vec::new();
    server.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "the other side is closed too");
    task.await.unwrap().0.unwrap();
}

#[tokio::test]
async fn bytes_do_not_wait_in_a_buffering_writer() {
    let (mut client, mut a) = duplex(64);
    let (mut server, b) = duplex(64);
    let mut b = tokio::io::BufStream::new(b);
    let task = tokio::spawn(async move { pump(&mut a, &mut b, &mut Moved::default()).await });
    client.write_all(b"ping").await.unwrap();
    let mut got = [0; 4];
    server.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, b"ping");
    drop(client);
    task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_side_that_never_stops_sending_gets_the_answer() {
    let (client, a) = duplex(1024);
    let (server, mut b) = duplex(1024);
    // Byte by byte, there is always more than one turn of the task can move.
    let mut a = Faulty::new(a).chunks(1);
    let (mut answers, mut requests) = tokio::io::split(client);
    let (mut taken, mut answer) = tokio::io::split(server);
    requests.write_all(&[0; 1024]).await.unwrap();
    answer.write_all(b"pong").await.unwrap();
    tokio::spawn(async move { pump(&mut a, &mut b, &mut Moved::default()).await });
    tokio::spawn(async move { while requests.write_all(&[0; 1024]).await.is_ok() {} });
    tokio::spawn(async move { tokio::io::copy(&mut taken, &mut tokio::io::sink()).await });
    within(WAIT, "the answer", answers.read_exact(&mut [0; 4])).await.unwrap();
}
