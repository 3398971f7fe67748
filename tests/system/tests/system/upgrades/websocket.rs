//! Two real WebSocket endpoints with the gateway between them.

use futures_util::{SinkExt as _, StreamExt as _};
use http::HeaderMap;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use kit::member::{FakeMember, MemberOptions, Recorded, Reply};
use kit::wait::{WAIT, within};
use system_tests::{ADMIN, Dialect, across_dialects};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

across_dialects!(messages_and_the_closing_handshake_cross);

/// Messages sent back by the member before it closes.
const MESSAGES: usize = 64;
/// Bytes of each.
const LENGTH: usize = 16 << 10;

/// Agrees to a WebSocket, sends [`MESSAGES`] messages back, and closes with a reason.
fn echo(request: &Recorded) -> Reply {
    let accept = derive_accept_key(request.header("sec-websocket-key").expect("a WebSocket handshake").as_bytes());
    let mut headers = HeaderMap::new();
    let lines = [(CONNECTION, "Upgrade"), (UPGRADE, "websocket"), (SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io")];
    headers.extend(lines.map(|(name, value)| (name, value.parse().expect("a header value"))));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept.parse().expect("base64 is a header value"));
    let run = |io| async move {
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        for _ in 0..MESSAGES {
            let Some(Ok(message)) = socket.next().await else { return };
            if socket.send(message).await.is_err() {
                return;
            }
        }
        let reason = CloseFrame { code: CloseCode::Normal, reason: "exit status 0".into() };
        let _ = socket.close(Some(reason)).await; // the client checks what arrives
        while socket.next().await.is_some_and(|message| message.is_ok()) {}
    };
    Reply::Upgrade(headers, Box::new(move |io| Box::pin(run(io))))
}

async fn messages_and_the_closing_handshake_cross(dialect: Dialect) {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on_any(echo);
    let testbed = dialect.testbed(&member).await;
    let target = format!("wss://localhost{}", dialect.path("/api/v1/namespaces/ns/pods/p/exec?command=sh"));
    let mut request = target.into_client_request().unwrap();
    request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, "v5.channel.k8s.io".parse().unwrap());
    request.headers_mut().insert("authorization", format!("Bearer {ADMIN}").parse().unwrap());
    let io = dialect.client(&testbed).raw(&["http/1.1"]).await.unwrap();
    let handshake = tokio_tungstenite::client_async(request, io);
    let (mut socket, head) = within(WAIT, "a WebSocket handshake", handshake).await.unwrap();
    assert_eq!(head.headers()["sec-websocket-protocol"], "v5.channel.k8s.io");

    let conversation = async {
        for number in 0..MESSAGES {
            let message = Message::binary(vec![u8::try_from(number).unwrap(); LENGTH]);
            socket.send(message.clone()).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), message);
        }
        socket.next().await.unwrap().unwrap()
    };
    match within(WAIT, "the messages and the end", conversation).await {
        Message::Close(Some(frame)) => {
            assert_eq!((frame.code, frame.reason.as_str()), (CloseCode::Normal, "exit status 0"));
        }
        other => panic!("not a close frame: {other:?}"),
    }
}
