//! A terminal in a container, over WebSocket as a browser would open it: sizes and keys go in, the
//! exit status comes last.
//!
//! kubectl allocates a terminal only if it has one itself, hence a client by hand. Channels and
//! their meaning: `v5.channel.k8s.io`, apimachinery `pkg/util/remotecommand/constants.go`.

use futures_util::{SinkExt as _, StreamExt as _};
use hub_tests::prelude::*;
use libtest_mimic::Trial;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use crate::access::{bearer, client};
use crate::compare::Ways;
use crate::fixture::Fixture;
use crate::streams;

const PROTOCOL: &str = "v5.channel.k8s.io";
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
/// Waits for a line, prints the terminal's size and the line, and exits with a code. It waits for
/// the size, because the test kubelet takes that from another channel than the line, so the line
/// may arrive first.
const SCRIPT: &str = "read%20line%3B%20until%20stty%20size%20%7C%20grep%20-qv%20%5E0%3B%20do%20sleep%200.1%3B%20done%3B%20\
    stty%20size%3B%20echo%20%22got%20%24line%22%3B%20exit%209";
const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn trials(fixture: &Arc<Fixture>, ways: Ways) -> Vec<Trial> {
    let trial = |route: Route| {
        let name = format!("terminal::size, keys and exit status via {}", route.name());
        ways.test(fixture, &name, move |testbed| {
            streams::pod(testbed)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                tokio::time::timeout(LIMIT, terminal(testbed, route))
                    .await
                    .context("the terminal was not done in time")?
            })
        })
    };
    ways.proxied().into_iter().map(trial).collect()
}

async fn terminal(testbed: &Testbed, route: Route) -> Result<()> {
    let mut socket = open(testbed, route).await?;
    let channel = |number: u8, text: &str| Message::binary([&[number], text.as_bytes()].concat());
    socket.send(channel(RESIZE, r#"{"Width":77,"Height":33}"#)).await?;
    socket.send(channel(STDIN, "hello\n")).await?;
    let mut output = String::new();
    let status = loop {
        let Some(message) = socket.next().await else { bail!("closed without a status after {output:?}") };
        match message?.into_data().split_first() {
            Some((&STDOUT, text)) => output.push_str(&String::from_utf8_lossy(text)),
            Some((&STATUS, text)) => break serde_json::from_slice::<Value>(text)?,
            _ => {}
        }
    };
    ensure!(output.contains("33 77\r\n") && output.ends_with("got hello\r\n"), "{output:?}");
    ensure!(status["reason"] == "NonZeroExitCode" && status["details"]["causes"][0]["message"] == "9", "{status}");
    Ok(())
}

async fn open(testbed: &Testbed, route: Route) -> Result<WebSocketStream<TlsStream<TcpStream>>> {
    let path = format!("{}/api/v1/namespaces/streams/pods/shell/exec", Testbed::proxy_path(route.cluster()));
    let query = format!("stdin=true&stdout=true&tty=true&command=sh&command=-c&command={SCRIPT}");
    let mut request = format!("wss://localhost{path}?{query}").into_client_request()?;
    request.headers_mut().insert("authorization", bearer(&testbed.token).parse()?);
    request.headers_mut().insert("sec-websocket-protocol", PROTOCOL.parse()?);
    let connection = client(testbed, route).connect().await?;
    let (socket, response) = tokio_tungstenite::client_async(request, connection).await?;
    let selected = response.headers().get("sec-websocket-protocol").map(|value| value.to_str()).transpose()?;
    ensure!(selected == Some(PROTOCOL), "selected {selected:?}");
    Ok(socket)
}
