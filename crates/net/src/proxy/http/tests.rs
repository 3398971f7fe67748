use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, duplex};

use super::*;
use crate::head::Search;

const MEMBER: HostPort<'static> = HostPort { host: "member.example", port: 6443 };

fn jane() -> Credentials {
    Credentials { user: "jane".into(), password: "s3cret".into() }
}

/// The outcome of a `CONNECT` with the response `answer`, in pieces of `piece` bytes, and the
/// request that the proxy received.
async fn asked(answer: &[u8], piece: usize, credentials: Option<&Credentials>) -> (Result<Bytes, Refusal>, String) {
    let (mut ours, mut theirs) = duplex(piece);
    let answer = answer.to_vec();
    let proxy = async move {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(theirs.read_u8().await.unwrap());
        }
        // The client may have stopped reading before the end.
        let _ = theirs.write_all(&answer).await;
        String::from_utf8(request).unwrap()
    };
    let client = async move {
        let early = connect(&mut ours, MEMBER, credentials).await?;
        let mut rest = early.to_vec();
        ours.read_to_end(&mut rest).await?;
        Ok(rest.into())
    };
    tokio::join!(client, proxy)
}

#[tokio::test]
async fn the_request_is_a_connect_with_the_credentials() {
    let (_, request) = asked(b"HTTP/1.1 200 OK\r\n\r\n", 64, Some(&jane())).await;
    assert_eq!(
        request,
        "CONNECT member.example:6443 HTTP/1.1\r\nHost: member.example:6443\r\n\
         Proxy-Authorization: Basic amFuZTpzM2NyZXQ=\r\n\r\n"
    );
    let (_, request) = asked(b"HTTP/1.1 200 OK\r\n\r\n", 64, None).await;
    assert!(!request.contains("Authorization"), "{request}");
}

#[tokio::test]
async fn bytes_after_the_answer_are_the_destinations_however_they_come() {
    for answer in [
        "HTTP/1.1 200 Connection established\r\n\r\n",
        "HTTP/1.0 200 OK\r\nVia: 1.1 squid\r\n\r\n",
        "HTTP/1.1 200\r\n\r\n",
        "HTTP/1.1 204 No Content\nA: b\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ] {
        for piece in [1, 2, 3, 7, 4096] {
            let (early, _) = asked(format!("{answer}\r\n\r\nfirst bytes").as_bytes(), piece, None).await;
            assert_eq!(early.unwrap(), "\r\n\r\nfirst bytes", "{answer:?} in pieces of {piece}");
        }
    }
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let told = async |answer: &str, credentials: Option<&Credentials>| {
        let (whole, _) = asked(answer.as_bytes(), 4096, credentials).await;
        let (split, _) = asked(answer.as_bytes(), 1, credentials).await;
        let (whole, split) = (whole.unwrap_err().to_string(), split.unwrap_err().to_string());
        assert_eq!(whole, split);
        whole
    };
    let status = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nno");
    let required = status("407 Proxy Authentication Required");
    assert!(told(&required, None).await.contains("requires a user and password"));
    assert!(told(&required, Some(&jane())).await.contains("does not accept the user and password"));
    assert_eq!(told(&status("403 Not by our rules"), None).await, "the proxy refused to connect: 403 Not by our rules");
    assert!(told(&status("101 Switching Protocols"), None).await.contains("101"));
    assert!(told(&status("302 Found"), None).await.contains("302"));
    assert!(told("SSH-2.0-OpenSSH_9.6\r\n\r\n", None).await.contains("not HTTP/1.1"));
    assert!(told("HTTP/2 200 OK\r\n\r\n", None).await.contains("not HTTP/1.1"));
    assert!(told("HTTP/1.1 200 OK\r\nbroken", None).await.contains("closed the connection"));
    assert!(told("", None).await.contains("closed the connection"));
}

#[tokio::test]
async fn a_head_without_end_is_given_up() {
    let line = format!("X: {}\r\n", "y".repeat(500));
    for lines in [40, 4000] {
        let (outcome, _) = asked(format!("HTTP/1.1 200 OK\r\n{}", line.repeat(lines)).as_bytes(), 4096, None).await;
        assert!(matches!(outcome, Err(Refusal::TooLarge(MOST_HEAD))), "{outcome:?}");
    }
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(1000);
    assert!(matches!(asked(interim.as_bytes(), 4096, None).await.0, Err(Refusal::TooLarge(_))));
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(MOST_LINES + 1));
    assert!(asked(many.as_bytes(), 4096, None).await.0.unwrap_err().to_string().contains("too many"));
}

#[tokio::test]
async fn credentials_that_a_proxy_repeats_are_not_told() {
    for echoed in ["s3cret", "Basic amFuZTpzM2NyZXQ="] {
        let answer = format!("HTTP/1.1 400 what is {echoed}?\r\n\r\n");
        let text = asked(answer.as_bytes(), 4096, Some(&jane())).await.0.unwrap_err().to_string();
        assert_eq!(text, "the proxy refused to connect: 400 ");
    }
}

/// The first head in `received`, if it is complete.
fn take_head(received: &mut BytesMut, search: &mut Search) -> Result<Option<Answer>, Refusal> {
    search.take(received).map(|head| parse(&head)).transpose()
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_are_read_alike(
        head in "(HTTP/1\\.[01] [1-5][0-9]{2}[ -~]{0,8}(\r?\n)([A-C]: [ -~]{0,5}(\r?\n)){0,3}(\r?\n)?|[ -~\r\n]{0,60})",
        rest in proptest::collection::vec(any::<u8>(), 0..8),
        pieces in proptest::collection::vec(1_usize..9, 1..80),
    ) {
        let bytes = [head.as_bytes(), &rest].concat();
        let (mut whole, mut searched) = (BytesMut::from(&bytes[..]), Search::default());
        let at_once = take_head(&mut whole, &mut searched).map_err(|error| error.to_string());
        let (mut received, mut searched, mut given) = (BytesMut::new(), Search::default(), 0);
        let mut in_pieces = Ok(None);
        for piece in pieces.iter().cycle() {
            let next = (given + piece).min(bytes.len());
            received.extend_from_slice(&bytes[given..next]);
            given = next;
            in_pieces = take_head(&mut received, &mut searched).map_err(|error| error.to_string());
            if given == bytes.len() || in_pieces != Ok(None) {
                break;
            }
        }
        received.extend_from_slice(&bytes[given..]);
        prop_assert_eq!(at_once, in_pieces);
        prop_assert_eq!(whole, received);
    }
}
