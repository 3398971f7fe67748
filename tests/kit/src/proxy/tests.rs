use tokio::io::AsyncReadExt as _;

use super::*;

#[tokio::test]
async fn what_is_asked_for_is_recorded_and_carried_out_with_the_right_credentials_only() {
    let echo = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = echo.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = echo.accept().await.unwrap();
        stream.write_all(b"hello").await.unwrap();
    });
    let credentials = Some(("jane".to_owned(), "pw".to_owned()));
    let options = ProxyOptions { credentials: credentials.clone(), early: b"early ".into(), ..ProxyOptions::default() };
    let proxy = FakeProxy::with(ProxyKind::Http, options).await;
    assert_eq!(proxy.url(), format!("http://jane:pw@{}", proxy.address()));
    let ask = async |authorization: &str| {
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        let request = format!("CONNECT nowhere.invalid:{port} HTTP/1.1\r\n{authorization}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(ask("").await.starts_with("HTTP/1.1 407"));
    let granted = ask("Proxy-Authorization: Basic amFuZTpwdw==\r\n").await;
    assert!(granted.starts_with("HTTP/1.1 200") && granted.ends_with("early hello"), "{granted}");
    let destination = format!("nowhere.invalid:{port}");
    let asked = |credentials| Asked { destination: destination.clone(), credentials };
    assert_eq!(proxy.asked(), [asked(None), asked(credentials)]);
}
