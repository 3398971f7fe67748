//! Both sides of a registration over a pipe in memory.

use kit::io::Faulty;
use net::words::causes;
use proptest::prelude::*;
use secrecy::SecretString;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

fn registration() -> Registration {
    Registration {
        cluster: ClusterName::parse("north").unwrap(),
        agent: "a-1.x_y".into(),
        link: 65535,
        version: "0.1.0+g1".into(),
    }
}

#[tokio::test]
async fn an_agent_registers_and_what_it_sends_early_is_kept() {
    let (near, far) = duplex(4096);
    let token = SecretString::from("secret.token");
    let server = async {
        let applicant = applicant(far, PATIENCE).await.unwrap();
        assert_eq!(applicant.registration, registration());
        assert_eq!(applicant.headers["authorization"], "Bearer secret.token");
        assert!(!format!("{:?} {applicant:?}", applicant.headers).contains("secret"));
        applicant.welcome("s-1").await.unwrap()
    };
    let registration = registration();
    let agent = register(near, "tunnel:8091", &registration, Some(&token), PATIENCE);
    let (registered, mut upgraded) = tokio::join!(agent, server);
    let mut registered = registered.unwrap();
    assert_eq!(registered.server, "s-1");
    registered.io.write_all(b"PRI").await.unwrap();
    let mut heard = [0; 3];
    upgraded.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"PRI");
}

#[tokio::test]
async fn a_refusal_is_read_to_its_end() {
    let (near, far) = duplex(4096);
    let server = async {
        let applicant = applicant(far, PATIENCE).await.unwrap();
        let retry = Some(Duration::from_secs(7));
        applicant.refuse(StatusCode::TOO_MANY_REQUESTS, "too many links\u{1b}[2J of 'north'", retry).await
    };
    let registration = registration();
    let agent = async { register(near, "tunnel:8091", &registration, None, PATIENCE).await.unwrap_err() };
    let (refused, answered) = tokio::join!(agent, server);
    answered.unwrap();
    let RegisterError::Refused { status, message, retry_after } = refused else { panic!("{refused}") };
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(message, "too many links[2J of 'north'");
    assert_eq!(retry_after, Some(Duration::from_secs(7)));
}

const GOOD: &str = "GET /tunnel/v1/links HTTP/1.1\r\nHost: tunnel:8091\r\nConnection: keep-alive, Upgrade\r\n\
    Upgrade: Cluster-Tunnel/1\r\nTunnel-Cluster: north\r\nTunnel-Agent: a\r\nTunnel-Link: 0\r\nTunnel-Version: v1\r\n\r\n";

/// What a server makes of these bytes, and its answer.
async fn judged(request: &str) -> (Result<Applicant<DuplexStream>, ApplicationError>, String) {
    let (mut near, far) = duplex(64 * 1024);
    near.write_all(request.as_bytes()).await.unwrap();
    near.shutdown().await.unwrap();
    let applicant = applicant(far, PATIENCE).await;
    let mut answer = String::new();
    if applicant.is_err() {
        near.read_to_string(&mut answer).await.unwrap();
        assert!(answer.matches("HTTP/1.1 4").count() <= 1, "one answer: {answer}");
    }
    (applicant, answer)
}

#[tokio::test]
async fn a_registration_is_read_whatever_its_spelling() {
    let applicant = judged(GOOD).await.0.unwrap();
    assert_eq!(applicant.registration.agent, "a");
    assert_eq!((applicant.registration.link, applicant.registration.version.as_str()), (0, "v1"));
}

#[tokio::test]
async fn what_is_no_registration_is_answered_once_and_closed() {
    let swap = |from: &str, to: &str| {
        assert!(GOOD.contains(from), "{from}");
        GOOD.replacen(from, to, 1)
    };
    let filler = "x: y\r\n".repeat(60);
    let long = format!("x: {}\r\n", "y".repeat(17_000));
    for (request, status) in [
        (swap("GET", "POST"), 405),
        (swap("links", "links/"), 404),
        (swap("/tunnel/v1/links", "/"), 404),
        (swap("/tunnel/v1/links", "http://tunnel/tunnel/v1/links"), 404),
        (swap("HTTP/1.1", "HTTP/1.0"), 400),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".into(), 400),
        ("\x16\x03\x01\x02\x00\x01\x00\r\n\r\n".into(), 400),
        (swap("Cluster-Tunnel/1", "websocket"), 426),
        (swap("Cluster-Tunnel/1", "websocket, cluster-tunnel/1"), 426),
        (swap("Upgrade: Cluster-Tunnel/1\r\n", ""), 426),
        (swap("keep-alive, Upgrade", "keep-alive"), 426),
        (swap("Host: tunnel:8091\r\n", ""), 400),
        (swap("Host: tunnel:8091\r\n", "Host: a\r\nHost: a\r\n"), 400),
        (swap("Tunnel-Cluster: north", "Tunnel-Cluster: North"), 400),
        (swap("Tunnel-Cluster: north", "Tunnel-Cluster: north\r\nTunnel-Cluster: south"), 400),
        (swap("Tunnel-Cluster: north\r\n", ""), 400),
        (swap("Tunnel-Agent: a", "Tunnel-Agent: a b"), 400),
        (swap("Tunnel-Agent: a", "Tunnel-Agent: "), 400),
        (swap("Tunnel-Link: 0", "Tunnel-Link: 65536"), 400),
        (swap("Tunnel-Link: 0", "Tunnel-Link: +1"), 400),
        (swap("Tunnel-Link: 0", "Tunnel-Link: "), 400),
        (swap("Tunnel-Version: v1", "Tunnel-Version: \x01"), 400),
        (swap("Tunnel-Version: v1", "Tunnel-Version: v 1"), 400),
        (swap("Tunnel-Version: v1", "Authorization: Bearer a\r\nAuthorization: Bearer b\r\nTunnel-Version: v1"), 400),
        (swap("Tunnel-Version: v1", "Content-Length: 1\r\nTunnel-Version: v1"), 400),
        (swap("Tunnel-Version: v1", "Transfer-Encoding: chunked\r\nTunnel-Version: v1"), 400),
        (swap("Tunnel-Version: v1", "Tunnel-Version: v1\r\n folded"), 400),
        (swap("Tunnel-Version: v1", "Tunnel-Version : v1"), 400),
        (swap("Tunnel-Agent: a\r\n", "Tunnel-Agent: a\n"), 400),
        (swap("Tunnel-Agent: a\r\n", "Tunnel-Agent: a\rx: y\r\n"), 400),
        (swap("Tunnel-Version: v1\r\n", &format!("Tunnel-Version: v1\r\n{filler}")), 431),
        (swap("Tunnel-Version: v1\r\n", &format!("Tunnel-Version: v1\r\n{long}")), 431),
    ] {
        let (applicant, answer) = judged(&request).await;
        let error = applicant.unwrap_err();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {answer}");
        assert!(answer.ends_with(&error.to_string()), "{error}: {answer}");
        let length = format!("content-length: {}\r\n", error.to_string().len());
        assert!(answer.contains(&length), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_waited_for_longer_than_patience() {
    // One byte per second.
    let (mut near, far) = duplex(1);
    let slow = tokio::spawn(async move {
        for byte in GOOD.bytes() {
            near.write_all(&[byte]).await?;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        io::Result::Ok(())
    });
    let started = Instant::now();
    assert!(matches!(applicant(far, PATIENCE).await, Err(ApplicationError::Timeout(PATIENCE))));
    assert_eq!(started.elapsed(), PATIENCE);
    slow.await.unwrap().unwrap_err();

    let (near, _far) = duplex(4096);
    let error = register(near, "tunnel", &registration(), None, PATIENCE).await.unwrap_err();
    assert!(matches!(error, RegisterError::Timeout(PATIENCE)), "{error}");
}

#[tokio::test]
async fn bytes_that_come_one_by_one_make_a_link() {
    let (near, far) = duplex(4096);
    let near = Faulty::new(near).chunks(1).spurious_pending();
    let far = Faulty::new(far).chunks(1).spurious_pending();
    let registration = registration();
    let server = async { applicant(far, PATIENCE).await.unwrap().welcome("s").await.unwrap() };
    let agent = register(near, "tunnel", &registration, None, PATIENCE);
    let (registered, mut upgraded) = tokio::join!(agent, server);
    upgraded.write_all(b"first").await.unwrap();
    let mut heard = [0; 5];
    registered.unwrap().io.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"first");
}

#[tokio::test]
async fn what_comes_with_the_answer_is_kept_and_no_more_is_read() {
    let (near, mut far) = duplex(64 * 1024);
    let answer =
        "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: cluster-tunnel/1\r\nTunnel-Server: s\r\n\r\nearly";
    far.write_all(answer.as_bytes()).await.unwrap();
    let mut registered = register(near, "tunnel", &registration(), None, PATIENCE).await.unwrap();
    far.write_all(b" late").await.unwrap();
    drop(far);
    let mut heard = String::new();
    registered.io.read_to_string(&mut heard).await.unwrap();
    assert_eq!(heard, "early late");
}

async fn register_error(answer: &str) -> RegisterError {
    let (near, mut far) = duplex(64 * 1024);
    far.write_all(answer.as_bytes()).await.unwrap();
    far.shutdown().await.unwrap();
    register(near, "tunnel", &registration(), None, PATIENCE).await.unwrap_err()
}

#[tokio::test]
async fn an_answer_that_is_no_upgrade_to_this_protocol_is_malformed() {
    for answer in [
        "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: cluster-tunnel/2\r\nTunnel-Server: s\r\n\r\n",
        "HTTP/1.1 101 Yes\r\nUpgrade: cluster-tunnel/1\r\nTunnel-Server: s\r\n\r\n",
        "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: cluster-tunnel/1\r\n\r\n",
        "HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\nUpgrade: cluster-tunnel/1\r\nTunnel-Server: \x1b[2J\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n",
        "HTTP/1.1 99 What\r\n\r\n",
        "SSH-2.0-OpenSSH_9.9\r\n\r\n",
    ] {
        let error = register_error(answer).await;
        let RegisterError::Malformed(malformed) = &error else { panic!("{answer:?}: {error}") };
        // A parser's error stays an error of its own.
        let is_unreadable = ["HTTP/1.1 99", "SSH", "\x1b"].iter().any(|part| answer.contains(part));
        assert_eq!(
            matches!(malformed, Malformed::Http(_) | Malformed::Status(_)),
            is_unreadable,
            "{answer:?}: {error}"
        );
        assert!(causes(&error).ends_with(&malformed.to_string()), "{error}");
    }
    assert!(matches!(register_error("").await, RegisterError::Io(_)));
}

#[tokio::test]
async fn a_refusal_of_any_make_is_told_in_a_line() {
    let page = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>";
    assert_eq!(register_error(page).await.to_string(), "the server answered 502 Bad Gateway: Bad Gateway");
    let text = "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: 2000\r\n\r\nno\r\nway";
    assert_eq!(register_error(text).await.to_string(), "the server answered 403 Forbidden: noway");
    let retry = "HTTP/1.1 503 Soon\r\nRetry-After: 99999999999\r\n\r\n";
    let RegisterError::Refused { retry_after, .. } = register_error(retry).await else { panic!() };
    assert_eq!(retry_after, Some(Duration::from_hours(24)));
}

#[tokio::test]
async fn a_token_that_would_be_more_than_a_header_is_not_sent() {
    for token in ["", "two words", "a\r\nx: y", "tökén"] {
        let (near, mut far) = duplex(4096);
        let error = register(near, "tunnel", &registration(), Some(&token.into()), PATIENCE).await.unwrap_err();
        assert!(matches!(error, RegisterError::Unfit(_)) && !error.to_string().contains("x: y"), "{error}");
        assert_eq!(far.read(&mut [0]).await.unwrap(), 0, "nothing was sent");
    }
}

/// A connection that brings these bytes, takes anything that is written, and ends.
fn saying(bytes: Vec<u8>) -> Prefixed<tokio::io::Empty> {
    Prefixed::new(tokio::io::empty(), bytes.into())
}

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap().block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn anything_may_be_said_to_a_server(
        noise in prop::collection::vec(any::<u8>(), 0..300), at in 0_usize..GOOD.len(), cut in 0_usize..20,
    ) {
        let mut request = GOOD.as_bytes().to_vec();
        request.splice(at..(at + cut).min(GOOD.len()), noise);
        if let Ok(applicant) = block_on(applicant(saying(request), PATIENCE)) {
            let Registration { cluster, agent, version, .. } = applicant.registration;
            prop_assert!(ClusterName::parse(cluster.as_str()).is_ok() && is_name(&agent) && is_version(&version));
        }
    }

    #[test]
    fn anything_may_be_said_to_an_agent(answer in "(HTTP/1.1 [1-5][0-9]{2} )?[ -~\r\n\\x00-\\xff]{0,200}(\r\n\r\n.{0,50})?") {
        let registration = registration();
        match block_on(register(saying(answer.into_bytes()), "tunnel", &registration, None, PATIENCE)) {
            Ok(registered) => prop_assert!(is_name(&registered.server)),
            Err(error) => prop_assert!(!error.to_string().contains(char::is_control), "{error:?}"),
        }
    }
}
