use tokio::io::duplex;

use super::*;

const NAMED: HostPort<'static> = HostPort { host: "member.example", port: 6443 };

fn jane() -> Credentials {
    Credentials { user: "jane".into(), password: "s3cret".into() }
}

/// The outcome with a proxy that expects and responds in turn, with one byte at a time on the wire,
/// and the bytes that followed.
async fn dialogue(
    script: &[(&[u8], &[u8])],
    destination: HostPort<'_>,
    credentials: Option<&Credentials>,
) -> Result<Vec<u8>, Refusal> {
    let (mut ours, mut theirs) = duplex(1);
    let proxy = async move {
        for (expected, answer) in script {
            let mut got = vec![0; expected.len()];
            theirs.read_exact(&mut got).await.unwrap();
            assert_eq!(got, *expected);
            let _ = theirs.write_all(answer).await;
        }
    };
    let client = async move {
        connect(&mut ours, destination, credentials).await?;
        let mut rest = Vec::new();
        ours.read_to_end(&mut rest).await?;
        Ok(rest)
    };
    tokio::join!(client, proxy).0
}

const BY_NAME: &[u8] = b"\x05\x01\x00\x03\x0emember.example\x19\x2b";
const GRANTED: &[u8] = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00";

#[tokio::test]
async fn names_and_addresses_are_asked_for_as_such() {
    let anonymous: (&[u8], &[u8]) = (b"\x05\x01\x00", b"\x05\x00");
    let asks = async |host, request: &[u8]| {
        dialogue(&[anonymous, (request, GRANTED)], HostPort { host, port: 6443 }, None).await.unwrap();
    };
    asks("member.example", BY_NAME).await;
    asks("10.1.2.3", b"\x05\x01\x00\x01\x0a\x01\x02\x03\x19\x2b").await;
    asks("fd00::1", b"\x05\x01\x00\x04\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x19\x2b").await;
}

#[tokio::test]
async fn the_destinations_bytes_are_left_whatever_address_comes_before_them() {
    for granted in [
        &b"\x05\x00\x00\x01\x0a\x00\x00\x01\x00\x50"[..],
        b"\x05\x00\x00\x03\x05proxy\x00\x50",
        b"\x05\x00\x00\x03\x00\x00\x50",
        b"\x05\x00\x00\x04\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x00\x50",
    ] {
        let answer = [granted, b"first bytes"].concat();
        let rest = dialogue(&[(b"\x05\x01\x00", b"\x05\x00"), (BY_NAME, &answer)], NAMED, None).await.unwrap();
        assert_eq!(rest, b"first bytes");
    }
}

#[tokio::test]
async fn a_user_and_password_are_offered_and_given_when_asked_for() {
    let jane = jane();
    let offer: &[u8] = b"\x05\x02\x00\x02";
    let given: &[u8] = b"\x01\x04jane\x06s3cret";
    dialogue(&[(offer, b"\x05\x02"), (given, b"\x01\x00"), (BY_NAME, GRANTED)], NAMED, Some(&jane)).await.unwrap();
    dialogue(&[(offer, b"\x05\x00"), (BY_NAME, GRANTED)], NAMED, Some(&jane)).await.unwrap();
    let refused = dialogue(&[(offer, b"\x05\x02"), (given, b"\x01\x01")], NAMED, Some(&jane)).await;
    assert!(matches!(refused, Err(Refusal::CredentialsRefused)), "{refused:?}");
}

#[tokio::test]
async fn refusals_say_what_to_do() {
    let hello: &[u8] = b"\x05\x01\x00";
    let told = async |answer: &[u8]| dialogue(&[(hello, answer)], NAMED, None).await.unwrap_err().to_string();
    assert!(told(b"\x05\xff").await.contains("requires a user and password"));
    assert!(told(b"\x05\x02").await.contains("not SOCKS5"));
    assert!(told(b"HTTP/1.1 400 Bad Request\r\n").await.contains("not SOCKS5"));
    assert!(told(b"\x05").await.contains("closed the connection"));
    for (reply, words) in [(2, "rules"), (5, "refused by the destination"), (9, "unknown"), (255, "SOCKS reply 255")] {
        let answer = [5, reply, 0, 1, 0, 0, 0, 0, 0, 0];
        let text = dialogue(&[(hello, b"\x05\x00"), (BY_NAME, &answer)], NAMED, None).await.unwrap_err().to_string();
        assert!(text.contains(words), "{text}");
    }
}
